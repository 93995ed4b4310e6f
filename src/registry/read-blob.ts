import { readSources, type Chunk, type ReadOptions } from '../base/download/read-sources.ts';
import type { FillOptions } from '../base/download/fill-file.ts';
import { IntegrityError, RegistryError } from '../base/errors.ts';
import type { BlobSource } from './blob-source.ts';
import type { Descriptor } from './descriptor.ts';
import { joinAnswers, restate } from './source-answers.ts';

/**
 * Reads a blob from `offset` to its end, from the first source that has it to the last: `readSources`.
 *
 * @throws when no source is left: an error that names the blob and what each source answered, with
 * the code of the worst (`findWorst`): IntegrityError `blob.too-long`, `blob.too-short`; RegistryError
 * `blob.unknown` and those of the client; the signal's reason
 */
export const readBlob = (
  sources: readonly BlobSource[],
  blob: Descriptor,
  options: ReadOptions,
): AsyncGenerator<Chunk<BlobSource>> => readSources(sources, describeBlob(blob), options);

/** A blob for `readSources` and `fillFile`. */
export function describeBlob(blob: Descriptor): FillOptions<BlobSource>['wanted'] {
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
