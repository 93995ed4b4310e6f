import { execFileSync } from 'node:child_process';
import { crc32, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { IntegrityError } from '../../src/base/errors.ts';
import { encodeCpio } from '../../src/ignition/cpio.ts';
import { decodeInitrd, encodeInitrd } from '../../src/ignition/initrd.ts';
import { requireTool } from '../support/tools.ts';

const archive = Buffer.from(
  encodeCpio([{ name: 'config.ign', mode: 0o644, data: Buffer.from('{"ignition":{}}') }]),
);

const withChecksum = (bytes: Buffer, from = 0): Buffer => {
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32LE(crc32(bytes.subarray(from)));
  return Buffer.concat([bytes, checksum]);
};

/** The .xz file format 1.1.0 without checks: blocks of no chunk. */
function xzStream(empty: number): Buffer {
  const header = withChecksum(Buffer.from([2, 0, 0x21, 1, 0, 0, 0, 0]));
  const blocks = Array.from({ length: empty }, () => Buffer.concat([header, Buffer.alloc(4)]));
  const count = Buffer.from([(empty & 127) | 128, ((empty >> 7) & 127) | 128, empty >> 14]);
  const records = Buffer.concat([Buffer.of(0), count, ...blocks.map(() => Buffer.of(13, 0))]);
  const index = withChecksum(Buffer.concat([records, Buffer.alloc(-records.length & 3)]));
  const footer = Buffer.alloc(8);
  footer.writeUInt32LE(index.length / 4 - 1, 4);
  const flags = Buffer.concat([footer.subarray(4), Buffer.alloc(2)]);
  return Buffer.concat([
    withChecksum(Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0, 0, 0]), 6),
    ...[...blocks, index],
    ...[withChecksum(flags).subarray(6), flags, Buffer.from('YZ')],
  ]);
}

/** Offset behind the headers of stream, block and chunk. */
const RANGE_CODER = 30;

const codeOf = async (image: Uint8Array): Promise<string> => {
  try {
    await decodeInitrd(image);
    return 'read';
  } catch (error) {
    if (error instanceof IntegrityError) return error.code;
    throw error;
  }
};

