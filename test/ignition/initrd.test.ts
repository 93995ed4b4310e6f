import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeCpio } from '../../src/ignition/cpio.ts';
import { decodeInitrd, encodeInitrd, isCheckedXz } from '../../src/ignition/initrd.ts';
import { requireTool } from '../support/tools.ts';

const bytes = (text: string): Uint8Array => Buffer.from(text);
const member = (name: string, text: string) => ({ name, mode: 0o644, data: bytes(text) });
const texts = async (image: Uint8Array): Promise<Record<string, string>> =>
  Object.fromEntries(
    [...(await decodeInitrd(image))].map(([name, data]) => [name, Buffer.from(data).toString()]),
  );

const arbitraryMembers = fc.uniqueArray(
  fc.record({
    name: fc.string({ minLength: 1, unit: fc.constantFrom('a', 'b', '/', '.', 'é') }),
    mode: fc.constantFrom(0o644, 0o100600),
    data: fc.uint8Array({ maxLength: 64 }),
  }),
  { selector: ({ name }) => name },
);

describe('encodeCpio', () => {
  it('writes newc headers that reveal nothing about this machine', () => {
    const archive = Buffer.from(encodeCpio([member('config.ign', '{}')]));
    expect(archive.toString('latin1', 0, 110)).toBe(
      '070701' +
        '00000001000081A400000000000000000000000100000000' +
        '0000000200000000000000000000000000000000' +
        '0000000B00000000',
    );
    expect(archive.indexOf('TRAILER!!!')).toBe(124 + 4 + 110);
    expect(archive.length % 4).toBe(0);
  });

  it('writes archives that cpio(1) reads as written, a leading slash included', () => {
    if (!requireTool('cpio')) return;
    const input = encodeCpio([member('/usr/lib/ignition/base.d/99-bootstrap.ign', 'abc')]);
    const listing = execFileSync('cpio', ['-tv'], { input, stdio: ['pipe', 'pipe', 'ignore'] });
    expect(listing.toString()).toMatch(
      /^-rw-r--r-- +1 root +root +3 Jan +1 +1970 \/usr\/lib\/ignition\/base.d\/99-bootstrap.ign\n$/,
    );
  });
});

describe('encodeInitrd', () => {
  it('gives the same bytes for the same members: no time, no operating system', () => {
    const image = encodeInitrd([member('config.ign', 'x'.repeat(1000))]);
    expect(Buffer.from(image.subarray(0, 10)).toString('hex')).toBe('1f8b08000000000002ff');
    expect(image.length % 4).toBe(0);
    expect(encodeInitrd([member('config.ign', 'x'.repeat(1000))])).toEqual(image);
  });

  it('is undone by decodeInitrd', async () => {
    await fc.assert(
      fc.asyncProperty(arbitraryMembers, async (members) => {
        const decoded = await decodeInitrd(encodeInitrd(members));
        expect([...decoded.keys()]).toEqual(members.map(({ name }) => name));
        for (const { name, data } of members) {
          expect(Buffer.from(decoded.get(name) ?? [])).toEqual(Buffer.from(data));
        }
      }),
    );
  });
});

describe('decodeInitrd', () => {
  it('finds no file in an area of zeros or an empty area', async () => {
    expect((await decodeInitrd(new Uint8Array(262144))).size).toBe(0);
    expect((await decodeInitrd(new Uint8Array())).size).toBe(0);
  });

  it('reads archives one after another, and the last file with a name counts', async () => {
    const image = Buffer.concat([
      encodeInitrd([member('config.ign', 'old'), member('a', '1')]),
      Buffer.alloc(512),
      encodeCpio([member('config.ign', 'new')]),
      Buffer.alloc(36),
      gzipSync(Buffer.concat([encodeCpio([member('b', '2')]), Buffer.alloc(300)])),
      Buffer.alloc(1000),
    ]);
    expect(await texts(image)).toEqual({ 'config.ign': 'new', 'a': '1', 'b': '2' });
  });

  it('reads adjacent gzip members without padding as the kernel does', async () => {
    const image = Buffer.concat([
      gzipSync(encodeCpio([member('a', '1')])),
      gzipSync(encodeCpio([member('b', '2')])),
    ]);
    expect(await texts(image)).toEqual({ a: '1', b: '2' });
  });

  it('returns regular files only, and ends names at their first NUL', async () => {
    const directory = { name: 'etc', mode: 0o40755, data: bytes('') };
    expect(await texts(encodeCpio([directory, member('a\0\0\0', 'x')]))).toEqual({ a: 'x' });
  });

  it.skipIf(!requireTool('zstd'))('reads archives of zstd(1), followed by other data', async () => {
    const long = Buffer.alloc(300_000, 'ignition ');
    const input = encodeCpio([{ name: 'long', mode: 0o644, data: long }]);
    for (const options of [['-19'], ['-3', '--no-check'], ['-1', '--content-size']]) {
      const packed = execFileSync('zstd', ['-c', ...options], { input });
      const image = Buffer.concat([packed, Buffer.alloc(7), encodeInitrd([member('b', '2')])]);
      const decoded = await decodeInitrd(image);
      expect(Buffer.from(decoded.get('long') ?? []).equals(long)).toBe(true);
      expect(decoded.has('b')).toBe(true);
    }
  });

  it.skipIf(!requireTool('xz'))(
    'has a checksum of every byte as one archive of xz with CRC32',
    () => {
      const input = encodeCpio([member('config.ign', '{}')]);
      const pack = (check: string): Buffer =>
        execFileSync('xz', ['-c', `--check=${check}`], { input });
      const checked = pack('crc32');
      expect(isCheckedXz(Buffer.concat([checked, Buffer.alloc(100)]))).toBe(true);
      expect(isCheckedXz(Buffer.concat([checked, gzipSync(input)]))).toBe(false);
      for (const other of [pack('none'), gzipSync(input), Buffer.alloc(100)]) {
        expect(isCheckedXz(other)).toBe(false);
      }
    },
  );

  it.skipIf(!requireTool('xz'))('reads archives of xz(1), followed by other data', async () => {
    const random = fc.sample(fc.uint8Array({ minLength: 70_000, maxLength: 70_000 }), {
      numRuns: 1,
      seed: 1,
    });
    const text = Buffer.from(Array.from({ length: 60_000 }, (_, n) => `line ${n * n}\n`).join(''));
    const data = Buffer.concat([text, ...random, text.subarray(1000, 90_000), ...random]);
    const input = encodeCpio([{ name: 'long', mode: 0o644, data }]);
    for (const options of [
      ['-9'],
      ['-0', '--block-size=200000'],
      ['--lzma2=preset=6,lc=1,lp=3,pb=0'],
      ['--lzma2=preset=6,lc=0,lp=0,pb=4,dict=4096'],
    ]) {
      const packed = execFileSync('xz', ['-c', '--check=crc32', ...options], { input });
      const image = Buffer.concat([packed, Buffer.alloc(8), encodeInitrd([member('b', '2')])]);
      const decoded = await decodeInitrd(image);
      expect(Buffer.from(decoded.get('long') ?? []).equals(data)).toBe(true);
      expect(decoded.has('b')).toBe(true);
    }
  });

  it.skipIf(!requireTool('gzip'))('reads gzip headers that contain a name', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'sealift-gzip-'));
    try {
      const script = 'cat >archive && gzip --name archive && cat archive.gz';
      const image = execFileSync('sh', ['-c', script], {
        cwd: directory,
        input: encodeCpio([member('a', '1')]),
      });
      expect(await texts(image)).toEqual({ a: '1' });
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});
