import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { digestOf, type Digest } from '../base/digest.ts';
import { findOpenDevice, type BlockDevice } from '../base/disk/block-device.ts';
import { explaining } from '../base/disk/disk-errors.ts';
import { openInPlace, reopen } from '../base/disk/open-file.ts';
import { DiskError, IntegrityError, isErrno } from '../base/errors.ts';
import { type Layout, SYSTEM_AREA_SIZE } from '../iso/index.ts';
import type { Hasher, Slice } from './hasher.ts';
import { BUFFER_SIZE, createOutputFile, DIRECT_ALIGNMENT, type OutputFile } from './output-file.ts';

/** A device as it was found. */
export type PouredDevice = Pick<BlockDevice, 'path' | 'serial' | 'sequence' | 'size'>;

export type DeviceOutput = OutputFile & {
  /** Offset in the memory that direct I/O accepts; undefined if it accepts none. */
  readonly alignment: number | undefined;
  /** Reads back everything that was written to the device, and then writes the held bytes. */
  readonly finish: (expected: Expected) => Promise<void>;
};

type Expected = {
  /** Digest of the whole ISO. */
  readonly digest: Digest;
  readonly hasher: Hasher;
  readonly signal: AbortSignal;
  readonly onBytes: (size: number) => void;
};

/**
 * Opens a device for a pour. The bytes that firmware reads first, the System Area and the volume descriptors,
 * are zeros until everything else is written: a device that is unplugged halfway boots neither the new system
 * nor the old one. Bytes after the ISO stay as they are.
 */
export async function openDeviceOutput(
  device: PouredDevice,
  layout: Layout,
  memory: SharedArrayBuffer,
): Promise<DeviceOutput> {
  const { path } = device;
  const bytes = Buffer.from(memory);
  const held = Buffer.alloc(sizeOfHeld(layout));
  const buffered = await openDevice(device);
  try {
    await explaining(path, () => writeStart(buffered, held));
    const direct = await openDirect(buffered, bytes);
    const plain = createOutputFile({ path, buffered, direct: direct?.file, bytes });
    const output = holdBack(plain, held, bytes);
    const reader = { path, bytes, held, buffered, ...direct };
    return {
      ...output,
      alignment: direct?.alignment,
      async finish(expected) {
        await output.sync();
        await compareAll(reader, layout.size, expected);
        await explaining(path, () => writeStart(buffered, held));
        await compareStart(reader);
      },
    };
  } catch (error) {
    await buffered.close();
    throw error;
  }
}

/** The device was perhaps found hours ago: its name may now belong to another disk, even of the same size. */
async function openDevice(device: PouredDevice): Promise<FileHandle> {
  const { path } = device;
  const file = await explaining(path, () => openInPlace(path));
  const found = await findOpenDevice(file, path);
  if (found && SAME.every((key) => found[key] === device[key])) return file;
  await file.close();
  throw new DiskError('device.changed', `${path} is now another device`, {
    expected: tell(device),
    found: found === undefined ? 'not a block device' : tell(found),
    hint: 'run the same command again',
  });
}

const SAME = ['serial', 'sequence', 'size'] as const;

const tell = ({ serial, sequence, size }: PouredDevice): string =>
  `${serial === '' ? 'no serial number' : serial}, ${size} bytes${sequence === '' ? '' : `, disk ${sequence} since the machine started`}`;

/** ECMA-119 7.1.1: the first descriptor of an image is in the first sector after the System Area. */
const DESCRIPTORS = SYSTEM_AREA_SIZE;
const MAX_HELD = 64 * 1024;

/** Bytes to the end of the descriptors, which are one extent. */
function sizeOfHeld({ extents, size }: Layout): number {
  const end = extents
    .filter(({ offset }) => offset <= DESCRIPTORS)
    .reduce((end, extent) => Math.max(end, extent.offset + extent.size), 0);
  return Math.min(end, MAX_HELD, size);
}

async function writeStart(file: FileHandle, bytes: Buffer): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    done += (await file.write(bytes, done, bytes.length - done, done)).bytesWritten;
  }
  await file.datasync();
}

type Direct = { readonly file: FileHandle; readonly alignment: number };

