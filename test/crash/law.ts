import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { digestFile } from '../../src/base/disk/files.ts';
import { startSealift } from '../support/child.ts';
import { copyTemplate, copyToDisk } from './copies.ts';
import type { Row } from './rows.ts';
import { END, isCut, readSpoiled, readSteps, spoiling, STEADY, tracing } from './steps.ts';
import type { Fault, Step } from './steps.ts';

/*
 * The law of a crash: a step of a command is spoiled; the outputs are the old or the new ones, byte
 * for byte, no error is a bug, and the same command ends with the new ones and leaves no litter.
 */

/** Exit codes of foreseen failures (docs/exit-codes.md); 1 is a bug, 2 a mistake of this run. */
const FORESEEN: ReadonlySet<number | null> = new Set([3, 4, 5, 6, 7, 8]);

/** The exit code that strace(1) gives for SIGKILL, if it outlives the signal itself. */
const KILLED = 137;

/** Longer than any command of the table takes on a busy machine. */
const HANG_MS = 120_000;

/** What a command makes of its folder when nothing fails, and its steps meanwhile. */
export type Course = {
  readonly row: Row;
  /** A folder as it is before the command; each attempt gets a copy. */
  readonly template: string;
  readonly before: Outputs;
  readonly after: Outputs;
  readonly steps: readonly Step[];
};

/** Digests by name; undefined if there is no such file. */
type Outputs = ReadonlyMap<string, string | undefined>;

type Ended = {
  readonly code: number | null;
  readonly stderr: string;
  /** Sentences about answers that were wrong while it ran. */
  readonly answers: readonly string[];
};

/** Runs the command of a row once under strace(1), with no fault. */
export async function follow(row: Row, template: string): Promise<Course> {
  const { path, trace, close } = copyTemplate(template);
  try {
    const before = await digestOutputs(row, path);
    const ended = await run(row, path, tracing(trace));
    if (ended.code !== (row.code ?? 0)) throw new Error(`${row.name} fails:\n${ended.stderr}`);
    const problems = await findFaults(row, path);
    if (problems.length > 0) throw new Error(`${row.name}: ${problems.join('\n')}`);
    const steps = await readSteps(trace, path);
    return { row, template, before, after: await digestOutputs(row, path), steps };
  } finally {
    close();
  }
}

/** The outcome of one step that was spoiled. */
export type Verdict = {
  /** The spoiled call; undefined if another run did not come by this step. */
  readonly hit: string | undefined;
  /** `killed`, `0`, or an exit code with the error's own. */
  readonly end: string;
  /** Sentences about what broke the law; empty if it holds. */
  readonly problems: readonly string[];
};

/** Spoils one step of a row, judges what is there, runs the command again and judges that. */
export async function spoil(course: Course, step: Step, fault: Fault): Promise<Verdict> {
  const { row, template, before, after } = course;
  const disk = isCut(fault) ? copyToDisk(template) : undefined;
  const { path, trace, close } = disk ?? copyTemplate(template);
  try {
    const ended = await run(row, path, spoiling(trace, step, fault));
    const { hits, others } = await readSpoiled(trace, path);
    const [hit] = hits;
    if (hit === undefined || others.length > 0)
      return { hit: undefined, end: 'missed', problems: [] };
    disk?.cut(fault === 'torn');
    const found = await digestOutputs(row, path);
    // Programs that the command runs end as well: then it has failed before its own end.
    const isEnd = step.call === END && errorCode(ended.stderr) === undefined;
    const isNew = ended.code === (row.code ?? 0) || isEnd;
    const problems = [
      ...judgeEnd(ended, row),
      ...compare(found, isNew ? [after] : row.isInPlace ? [] : [before, after]),
    ];
    const again = await run(row, path);
    problems.push(...judgeAgain(again, row));
    problems.push(...compare(await digestOutputs(row, path), [after]));
    // A refusal changes nothing, so the stale lock of the killed run stays.
    if (hasEnded(again, row)) problems.push(...(await findFaults(row, path)));
    const shown =
      problems.length > 0 ? [`first run:\n${ended.stderr}`, `again:\n${again.stderr}`] : [];
    return { hit, end: nameEnd(ended), problems: [...problems, ...shown] };
  } finally {
    close();
  }
}

async function run(row: Row, cwd: string, under: readonly string[] = []): Promise<Ended> {
  const child = startSealift(row.args(cwd), { cwd, under, env: { ...STEADY, ...row.env } });
  const watch = setTimeout(() => child.process.kill('SIGKILL'), HANG_MS);
  try {
    const driven = row.drive?.(child);
    const { code, stderr } = await child.ended;
    return { code, stderr, answers: (await driven) ?? [] };
  } finally {
    clearTimeout(watch);
  }
}

async function digestOutputs({ outputs }: Row, folder: string): Promise<Outputs> {
  const digests = new Map<string, string | undefined>();
  for (const name of outputs) {
    const path = join(folder, name);
    digests.set(name, existsSync(path) ? await digestFile(path) : undefined);
  }
  return digests;
}

const errorCode = (stderr: string): string | undefined =>
  /^error: [^]*?\[([a-z0-9.-]+)\]$/m.exec(stderr)?.[1];

const nameEnd = ({ code, stderr }: Ended): string =>
  code === null || code === KILLED ? 'killed' : `${code} ${errorCode(stderr) ?? ''}`.trim();

function judgeEnd(ended: Ended, row: Row): readonly string[] {
  const { code, stderr, answers } = ended;
  if (/^\s+at .*:\d+:\d+\)?$/m.test(stderr)) return [...answers, 'it prints a stack'];
  const isDone = code === null || code === KILLED || code === (row.code ?? 0);
  if (isDone || (FORESEEN.has(code) && errorCode(stderr) !== undefined)) return answers;
  return [...answers, `it ends with ${code}, which is not a foreseen failure`];
}

const hasEnded = ({ code }: Ended, row: Row): boolean => code === (row.code ?? 0) || code === 0;

/** A run that was killed after its work was done may refuse to do it again. */
function judgeAgain(ended: Ended, row: Row): readonly string[] {
  const { finished } = row;
  if (hasEnded(ended, row)) return ended.answers;
  const isRefusal = finished !== undefined && errorCode(ended.stderr) === finished;
  return isRefusal ? [] : [`the same command then ends with ${ended.code}`];
}

/** Compares each output with those that it may be; no list means that any contents are allowed. */
function compare(found: Outputs, allowed: readonly Outputs[]): readonly string[] {
  if (allowed.length === 0) return [];
  return [...found].flatMap(([name, digest]) => {
    const isAllowed = allowed.some((outputs) => outputs.get(name) === digest);
    return isAllowed ? [] : [`${name} is ${digest ?? 'absent'}, which is neither old nor new`];
  });
}

/** Files that only a run under way may have, and what the row itself says of its results. */
async function findFaults(row: Row, folder: string): Promise<readonly string[]> {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const litter = names.filter(
    (name) =>
      !name.startsWith('.sealift') &&
      /\.(?:tmp|partial|journal)(?:\.|$)|\.lock(?:\.[0-9a-f]+)*$/.test(name),
  );
  const found = (await row.judge?.(folder)) ?? [];
  return [...litter.map((name) => `${name} is left`), ...found];
}
