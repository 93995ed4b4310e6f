import { readFile } from 'node:fs/promises';

/*
 * The calls of the system that change a disk, as strace(1) sees them: found in a trace of a run, and
 * spoiled in another run.
 */

/** The last call of a program: all that it said is done. */
export const END = 'exit_group';

/** Calls that change files, opening one, which has limits of its own, and the end. */
const CALLS = [
  ...['rename', 'renameat', 'renameat2', 'link', 'linkat', 'unlink', 'unlinkat', 'rmdir'],
  ...['fsync', 'fdatasync', 'truncate', 'ftruncate', 'fallocate', 'mkdir', 'mkdirat'],
  ...['write', 'writev', 'pwrite64', 'pwritev', 'pwritev2', 'copy_file_range', 'sendfile'],
  ...['openat', 'chmod', 'fchmod', 'symlink', 'symlinkat'],
  END,
] as const;

type CallName = (typeof CALLS)[number];

/** `cut`: the power is cut; `torn`: the same, when the names had been written, but not the contents. */
export const FAULTS = ['kill', 'cut', 'torn', 'EIO', 'ENOSPC', 'EMFILE'] as const;
export type Fault = (typeof FAULTS)[number];

export const isCut = (fault: Fault): fault is 'cut' | 'torn' => fault === 'cut' || fault === 'torn';

/** One call of a run, named so that another run finds it again. */
export type Step = {
  readonly call: CallName;
  /** From 1, among the calls of this name of one thread: so strace counts. */
  readonly nth: number;
  /** The call with its arguments, as strace prints it. */
  readonly text: string;
};

/** Which calls a fault may meet: the kernel has no room only for new bytes, names and inodes. */
export const mayMeet = ({ call }: Pick<Step, 'call'>, fault: Fault): boolean => {
  if (call === END) return fault === 'cut';
  if (fault === 'kill' || isCut(fault)) return call !== 'openat';
  if (fault === 'EMFILE') return call === 'openat';
  if (fault === 'EIO') return true;
  return !/^(?:unlink|unlinkat|rmdir|chmod|fchmod)$/.test(call);
};

const COUNT_UP = new URL('count-up.mjs', import.meta.url).href;

/** One thread for the calls of files makes their order nearly the same in every run. */
export const STEADY = { UV_THREADPOOL_SIZE: '1', NODE_OPTIONS: `--import=${COUNT_UP}` };

/** The words before a program whose calls are written to a file. */
export const tracing = (file: string): readonly string[] => [
  ...['strace', '-f', '-y', '-qq', '--seccomp-bpf', '-s', '40', '-o', file],
  ...['-e', `trace=${CALLS.map((call) => `?${call}`).join(',')}`, '-e', 'signal=none'],
];

/**
 * The words before a program in which one step is spoiled. A signal at another call than the first
 * is lost with --seccomp-bpf (strace 6.1).
 */
export const spoiling = (file: string, { call, nth }: Step, fault: Fault): readonly string[] => [
  ...['strace', '-f', '-y', '-qq', '-s', '40', '-o', file, '-e', `trace=${call}`],
  ...(fault === 'kill' || isCut(fault)
    ? ['-e', `inject=${call}:signal=KILL:when=${nth}`]
    : ['--seccomp-bpf', '-e', 'signal=none', '-e', `inject=${call}:error=${fault}:when=${nth}`]),
];

/**
 * The steps of a traced run on files below a folder. A step at which another thread makes a call of
 * the same name elsewhere is left out: no fault meets it alone.
 */
export async function readSteps(file: string, folder: string): Promise<readonly Step[]> {
  const counts = new Map<string, number>();
  const steps: Step[] = [];
  const elsewhere = new Set<string>();
  for (const line of (await readFile(file, 'utf8')).split('\n')) {
    const [, thread = '', call = '', args = ''] = /^(\d+) +(\w+)\((.*)$/.exec(line) ?? [];
    if (call === '') continue; // the second half of a call, or the end of a thread
    const nth = (counts.get(`${thread} ${call}`) ?? 0) + 1;
    counts.set(`${thread} ${call}`, nth);
    if (isBelow(line, folder)) steps.push({ call: call as CallName, nth, text: `${call}(${args}` });
    else if (!isIdle(args)) elsewhere.add(`${call} ${nth}`);
  }
  return steps.filter(({ call, nth }) => !elsewhere.has(`${call} ${nth}`));
}

/** What count-up.mjs opens. */
const isIdle = (args: string): boolean => args.includes('"/dev/null"');

/** The work directory is named by its open directory. */
const isBelow = (line: string, folder: string): boolean =>
  line.includes(`${folder}/`) ||
  line.includes(`${END}(`) ||
  /"\/proc\/(?:\d+|self)\/fd\/\d+/.test(line);

/**
 * The spoiled calls of a run: on files below the folder, and others, such as the pipes between the
 * threads of Node.
 */
export async function readSpoiled(
  file: string,
  folder: string,
): Promise<{ readonly hits: readonly string[]; readonly others: readonly string[] }> {
  const lines = (await readFile(file, 'utf8')).split('\n');
  const spoiled = lines.filter(
    (line) => line.includes('(INJECTED)') || / = \?$|<unfinished \.\.\.>$/.test(line),
  );
  const [hits, others]: [string[], string[]] = [[], []];
  for (const line of spoiled) {
    if (isBelow(line, folder)) hits.push(line);
    else if (!isIdle(line)) others.push(line);
  }
  return { hits, others };
}
