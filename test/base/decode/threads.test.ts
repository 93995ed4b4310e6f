import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DecodeError } from '../../../src/base/decode/limits.ts';
import { unzstd } from '../../../src/base/decode/zstd.ts';
import { runs } from '../../support/properties.ts';
import { requireTool } from '../../support/tools.ts';

const zstd = (bytes: Uint8Array, ...options: string[]): Buffer =>
  execFileSync('zstd', ['-c', '-q', ...options], { input: bytes, maxBuffer: 1 << 28 });

async function unpack(packed: Buffer, pieceSize = 4096): Promise<Buffer> {
  const pieces = async function* (): AsyncGenerator<Buffer> {
    for (let start = 0; start < packed.length; start += pieceSize) {
      yield await Promise.resolve(packed.subarray(start, start + pieceSize));
    }
  };
  const output: Buffer[] = [];
  for await (const block of unzstd(pieces(), new AbortController().signal)) output.push(block);
  return Buffer.concat(output);
}

/** RFC 8878 3.1.2. */
const skippable = (size: number): Buffer => {
  const header = Buffer.from('5a2a4d1800000000', 'hex');
  header.writeUInt32LE(size, 4);
  return Buffer.concat([header, Buffer.alloc(size, 0xff)]);
};

describe.skipIf(!requireTool('zstd'))('zstd', () => {
  const text = Buffer.from(
    Array.from({ length: 120_000 }, (_, index) => `line ${(index * 7919) % 10_007}\n`).join(''),
  );

  it.each(['-1', '-19', '--ultra', '--no-check', '--fast=5'])(
    'packed with %s is unpacked to the same bytes',
    async (level) => {
      const packed = zstd(text, ...(level === '--ultra' ? ['--ultra', '-20'] : [level]));
      expect((await unpack(packed)).equals(text)).toBe(true);
    },
  );

  it('is unpacked to the same bytes, in any pieces, with or without a checksum', async () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 5000 }),
      fc.tuple(fc.nat(255), fc.nat(400_000)).map(([byte, size]) => new Uint8Array(size).fill(byte)),
    );
    const check = fc.constantFrom('--check', '--no-check');
    await fc.assert(
      fc.asyncProperty(
        bytes,
        check,
        fc.integer({ min: 1, max: 50 }),
        async (data, option, piece) => {
          expect((await unpack(zstd(data, option), piece)).equals(data)).toBe(true);
        },
      ),
      { numRuns: runs(40) },
    );
  });

  it('may have many frames with skippable ones between them', async () => {
    const frames = ['', 'a', 'bb', 'c'.repeat(300_000)].map((part) => zstd(Buffer.from(part)));
    const packed = Buffer.concat([skippable(0), ...frames.flatMap((one) => [one, skippable(9)])]);
    expect((await unpack(packed, 1)).toString()).toBe(`abb${'c'.repeat(300_000)}`);
  });

  it('that needs a window of more than 32 MiB is refused with the size of the window', async () => {
    const packed = Buffer.from(zstd(text, '--no-check'));
    const streamed = zstd(text, '--no-check', '--long=28', '--zstd=wlog=28');
    for (const bytes of [packed, streamed]) {
      // A window descriptor in place of the content size: RFC 8878 3.1.1.1.1.
      const huge = Buffer.concat([bytes.subarray(0, 4), Buffer.of(0x00, 0xff), bytes.subarray(6)]);
      await expect(unpack(huge)).rejects.toMatchObject({ problem: 'window-too-large' });
    }
  });

  it('that ends early or is changed gives an error and never hangs', async () => {
    const packed = zstd(text.subarray(0, 20_000), '--check');
    for (const end of [1, 3, 5, 8, 20, packed.length - 5, packed.length - 1]) {
      await expect(unpack(packed.subarray(0, end))).rejects.toBeInstanceOf(DecodeError);
    }
    await fc.assert(
      fc.asyncProperty(fc.nat(packed.length - 1), fc.nat(255), async (at, value) => {
        const changed = Buffer.from(packed);
        changed[at] = value;
        await unpack(changed).catch((error: unknown) => {
          expect(error).toBeInstanceOf(Error);
        });
      }),
    );
  });
});
