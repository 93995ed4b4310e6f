import { execFileSync } from 'node:child_process';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { IntegrityError } from '../../src/base/errors.ts';
import { encodeCpio } from '../../src/ignition/cpio.ts';
import { decodeInitrd, encodeInitrd } from '../../src/ignition/initrd.ts';
import { requireTool } from '../support/tools.ts';

const archive = Buffer.from(
  encodeCpio([{ name: 'config.ign', mode: 0o644, data: Buffer.from('{"ignition":{}}') }]),
);

const codeOf = (image: Uint8Array): string => {
  try {
    decodeInitrd(image);
    return 'read';
  } catch (error) {
    if (error instanceof IntegrityError) return error.code;
    throw error;
  }
};

describe('decodeInitrd of a damaged area', () => {
  it('refuses bytes that are no archive', () => {
    expect(() => decodeInitrd(Buffer.from('hello, world'))).toThrow(
      'archive starts with the bytes 68656c6c6f2c, which are neither cpio, gzip, xz nor zstd',
    );
  });

  it('refuses something behind the trailer inside a compressed archive', () => {
    expect(codeOf(gzipSync(Buffer.concat([archive, Buffer.from('x')])))).toBe('initrd.garbage');
  });

  it('refuses a gzip archive with a wrong checksum', () => {
    const image = gzipSync(archive);
    image[image.length - 6] = (image[image.length - 6] ?? 0) ^ 1;
    expect(codeOf(image)).toBe('initrd.malformed');
  });

  it('refuses a size that points behind the end, without allocating it', () => {
    const image = Buffer.from(archive);
    image.write('FFFFFFFF', 54, 'latin1');
    expect(codeOf(image)).toBe('cpio.truncated');
  });

  it('refuses a gzip bomb instead of unpacking it', () => {
    const bomb = gzipSync(Buffer.alloc(600 * 1024 * 1024), { level: 1 });
    expect(codeOf(bomb)).toBe('initrd.too-large');
  });

  it('refuses every archive that is cut off', () => {
    for (const image of [archive.subarray(0, -1), encodeInitrd([])]) {
      const whole = image.length - (image === archive ? 0 : 8);
      for (let size = 1; size < whole; size += 3) {
        expect(codeOf(image.subarray(0, size))).not.toBe('read');
      }
    }
  });

  it('answers any bytes with files or an error of integrity', () => {
    const magic = fc.constantFrom('070701', '\x1f\x8b\x08', '\x28\xb5\x2f\xfd', '\xfd7zXZ\0', '');
    fc.assert(
      fc.property(magic, fc.uint8Array({ maxLength: 200 }), (start, rest) => {
        const image = Buffer.concat([Buffer.from(start, 'latin1'), rest]);
        expect(typeof codeOf(image)).toBe('string');
      }),
    );
  });

  it.skipIf(!requireTool('xz'))('refuses xz with a check that the kernel does not know', () => {
    const image = execFileSync('xz', ['-c', '--check=crc64'], { input: archive });
    expect(() => decodeInitrd(image)).toThrow(
      'xz archive uses check 4, but the kernel knows only CRC32',
    );
    const filtered = execFileSync('xz', ['-c', '--check=crc32', '--x86', '--lzma2'], {
      input: archive,
    });
    expect(() => decodeInitrd(filtered)).toThrow('xz archive uses a filter that is not LZMA2');
  });

  it.skipIf(!requireTool('xz'))('refuses any damage to an xz archive', () => {
    const input = Buffer.concat([archive, Buffer.alloc(1000)]);
    const image = execFileSync('xz', ['-c', '--check=crc32'], { input });
    // The footer repeats what was read already: damage to it is seen at its magic alone.
    const footer = image.length - 12;
    for (let at = 6; at < footer; at++) {
      const damaged = Buffer.from(image);
      damaged[at] = (damaged[at] ?? 0) ^ (1 << (at % 8));
      expect(codeOf(damaged)).toMatch(/^initrd\.(malformed|compression)$/);
      if (at % 4 === 0) expect(codeOf(image.subarray(0, at))).not.toBe('read');
    }
  });

  it('answers any damage to an archive with files or an error of integrity', () => {
    const image = encodeInitrd([{ name: 'a', mode: 0o644, data: archive }]);
    fc.assert(
      fc.property(fc.nat(archive.length - 1), fc.nat(255), (at, value) => {
        for (const whole of [archive, image]) {
          const damaged = Buffer.from(whole);
          damaged[at % damaged.length] = value;
          expect(typeof codeOf(damaged)).toBe('string');
        }
      }),
    );
  });
});
