import type { FileHandle } from 'node:fs/promises';

const DEFAULT_CHUNK_SIZE = 1 << 20;

/**
 * The part of a file that is not yet consumed, as far as it has been read. One buffer serves the whole
 * file: it is as large as the largest run of bytes that was ever wanted at once.
 */
export class ByteWindow {
  readonly #file: FileHandle;
  readonly #chunkSize: number;
  #buffer: Buffer;
  #start = 0;
  #end = 0;
  #offset = 0;

  constructor(file: FileHandle, chunkSize = DEFAULT_CHUNK_SIZE) {
    this.#file = file;
    this.#chunkSize = chunkSize;
    this.#buffer = Buffer.allocUnsafeSlow(2 * chunkSize);
  }

  /** Valid until the next `readMore`. */
  get view(): Buffer {
    return this.#buffer.subarray(this.#start, this.#end);
  }

  /** Of the view's first byte in the file. */
  get offset(): number {
    return this.#offset;
  }

  skip(count: number): void {
    this.#start += count;
    this.#offset += count;
  }

  /** Makes the view longer by at most a chunk; false at the end of the file. */
  async readMore(): Promise<boolean> {
    this.#makeRoom();
    const { bytesRead } = await this.#file.read(this.#buffer, this.#end, this.#chunkSize);
    this.#end += bytesRead;
    return bytesRead > 0;
  }

  #makeRoom(): void {
    if (this.#end + this.#chunkSize <= this.#buffer.length) return;
    const held = this.#end - this.#start;
    // Only a buffer that would stay more than half full doubles, so moving costs a byte a byte.
    const grown =
      held > this.#buffer.length / 2 || held + this.#chunkSize > this.#buffer.length
        ? Buffer.allocUnsafeSlow(2 * this.#buffer.length)
        : this.#buffer;
    this.#buffer.copy(grown, 0, this.#start, this.#end);
    this.#buffer = grown;
    this.#start = 0;
    this.#end = held;
  }
}
