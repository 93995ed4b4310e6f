import { Decompress } from 'fzstd';

/**
 * A block is at least 4 bytes and unpacks to at most 128 KiB (RFC 8878 3.1.1.2), so this much input
 * makes at most 32 MiB of output before the next stage is asked whether it has room.
 */
const INPUT_SIZE = 1024;

/** Unpacks Zstandard frames (RFC 8878) as they arrive; throws where the last one breaks off. */
export async function* unzstd(source: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let blocks: Uint8Array[] = [];
  const decompressor = new Decompress((block) => blocks.push(block));
  for await (const chunk of source) {
    for (let start = 0; start < chunk.length; start += INPUT_SIZE) {
      decompressor.push(chunk.subarray(start, start + INPUT_SIZE));
      for (const block of blocks) yield Buffer.from(block.buffer, block.byteOffset, block.length);
      blocks = [];
    }
  }
  decompressor.push(new Uint8Array(0), true);
  for (const block of blocks) if (block.length > 0) yield Buffer.from(block);
}
