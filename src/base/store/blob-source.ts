import type { Digest } from '../digest.ts';
import { openListed } from '../disk/open-file.ts';
import type { FillOptions } from '../download/fill-file.ts';
import { joinAnswers, restate } from '../download/source-answers.ts';
import {
  type OpenBytes,
  type OpenOptions,
  type Source,
  readSources,
  type Chunk,
  type ReadOptions,
} from '../download/sources.ts';
import { IntegrityError, RegistryError } from '../errors.ts';

/** Bytes that a store or a source may have, by their digest. */
export type Content = {
  readonly digest: Digest;
  /** Bytes. */
  readonly size: number;
};

/**
 * One place a blob may come from: a local cache, a mirror, the origin, or an earlier ISO. The
 * reader verifies: a source may return wrong, short or long bytes.
 */
export type BlobSource = Source & {
  /** The blob; undefined if this source does not have it; throws if it cannot tell. */
  open: (blob: Content, options: OpenOptions) => Promise<OpenBytes | undefined>;
  /**
   * The position of the blob in a file of this machine, for readers that copy files; undefined if
   * this source does not have the blob. Absent: bytes come by `open` alone.
   *
   * @param onFetched called with the bytes that are brought to this machine before
   */
  readonly fileOf?: (
    blob: Content,
    onFetched?: (size: number) => void,
  ) => Promise<FilePosition | undefined>;
};

export type FilePosition = {
  readonly path: string;
  /** Position of the blob's first byte. */
  readonly position: number;
  /** True if a record of an earlier build vouches for the bytes; else the reader verifies. */
  readonly isRecorded?: boolean;
  /**
   * True if others write to its folder: it was seen as a file, and is opened only if no link took its place.
   */
  readonly isListed?: boolean;
};

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

export async function hasLocal(sources: readonly BlobSource[], blob: Content): Promise<boolean> {
  for (const source of sources) {
    if ((await source.fileOf?.(blob)) !== undefined) return true;
  }
  return false;
}

/**
 * Reads a blob from `offset` to its end, from the first source that has it to the last: `readSources`.
 *
 * @throws if no source is left: an error that names the blob and the answer of each source, with
 * the code of the worst (`findWorst`): IntegrityError `blob.too-long`, `blob.too-short`;
 * RegistryError `blob.unknown` and those of the client; the signal's reason
 */
export const readBlob = (
  sources: readonly BlobSource[],
  blob: Content,
  options: ReadOptions,
): AsyncGenerator<Chunk<BlobSource>> => readSources(sources, describeBlob(blob), options);

/** The form of a blob for `readSources` and `fillFile`. */
export function describeBlob(blob: Content): FillOptions<BlobSource>['wanted'] {
  const { digest, size } = blob;
  const should = `blob ${digest} should be ${size} bytes, but`;
  const expected = String(size);
  return {
    digest,
    size,
    limit: size,
    async open(source, options) {
      const opened = await source.open(blob, options);
      if (opened) return opened;
      throw new RegistryError('blob.unknown', `${source.name} does not have it`);
    },
    explainLong: ({ name }) =>
      new IntegrityError('blob.too-long', `${should} ${name} sends more than ${size}`, {
        expected,
        found: `more than ${size}`,
      }),
    explainShort: ({ name }, sent) =>
      new IntegrityError('blob.too-short', `${should} ${name} ends after ${sent}`, {
        expected,
        found: String(sent),
      }),
    explainWrong: ({ found, from }) =>
      new IntegrityError(
        'blob.digest-mismatch',
        `blob from ${from.join(', ') || 'nowhere'} should be ${digest}, but is ${found}`,
        { expected: digest, found },
      ),
    explainAll(answers) {
      const subject = `blob ${digest} (${size} bytes)`;
      if (answers.length === 0)
        return new RegistryError('blob.unknown', `${subject} has no sources`);
      const joined = joinAnswers(answers);
      return restate(joined, `${subject} cannot be fetched: ${joined.message}`);
    },
  };
}
