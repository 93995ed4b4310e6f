import type { OpenBytes, OpenOptions, Source } from '../base/download/source.ts';
import { openListed } from '../base/disk/open-file.ts';
import type { Descriptor } from './descriptor.ts';

/**
 * One place a blob may come from: a local cache, a mirror, the origin, later a previous ISO.
 * Whoever reads verifies: a source may return wrong, short or long bytes.
 */
export type BlobSource = Source & {
  /** undefined when this source does not have the blob; throws when it cannot tell. */
  open: (blob: Descriptor, options: OpenOptions) => Promise<OpenBytes | undefined>;
  /**
   * Where the blob is in a file of this machine, for readers that copy files; undefined when this source
   * does not have the blob. Absent: bytes come by `open` alone.
   *
   * @param onFetched told the bytes that are brought to this machine before
   */
  readonly fileOf?: (
    blob: Descriptor,
    onFetched?: (size: number) => void,
  ) => Promise<FilePosition | undefined>;
};

export type FilePosition = {
  readonly path: string;
  /** Of the blob's first byte. */
  readonly position: number;
  /** Whether a record of an earlier build stands for the bytes; else whoever reads verifies. */
  readonly isRecorded?: boolean;
  /** Whether others write to its folder: it was seen as a file, and is opened where no link took its place. */
  readonly isListed?: boolean;
};

/** A place on this machine that has blobs in files. */
export const createLocalSource = (
  name: string,
  fileOf: NonNullable<BlobSource['fileOf']>,
): BlobSource => ({
  name,
  local: true,
  fileOf,
  async open(blob, { offset }) {
    const found = await fileOf(blob);
    if (!found) return undefined;
    const file = await openListed(found.path);
    const start = found.position + offset;
    const body = file.createReadStream({ start, end: found.position + blob.size - 1 });
    return { offset, body };
  },
});

/** Whether one of these sources has a file of this machine with the blob. */
export async function hasLocal(sources: readonly BlobSource[], blob: Descriptor): Promise<boolean> {
  for (const source of sources) {
    if ((await source.fileOf?.(blob)) !== undefined) return true;
  }
  return false;
}