/**
 * Finds an offset in the memory that direct I/O accepts by trying, as for files; undefined if no offset is accepted.
 */
async function openDirect(buffered: FileHandle, bytes: Buffer): Promise<Direct | undefined> {
  const file = await reopen(buffered, constants.O_RDWR | constants.O_DIRECT);
  for (let alignment = 0; alignment < DIRECT_ALIGNMENT; alignment += 8) {
    try {
      await file.read(bytes, alignment, DIRECT_ALIGNMENT, 0);
      return { file, alignment };
    } catch (error) {
      if (isErrno(error, 'EINVAL')) continue;
      await file.close();
      throw error;
    }
  }
  await file.close();
  return undefined;
}

/** Holds the first bytes of the output in memory: they are written to it and read from it. */
function holdBack(output: OutputFile, held: Buffer, bytes: Buffer): OutputFile {
  const cut = ({ start, size }: Slice, position: number): [Slice, Slice] => {
    const inside = Math.max(0, Math.min(size, held.length - position));
    return [
      { start, size: inside },
      { start: start + inside, size: size - inside },
    ];
  };
  return {
    ...output,
    async write(slice, position, cached) {
      const [first, rest] = cut(slice, position);
      if (first.size > 0) bytes.copy(held, position, first.start, first.start + first.size);
      if (rest.size === 0) return;
      // The rest is no longer aligned for direct I/O.
      await output.write(rest, position + first.size, cached || first.size > 0);
    },
    async read(slice, position) {
      const [first, rest] = cut(slice, position);
      if (first.size > 0) held.copy(bytes, first.start, position, position + first.size);
      if (rest.size > 0) await output.read(rest, position + first.size);
    },
  };
}

type Reader = Partial<Direct> & {
  readonly path: string;
  readonly bytes: Buffer;
  readonly held: Buffer;
  readonly buffered: FileHandle;
};

/** Reads from the device and not from the page cache, as far as direct I/O is possible. */
async function reread(reader: Reader, { start, size }: Slice, position: number): Promise<void> {
  const { file, buffered, bytes, path } = reader;
  const whole = file && position % DIRECT_ALIGNMENT === 0 ? size - (size % DIRECT_ALIGNMENT) : 0;
  for (let done = 0; done < size;) {
    const from = done < whole && file ? file : buffered;
    const length = (done < whole ? whole : size) - done;
    const { bytesRead } = await explaining(path, () =>
      from.read(bytes, start + done, length, position + done),
    );
    if (bytesRead === 0) throw new DiskError('output.shrunk', `"${path}" became shorter`);
    done += bytesRead;
  }
}

/** One buffer is hashed while the next one is read. */
async function compareAll(
  reader: Reader,
  size: number,
  { digest, hasher, signal, onBytes }: Expected,
): Promise<void> {
  const { bytes, held, alignment = 0 } = reader;
  const stream = hasher.open();
  let hashing: Promise<unknown> = Promise.resolve();
  for (let position = 0, turn = 0; position < size; position += BUFFER_SIZE, turn = 1 - turn) {
    signal.throwIfAborted();
    const start = alignment + turn * BUFFER_SIZE;
    const slice = { start, size: Math.min(BUFFER_SIZE, size - position) };
    await reread(reader, slice, position);
    if (position === 0) held.copy(bytes, start);
    await hashing;
    hashing = stream.update(slice);
    onBytes(slice.size);
  }
  await hashing;
  const found = await stream.digest();
  if (found !== digest) throw differs(reader, digest, found);
}

async function compareStart(reader: Reader): Promise<void> {
  const { held, bytes, alignment = 0 } = reader;
  await reread(reader, { start: alignment, size: held.length }, 0);
  const found = bytes.subarray(alignment, alignment + held.length);
  if (!found.equals(held)) throw differs(reader, digestOf(held), digestOf(found));
}

const differs = ({ path }: Reader, expected: Digest, found: Digest): IntegrityError =>
  new IntegrityError(
    'device.differs',
    `${path} does not return the bytes that were written to it`,
    {
      expected,
      found,
      hint: 'run the same command again; if it differs again, use another device',
    },
  );
