import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { digestOf, type Digest } from '../../src/base/digest.ts';
import { ConfigError } from '../../src/base/errors.ts';
import { formatLock, readLock, type Lock } from '../../src/stages/resolved/record.ts';
import { readLockSecrets } from '../../src/stages/resolved/record.ts';

const digest = digestOf('x');

const LOCK: Lock & Required<Pick<Lock, 'places'>> = {
  kind: 'SealiftLock',
  format: 1,
  product: 'live-iso',
  program: digest,
  release: {
    version: '4.21.3',
    channel: 'stable',
    architecture: 'x86_64',
    reference: `quay.io/a/b@${digest}`,
  },
  signatures: { '4.21.3': { key: 'F'.repeat(40), digest } },
  base: { digest },
  catalogs: { 'quay.io/a/catalog:v4.21': digest },
  images: [`quay.io/a/b@${digest}`],
  tags: { 'quay.io/a/b:1': digest },
  drawn: {},
  contents: digest,
  places: {
    areas: { structures: 2048, files: 4096, index: 8192, smallBlobs: 12288, blobs: 16384 },
    offsets: [[digest, 16384]],
  },
};

const PLACE = `places.offsets.${digest}`;

describe('the file of a lock', () => {
  const directory = mkdtempSync(join(tmpdir(), 'sealift-locks-'));
  const path = join(directory, 'sealift.lock.json');
  afterAll(() => {
    rmSync(directory, { recursive: true, force: true });
  });

  function refusalOf(text: string): string {
    writeFileSync(path, text);
    try {
      readLock(path);
    } catch (error) {
      if (error instanceof ConfigError) return `${error.code}: ${error.message}`;
      throw error;
    }
    return 'none';
  }

  it('is read as it was written, with one line for each place', () => {
    const places = Array.from({ length: 130_000 }, (_, index): readonly [Digest, number] => [
      digestOf(String(index)),
      index * 4096,
    ]);
    writeFileSync(path, formatLock({ ...LOCK, places: { ...LOCK.places, offsets: places } }));
    expect(readFileSync(path).length).toBeLessThan(16 << 20);
    expect(readFileSync(path, 'utf8').split('\n').length).toBeGreaterThan(130_000);
    expect(new Map(readLock(path)?.places?.offsets)).toEqual(new Map(places));
  });

  it.each([
    [
      'of another program',
      '{"lockfileVersion":3,"packages":{}}',
      'kind should be "SealiftLock", but is absent',
    ],
    ['a list', '[]', 'should be an object, but is a list'],
    [
      'of a later format',
      formatLock({ ...LOCK, format: 2 as 1 }),
      'format should be 1, but is the number 2',
    ],
    [
      'without images',
      formatLock({ ...LOCK, images: undefined as never }),
      'images should be a list, but is absent',
    ],
    [
      'with an image by tag',
      formatLock({ ...LOCK, images: ['quay.io/a/b:1'] }),
      'images[0] is not a reference by digest',
    ],
    [
      'with a number for a digest',
      formatLock({ ...LOCK, program: 7 as never }),
      'program should be a string, but is the number 7',
    ],
    [
      'with another prototype',
      withPrototype('"tags": {', '{}'),
      'tags.__proto__ should be a string, but is an object',
    ],
    [
      'with a prototype among the places',
      withPrototype('"offsets": {', '7'),
      'places.offsets has a name that is not a digest',
    ],
    [
      'with a place that is negative',
      placedAt(-2048),
      `${PLACE} should be an integer of at least 0, but is the number -2048`,
    ],
    [
      'with a place that is a fraction',
      placedAt(0.5),
      `${PLACE} should be an integer of at least 0, but is the number 0.5`,
    ],
    [
      'with a place that no number is',
      placedAt(2 ** 60),
      `${PLACE} should be an integer of at least 0, but is the number ${2 ** 60}`,
    ],
  ])('that is %s is refused with the name of its member', (_what, text, fault) => {
    expect(refusalOf(text)).toBe(`lock.malformed: "${path}" is not a valid lock: ${fault}`);
  });

  it.each([
    ['encrypted secrets', Buffer.alloc(400).toString('base64')],
    ['empty secrets', ''],
    ['secrets in plain text', {}],
    ['null for secrets', null],
  ])('with %s is refused, with or without the secrets beside it', (_what, secrets) => {
    const text = JSON.stringify({ ...(JSON.parse(formatLock(LOCK)) as object), secrets });
    expect(refusalOf(text)).toBe(
      `lock.secrets-encrypted: "${path}" has encrypted secrets, which a lock no longer has`,
    );
  });

  it.each([
    ['empty', ''],
    ['cut off', formatLock(LOCK).slice(0, 700)],
    ['in conflict', formatLock(LOCK).replace('{', '{\n<<<<<<< HEAD')],
    ['nested too deep', '['.repeat(1_000_000)],
  ])('that is %s is refused because it is not JSON', (_what, text) => {
    expect(refusalOf(text)).toBe(`lock.malformed: "${path}" is not a valid lock: it is not JSON`);
  });

  it('that is larger than any lock is not read', () => {
    writeFileSync(path, '');
    truncateSync(path, 2 ** 40);
    expect(() => readLock(path)).toThrow(expect.objectContaining({ code: 'lock.too-large' }));
  });

  it('that is a folder is refused, and an absent one is not an error', () => {
    expect(() => readLock(directory)).toThrow(expect.objectContaining({ code: 'lock.unreadable' }));
    expect(readLock(join(directory, 'none.json'))).toBeUndefined();
  });

  const secretsWith = (value: string): string =>
    `{"kind":"SealiftLockSecrets","format":1,"key":"${'A'.repeat(43)}=","drawn":{"run installer":{"fingerprint":"${digest}","value":${value}}}}`;

  it('has secrets whose values are texts', () => {
    writeFileSync(join(directory, 'sealift.lock.secrets'), secretsWith('"a"'));
    expect(readLockSecrets(path)).toMatchObject({ drawn: { 'run installer': { value: 'a' } } });
  });

  it.each([
    ...['{}', '', '{"kind":"SealiftLockSecrets","format":1,"key":"AA==","drawn":{}}', '[7]'],
    ...['5', '{"a":1}', 'null', `${'['.repeat(100_000)}${']'.repeat(100_000)}`].map(secretsWith),
  ])('is refused if its file of secrets has the text %j', (text) => {
    writeFileSync(join(directory, 'sealift.lock.secrets'), text);
    expect(() => readLockSecrets(path)).toThrow(
      expect.objectContaining({ code: 'lock.secrets-malformed' }),
    );
  });
});

const withPrototype = (opening: string, value: string): string =>
  formatLock(LOCK).replace(opening, `${opening} "__proto__": ${value},`);

function placedAt(offset: number): string {
  return formatLock({ ...LOCK, places: { ...LOCK.places, offsets: [[digest, offset]] } });
}
