import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { describe, expect, it, test } from 'vitest';
import { checkIgnition } from '../../src/ignition/check.ts';
import { parseIgnition } from '../../src/ignition/config.ts';
import { decodeFileContent } from '../../src/ignition/resource.ts';

type Recording = {
  readonly madeWith: Readonly<Record<string, string>>;
  readonly rows: readonly { readonly source: string; readonly bytes: string | null }[];
};

const { rows } = JSON.parse(
  readFileSync(new URL('data-urls/data-urls.json', import.meta.url), 'utf8'),
) as Recording;

const check = (rest: object): string[] =>
  checkIgnition(
    parseIgnition(JSON.stringify({ ignition: { version: '3.2.0' }, ...rest }), 'a.ign'),
    'a.ign',
  ).map(({ path = '', problem }) => `${path}: ${problem}`);

const checkContents = (contents: object): string[] =>
  check({ storage: { files: [{ path: '/a', contents }] } });

test.each(rows)('data URL $source is read as Ignition 2.24.0 reads it', ({ source, bytes }) => {
  expect(decodeFileContent({ contents: { source } })?.toString('base64') ?? null).toBe(bytes);
  expect(checkContents({ source })).toHaveLength(bytes === null ? 1 : 0);
});

describe('contents in a config', () => {
  const text = Buffer.from('hello\n');
  const hash = (type: string): string => `${type}-${createHash(type).update(text).digest('hex')}`;
  const sourceOf = (bytes: Uint8Array): string =>
    `data:;base64,${Buffer.from(bytes).toString('base64')}`;
  const plain = sourceOf(text);
  const packed = sourceOf(gzipSync(text));
  const WRONG = '$.storage.files.0.contents: content has another hash than is given for it';
  const NOT_GZIP = '$.storage.files.0.contents: content is not gzip';

  it.each(['sha256', 'sha512'])('have the %s of the bytes without compression', (type) => {
    const verification = { hash: hash(type) };
    expect(checkContents({ source: plain, verification })).toEqual([]);
    expect(checkContents({ source: packed, compression: 'gzip', verification })).toEqual([]);
    expect(checkContents({ source: packed, verification })).toEqual([WRONG]);
    expect(checkContents({ source: 'data:,hello', verification })).toEqual([WRONG]);
  });

  it.each(['data:,', plain, sourceOf(gzipSync(text).subarray(0, -4))])(
    'are gzip if the config says so, which %s is not',
    (source) => {
      expect(checkContents({ source, compression: 'gzip' })).toEqual([NOT_GZIP]);
    },
  );

  it('are checked wherever a config has a resource', () => {
    const bad = { source: 'data:text,a' };
    const problem = 'data URL has a head that is not as in RFC 2397';
    const tls = { certificateAuthorities: [bad] };
    expect(
      check({
        ignition: { version: '3.2.0', config: { merge: [bad], replace: bad }, security: { tls } },
        storage: { luks: [{ name: 'a', keyFile: bad }], files: [{ path: '/a', append: [bad] }] },
      }),
    ).toEqual([
      `$.ignition.config.merge.0: ${problem}`,
      `$.ignition.config.replace: ${problem}`,
      `$.ignition.security.tls.certificateAuthorities.0: ${problem}`,
      `$.storage.luks.0.keyFile: ${problem}`,
      `$.storage.files.0.append.0: ${problem}`,
    ]);
  });

  it('unpack to 64 MiB for the check of all together, so that small bombs cost no more than one', () => {
    const source = sourceOf(gzipSync(Buffer.alloc(40 << 20)));
    const verification = { hash: hash('sha256') };
    const file = (path: string) => ({
      path,
      contents: { source, compression: 'gzip', verification },
    });
    expect(check({ storage: { files: [file('/a'), file('/b'), file('/c')] } })).toEqual([WRONG]);
  });
});