describe('decodeInitrd with a damaged area', () => {
  it('refuses bytes that are not an archive', async () => {
    await expect(decodeInitrd(Buffer.from('hello, world'))).rejects.toThrow(
      'archive starts with the bytes 68656c6c6f2c, which are neither cpio, gzip, xz nor zstd',
    );
  });

  it.skipIf(!requireTool('zstd'))(
    'ends with an error at any damage to a zstd archive',
    async () => {
      const input = Buffer.concat([archive, Buffer.alloc(1000, 'text ')]);
      const image = execFileSync('zstd', ['-c', '-19', '--check'], { input });
      for (let at = 4; at < image.length; at++) {
        const damaged = Buffer.from(image);
        damaged[at] = (damaged[at] ?? 0) ^ (1 << (at % 8));
        expect(await codeOf(damaged)).toMatch(/^initrd\.|^cpio\./);
        expect(await codeOf(image.subarray(0, at))).not.toBe('read');
      }
    },
  );

  it.skipIf(!requireTool('zstd'))('names the window that a zstd archive needs', async () => {
    const options = ['-c', '--long=27', '-1'];
    const image = execFileSync('zstd', options, { input: archive });
    await expect(decodeInitrd(image)).rejects.toMatchObject({
      code: 'initrd.window-too-large',
      found: `${2 ** 27} bytes`,
    });
  });

  it('refuses data after the trailer inside a compressed archive', async () => {
    expect(await codeOf(gzipSync(Buffer.concat([archive, Buffer.from('x')])))).toBe(
      'initrd.garbage',
    );
  });

  it('refuses a gzip archive with a wrong checksum', async () => {
    const image = gzipSync(archive);
    image[image.length - 6] = (image[image.length - 6] ?? 0) ^ 1;
    expect(await codeOf(image)).toBe('initrd.malformed');
  });

  it('refuses a size that reaches past the end, without allocating it', async () => {
    const image = Buffer.from(archive);
    image.write('FFFFFFFF', 54, 'latin1');
    expect(await codeOf(image)).toBe('cpio.truncated');
  });

  it('refuses a gzip bomb instead of unpacking it', async () => {
    const bomb = gzipSync(Buffer.alloc(600 * 1024 * 1024), { level: 1 });
    expect(await codeOf(bomb)).toBe('initrd.too-large');
  });

  it('refuses every archive that is cut off', async () => {
    for (const image of [archive.subarray(0, -1), encodeInitrd([])]) {
      const whole = image.length - (image === archive ? 0 : 8);
      for (let size = 1; size < whole; size += 3) {
        expect(await codeOf(image.subarray(0, size))).not.toBe('read');
      }
    }
  });

  it('returns files or an integrity error for any bytes', async () => {
    const magic = fc.constantFrom('070701', '\x1f\x8b\x08', '\x28\xb5\x2f\xfd', '\xfd7zXZ\0', '');
    await fc.assert(
      fc.asyncProperty(magic, fc.uint8Array({ maxLength: 200 }), async (start, rest) => {
        const image = Buffer.concat([Buffer.from(start, 'latin1'), rest]);
        expect(typeof (await codeOf(image))).toBe('string');
      }),
    );
  });

  it.skipIf(!requireTool('xz'))(
    'refuses xz with a check that the kernel does not know',
    async () => {
      const image = execFileSync('xz', ['-c', '--check=crc64'], { input: archive });
      await expect(decodeInitrd(image)).rejects.toThrow(
        'xz archive uses check 4, but the kernel knows only CRC32',
      );
      const filtered = execFileSync('xz', ['-c', '--check=crc32', '--x86', '--lzma2'], {
        input: archive,
      });
      await expect(decodeInitrd(filtered)).rejects.toThrow(
        'xz archive cannot be unpacked: it has a filter or an option that is not supported',
      );
    },
  );

  it('refuses archives without content as soon as there are too many', async () => {
    const empty = encodeInitrd([]);
    const archives = (count: number): Buffer =>
      Buffer.concat(Array.from({ length: count }, () => empty));
    expect(await codeOf(archives(1000))).toBe('read');
    await expect(decodeInitrd(archives(1001))).rejects.toThrow(
      'archives of the initrd hold more than 1000 archives',
    );
  });

  it('accepts xz blocks without content', async () => {
    const image = xzStream(60_000);
    const cpu = process.cpuUsage();
    expect(await codeOf(image)).toBe('cpio.truncated');
    const { user, system } = process.cpuUsage(cpu);
    expect((user + system) / 1e6).toBeLessThan(5);
  });

  it.skipIf(!requireTool('xz'))('refuses any damage to an xz archive', async () => {
    const input = Buffer.concat([archive, Buffer.alloc(1000)]);
    const image = execFileSync('xz', ['-c', '--check=crc32'], { input });
    for (let at = 6; at < image.length; at++) {
      const damaged = Buffer.from(image);
      damaged[at] = (damaged[at] ?? 0) ^ (1 << (at % 8));
      // The first byte of the range coder is always 0, and XZ Embedded does not look at it.
      const code = at === RANGE_CODER ? /^read$/ : /^initrd\.(malformed|compression)$/;
      expect(await codeOf(damaged)).toMatch(code);
      if (at % 4 === 0) expect(await codeOf(image.subarray(0, at))).not.toBe('read');
    }
  });

  it('returns files or an integrity error for any damage to an archive', async () => {
    const image = encodeInitrd([{ name: 'a', mode: 0o644, data: archive }]);
    await fc.assert(
      fc.asyncProperty(fc.nat(archive.length - 1), fc.nat(255), async (at, value) => {
        for (const whole of [archive, image]) {
          const damaged = Buffer.from(whole);
          damaged[at % damaged.length] = value;
          expect(typeof (await codeOf(damaged))).toBe('string');
        }
      }),
    );
  });
});
