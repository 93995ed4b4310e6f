import { RegistryError } from '../../base/errors.ts';
import { explainNetworkFailure, TransientError } from '../../base/http/network-failure.ts';
import type { RangeSource } from '../../base/range-source.ts';
import type { Budget } from '../../base/retry.ts';
import type { ByteRange } from '../../iso/random-access.ts';

/** Reads ranges to their end, in order, whatever breaks off in between. */
export type RangeReader = (
  range: ByteRange,
  take: (bytes: Uint8Array, at: number) => void,
) => Promise<void>;

export type RangeReading = {
  readonly signal: AbortSignal;
  /** How long a source that gives no byte is asked again. */
  readonly openBudget: (signal: AbortSignal) => Budget;
  /** Who is asked, for errors of the network. */
  readonly host: string;
};

/**
 * A range is asked for again from where it broke off. `take` gets each byte once.
 *
 * @throws RegistryError `source.range` for more bytes than were asked for, `source.too-short` where a source
 * ends twice at one place without an error; what the source throws; the signal's reason
 */
export function createRangeReader(
  source: RangeSource,
  { signal, openBudget, host }: RangeReading,
): RangeReader {
  return async ({ offset, size }, take) => {
    const budget = openBudget(signal);
    let endedAt: number | undefined;
    for (let done = 0; done < size;) {
      const rest = { offset: offset + done, size: size - done };
      try {
        for await (const bytes of await source.open(rest, signal)) {
          if (done + bytes.length > size) throw tooLong(source, rest);
          take(bytes, done);
          done += bytes.length;
          budget.progress();
        }
        if (done === size) return;
        if (endedAt === done) throw tooShort(source, rest);
        endedAt = done;
        throw new TransientError(
          'source.cut',
          `${source.name} broke off at byte ${offset + done}`,
          {
            host,
            answered: true,
          },
        );
      } catch (error) {
        signal.throwIfAborted();
        await budget.pause(explainNetworkFailure(host, error));
      }
    }
  };
}

const tooLong = ({ name }: RangeSource, { offset, size }: ByteRange): RegistryError =>
  new RegistryError('source.range', `${name} gives more bytes than were asked for`, {
    expected: `${size} bytes from byte ${offset}`,
    found: `more than ${size} bytes`,
    hint: 'download it, and name the file',
  });

const tooShort = ({ name, size }: RangeSource, { offset }: ByteRange): RegistryError =>
  new RegistryError('source.too-short', `${name} ends at byte ${offset} again`, {
    expected: `${size} bytes`,
    found: `${offset} bytes`,
    hint: 'upload it again, or name another copy',
  });
