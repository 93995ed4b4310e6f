import { IntegrityError } from '../base/errors.ts';

/**
 * Where the zstd frame at the start of `bytes` ends, and an upper bound of what it unpacks to
 * (RFC 8878 3.1.1). Needed because an initrd goes on behind the frame.
 *
 * @throws IntegrityError `initrd.malformed`
 */
export function measureZstdFrame(bytes: Uint8Array): {
  readonly size: number;
  readonly unpackedSize: number;
} {
  const descriptor = byteAt(bytes, 4);
  const isSingleSegment = (descriptor & 0x20) !== 0;
  const dictionaryIdSize = [0, 1, 2, 4][descriptor & 3] ?? 0;
  const contentSizeFlag = descriptor >> 6;
  const contentSizeSize = contentSizeFlag === 0 ? Number(isSingleSegment) : 1 << contentSizeFlag;
  let offset = 5 + Number(!isSingleSegment) + dictionaryIdSize + contentSizeSize;
  let unpackedSize = 0;
  for (let isLast = false; !isLast;) {
    const header =
      byteAt(bytes, offset) | (byteAt(bytes, offset + 1) << 8) | (byteAt(bytes, offset + 2) << 16);
    const blockSize = header >> 3;
    const isRun = ((header >> 1) & 3) === 1;
    isLast = (header & 1) !== 0;
    offset += 3 + (isRun ? 1 : blockSize);
    // RFC 8878 3.1.1.2.4: a block never unpacks to more than 128 KiB.
    unpackedSize += Math.max(blockSize, 128 * 1024);
  }
  const size = offset + ((descriptor & 4) === 0 ? 0 : 4);
  if (size > bytes.length) throw cutOff(size, bytes.length);
  return { size, unpackedSize };
}

function byteAt(bytes: Uint8Array, offset: number): number {
  const byte = bytes[offset];
  if (byte === undefined) throw cutOff(offset + 1, bytes.length);
  return byte;
}

const cutOff = (needed: number, size: number): IntegrityError =>
  new IntegrityError(
    'initrd.malformed',
    `zstd archive needs ${needed} bytes, but there are ${size}`,
    { expected: String(needed), found: String(size) },
  );
