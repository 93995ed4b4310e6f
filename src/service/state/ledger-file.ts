import { writeFileAtomic } from '../../base/disk/files.ts';
import { openOwnFile } from '../../base/disk/open-file.ts';
import { explainWriteError } from '../../base/disk/disk-errors.ts';
import { isBaseLine, type LedgerLine } from './ledger.ts';

/*
 * Owns the ledger of records in files: a line of JSON for each change, with all of its lines of the
 * ledger. It is on the disk before the records of the change are.
 */

export type LedgerFile = {
  /** Lines that were read, or added last and settled, from a number on. */
  readonly linesFrom: (since: number) => {
    readonly lines: readonly LedgerLine[];
    /** Lines of the last change before the start, unless it was settled. */
    readonly unsettled: number;
  };
  /** Adds lines. They are settled when `settle` is called, and else taken back by `takeBack`. */
  readonly append: (lines: readonly LedgerLine[]) => Promise<void>;
  /** Replaces all lines; they are settled. */
  readonly replace: (lines: readonly LedgerLine[]) => Promise<void>;
  readonly settle: () => void;
  readonly takeBack: () => Promise<void>;
  /** Notes that all lines are settled, so that the next start does not have to find out. */
  readonly close: () => Promise<void>;
};

export async function openLedgerFile(path: string): Promise<LedgerFile> {
  let file = await openOwnFile(path, { append: true });
  const text = await file.readFile({ encoding: 'utf8' });
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  let size = Buffer.byteLength(whole);
  await file.truncate(size); // a line that was cut off is a change that did not take place
  const groups = whole.split('\n').slice(0, -1).map(parseGroup);
  let known: readonly LedgerLine[] = groups.flat();
  let unsettled = countUnsettled(groups.at(-1) ?? []);
  let added: readonly LedgerLine[] = [];
  let sizeBefore = size;
  return {
    linesFrom(since) {
      known = known.filter(({ seq }) => seq >= since); // earlier ones are not asked for again
      return { lines: known, unsettled: Math.min(unsettled, known.length) };
    },
    async append(lines) {
      const group = formatGroup(lines);
      try {
        await file.appendFile(group);
        await file.datasync();
      } catch (error) {
        await file.truncate(size).catch(() => undefined);
        throw explainWriteError(error, path);
      }
      sizeBefore = size;
      size += Buffer.byteLength(group);
      added = lines;
    },
    async replace(lines) {
      const group = formatGroup(lines);
      await writeFileAtomic(path, group);
      await file.close();
      file = await openOwnFile(path, { append: true });
      size = Buffer.byteLength(group);
      known = lines;
      unsettled = 0;
    },
    settle() {
      known = added;
      unsettled = 0;
    },
    async takeBack() {
      await file.truncate(sizeBefore);
      await file.datasync();
      size = sizeBefore;
    },
    async close() {
      // An empty group: the change before it is complete, and a record that differs is damaged.
      if (unsettled === 0) await file.appendFile(formatGroup([]));
      await file.close();
    },
  };
}

/** Records are never written together with the beginning of a ledger. */
const countUnsettled = (group: readonly LedgerLine[]): number =>
  group[0] && !isBaseLine(group[0]) ? group.length : 0;

const formatGroup = (lines: readonly LedgerLine[]): string =>
  `${JSON.stringify(lines.map(({ seq, text, mac }) => [seq, text, mac]))}\n`;

/** A line that is not ours has a number that no ledger continues with. */
function parseGroup(text: string): readonly LedgerLine[] {
  try {
    const group = JSON.parse(text) as readonly [number, string, string][];
    return group.map(([seq, line, mac]) => ({ seq, text: line, mac }));
  } catch {
    return [{ seq: Infinity, text: '', mac: '' }];
  }
}
