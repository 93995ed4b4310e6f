import type { FileHandle } from 'node:fs/promises';
import { writeFileAtomic } from '../../../base/disk/files.ts';
import { openOwnFile, readOwnFile } from '../../../base/disk/open-file.ts';
import { explainWriteError } from '../../../base/disk/disk-errors.ts';
import { parseJsonObject } from '../../../shape/go-json.ts';
import type { NewIso, OldIso } from './list-moves.ts';

/**
 * What changing an ISO in place has achieved.
 *
 *     {"delta":"sha256:...","now":{...},"old":{...},"run":"..."}    what is applied, what the ISO becomes, what it was
 *     <n>                                               the first n steps are on the disk
 *
 * Both ISOs stand in it because the index that names their extents is overwritten soon. A torn last line is ignored.
 */
export type StepJournal = {
  /** Names the delta, and with it both ISOs. */
  readonly delta: string;
  /** Stands on the medium, too: two media may be half-way by one delta. */
  readonly run: string;
  readonly old: OldIso;
  readonly now: NewIso;
  /** Steps that are on the disk. */
  readonly done: number;
};

/** Undefined where there is none. */
export async function readStepJournal(path: string): Promise<StepJournal | undefined> {
  const text = (await readOwnFile(path))?.toString('utf8');
  const [head, ...lines] = text?.slice(0, text.lastIndexOf('\n')).split('\n') ?? [];
  if (!head?.startsWith('{')) return undefined;
  const journal = parseJsonObject(head);
  if (!journal) return undefined;
  const { delta, now, old, run } = journal as unknown as StepJournal;
  return { delta, now, old, run, done: Number(lines.at(-1) ?? 0) };
}

/** Writes the first line, and opens the journal to append; `note` returns when the line is on the disk. */
export async function startStepJournal(
  path: string,
  { delta, now, old, run, done }: StepJournal,
): Promise<{
  readonly note: (done: number) => Promise<void>;
  readonly close: () => Promise<void>;
}> {
  await writeFileAtomic(path, `${JSON.stringify({ delta, now, old, run })}\n${done}\n`);
  const file: FileHandle = await openOwnFile(path, { create: false, append: true });
  return {
    async note(count) {
      try {
        await file.appendFile(`${count}\n`);
        await file.datasync();
      } catch (error) {
        throw explainWriteError(error, path);
      }
    },
    close: () => file.close(),
  };
}
