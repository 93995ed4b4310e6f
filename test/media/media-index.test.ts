import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/base/digest.ts';
import { runProcess } from '../../src/base/process.ts';
import {
  decodeMediaIndex,
  formatMediaIndex,
  parseMediaIndex,
  type MediaIndex,
} from '../../src/media/media-index.ts';
import { runs } from '../support/properties.ts';
import { requireTool } from '../support/tools.ts';

const INDEX_PATH = '/sealift/index.json';
const digest = digestOf('bytes');
const content: Omit<MediaIndex, 'digest'> = {
  format: 1,
  product: 'live-iso',
  base: { digest, size: 2048 },
  release: { version: '4.21.3', reference: `quay.io/a/b@${digest}`, architecture: 'amd64' },
  images: [
    {
      name: 'etcd',
      set: 'release',
      source: `quay.io/a/b@${digest}`,
      repository: 'openshift/release',
      tags: ['4.21.3-etcd'],
      manifests: [digest],
    },
  ],
  extents: [
    { offset: 0, size: 2048, digest, paths: [] },
    { offset: 4096, size: 4096, paths: [INDEX_PATH] },
    { offset: 8192, size: 5, digest, paths: ['/registry/x', '/registry/y'] },
  ],
};
const text = formatMediaIndex(content);
const parse = (changed: string): MediaIndex => parseMediaIndex(Buffer.from(changed));
/** With members put in the place of others, or taken away. */
const changeTo = (members: object): string =>
  JSON.stringify({ ...(JSON.parse(text) as object), ...members });

describe('the index of a medium', () => {
  it('has its contents, and its own digest', () => {
    const { digest: own, ...rest } = parse(text);
    expect(own).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(rest).toEqual(content);
    expect(parse(`${text}   \n`).digest).toBe(own);
  });

  it('has the same length with any digest', () => {
    const other = formatMediaIndex({ ...content, product: 'live-os1' });
    expect(other.length).toBe(text.length);
    expect(other).not.toBe(text);
  });

  it('has a digest that does not depend on its formatting', () => {
    expect(parse(JSON.stringify(JSON.parse(text)))).toEqual(parse(text));
  });

  it.skipIf(!requireTool('jq'))(
    'has the digest that jq computes with the command in the manual',
    async () => {
      const { stdout } = await runProcess('jq', ['-cSj', 'del(.digest)'], { input: text });
      expect(parse(text).digest).toBe(digestOf(stdout));
    },
  );

  it('is refused after a flip of any bit', () => {
    const bytes = Buffer.from(text);
    fc.assert(
      fc.property(fc.nat(bytes.length - 1), fc.nat(7), (at, bit) => {
        const flipped = Buffer.from(bytes);
        flipped[at] = (flipped[at] ?? 0) ^ (1 << bit);
        expect(() => parseMediaIndex(flipped)).toThrow(/index\.json/);
      }),
      { numRuns: runs(2000) },
    );
  });

  it('can still be read as a damaged index when its digest is wrong', () => {
    const { index, damage } = decodeMediaIndex(Buffer.from(text.replace('4.21.3"', '4.21.4"')));
    expect(index.release.version).toBe('4.21.4');
    expect(damage).toMatchObject({ code: 'index.digest', exitCode: 5 });
    expect(damage?.expected).toBe(parse(text).digest);
  });

  it('may lack a digest, like the indexes of the first versions', () => {
    expect(parse(changeTo({ digest: undefined }))).toEqual(content);
  });

  it('may not lack a digest when it has later members', () => {
    expect(() => parse(text.replace('"digest": "sha256', '"dhgest": "sha256'))).toThrow();
    expect(() => parse(changeTo({ digest: undefined, more: 1 }))).toThrow(
      'form that sealift writes',
    );
  });

  it.each<[string, object]>([
    ['a digest of the wrong type', { digest: 7 }],
    ['an offset before the medium', { extents: [{ offset: -1, size: 1, digest, paths: [] }] }],
    ['a fraction of a byte', { extents: [{ offset: 0, size: 0.5, digest, paths: [] }] }],
    ['an end that no number reaches', { extents: [{ offset: 2 ** 53 - 1, size: 1, digest }] }],
    ['a path that is not text', { extents: [{ offset: 0, size: 1, digest, paths: [1] }] }],
    ['an extent without digest', { extents: [{ offset: 0, size: 1, paths: ['/a'] }] }],
    ['an extent that is null', { extents: [null] }],
    ['images that are not a list', { images: {} }],
    ['a release without version', { release: {} }],
  ])('is refused with %s', (_what, members) => {
    expect(() => parse(changeTo(members))).toThrow(/index\.json/);
  });

  it.each(['', 'null', '[]', '7', '{', '\u0000'.repeat(4096)])(
    'is refused when it is %j',
    (bad) => {
      expect(() => parse(bad)).toThrow(/index\.json/);
    },
  );
});
