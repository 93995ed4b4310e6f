import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packCase } from './kept-case.ts';
import { nameCase } from './readers.ts';
import { runChild } from './run-child.ts';
import type { ReaderName } from './seeds.ts';

export type Fuzzing = {
  readonly reader: ReaderName;
  /** Built by `buildChild`. */
  readonly program: string;
  readonly directory: string;
  readonly seed: number;
  readonly seconds: number;
};

/** A case that failed. */
export type Failure = {
  readonly reader: ReaderName;
  readonly index: number;
  /** What went wrong. */
  readonly what: string;
  readonly size: number;
  /** The case, packed: its name, and where it is. */
  readonly name: string;
  readonly path: string;
  /** Whether it fails when it is read alone; else what was before it had a part in it. */
  readonly isAlone: boolean;
};

/**
 * Reads mutated files until the time is over, or until `onFailure` returns true.
 *
 * @returns how many
 */
export async function fuzzReader(
  { reader, program, directory, seed, seconds }: Fuzzing,
  onFailure: (failure: Failure) => boolean | Promise<boolean>,
): Promise<number> {
  const end = Date.now() + seconds * 1000;
  const left = (): number => (end - Date.now()) / 1000;
  let first = 0;
  do {
    const args = ['--seed', String(seed), '--first', String(first), '--seconds', left().toFixed(1)];
    const { index, failure: what, bytes } = await runChild(program, { reader, directory, args });
    first = index + 1;
    if (what === undefined) continue;
    if (!bytes) throw new Error(`no bytes of a case of ${reader}: ${what}`);
    const name = `${nameCase(bytes)}.${index % 6}.br`;
    const path = join(directory, name);
    writeFileSync(path, packCase(bytes));
    const isAlone = await failsAlone(program, { reader, directory, path, index });
    const failure = { reader, index, what, size: bytes.length, name, path, isAlone };
    if (await onFailure(failure)) break;
  } while (left() > 1);
  return first;
}

type Case = Pick<Failure, 'reader' | 'index' | 'path'> & Pick<Fuzzing, 'directory'>;

export async function failsAlone(
  program: string,
  { reader, directory, path, index }: Case,
): Promise<boolean> {
  const args = [`${path}#${index % 6}`];
  return (await runChild(program, { reader, directory, args })).failure !== undefined;
}
