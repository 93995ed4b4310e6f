import { randomBytes } from 'node:crypto';
import { readFile, readlink } from 'node:fs/promises';
import { hostname } from 'node:os';
import { digestOf, hexOf } from '../digest.ts';
import { isErrno } from '../errors.ts';

/*
 * Identifies the processes that hold leases and incomplete files, and judges whether they live. A
 * process id alone says little: ids are used again, and another container has its own.
 */

/** A process that made a file. An earlier version wrote only its id and its start, or also its space. */
export type Holder = {
  readonly pid: number;
  /** Clock ticks from the start of the machine to the start of the process. */
  readonly start: string;
  /** Boot of the machine and namespace of process ids, digested: the same text is the same /proc. */
  readonly space?: string;
  /** Boot of the machine, digested. */
  readonly boot?: string;
  /** The machine, digested; `-` for a process in a container, whose machine has no name that stays. */
  readonly machine?: string;
  /** Inode of the namespace of process ids, which `lsns` shows; `-` if it is not known. */
  readonly namespace?: string;
  readonly host?: string;
  /** Milliseconds since 1970, by the clock of the holder: for people only. */
  readonly since?: number;
};

export type Self = Required<Omit<Holder, 'since'>>;

/** `elsewhere`: a process that cannot be seen from here. It lives as long as it renews its file. */
export type Judgement = 'alive' | 'dead' | 'elsewhere';

/** The namespaces of a machine itself, not of a container on it: include/linux/proc_ns.h. */
const OF_MACHINE = { pid: 'pid:[4026531836]', uts: 'uts:[4026531838]' } as const;

let self: Promise<Self> | undefined;

export const readSelf = (): Promise<Self> => (self ??= identify());

async function identify(): Promise<Self> {
  const boot = await readFile('/proc/sys/kernel/random/boot_id', 'latin1').catch(() => '');
  const pids = await readlink('/proc/self/ns/pid').catch(() => randomBytes(8).toString('hex'));
  const names = await readlink('/proc/self/ns/uts').catch(() => '');
  const id = await readFile('/etc/machine-id', 'latin1').catch(() => '');
  const isMachine = pids === OF_MACHINE.pid && names === OF_MACHINE.uts && id !== '';
  return {
    pid: process.pid,
    start: (await readStartTime(process.pid)) ?? '0',
    space: shorten(boot + pids),
    boot: shorten(boot),
    machine: isMachine ? shorten(id + hostname()) : '-',
    namespace: /^pid:\[(\d+)\]$/.exec(pids)?.[1] ?? '-',
    host:
      hostname()
        .replace(/[^\w.-]/g, '_')
        .slice(0, 64) || '-',
  };
}

const shorten = (text: string): string => hexOf(digestOf(text)).slice(0, 16);

/**
 * Text of a lease or a claim, of this version or an earlier one. A killed process may leave the
 * first part of it on a file system without links.
 *
 *     pid start nonce space boot machine namespace since host   this version
 *     pid start space nonce                                     claims of commit 277b08f
 *     pid start nonce                                           locks of commit 277b08f
 *     pid start                                                 locks before
 */
const TEXT = /^\d{1,10}( \d*( [0-9a-f]*( [0-9a-f]*( [\w.-]*){0,5})?\n?)?)?$/;

/** True for the text of a lease or its first part, also of an earlier version. */
export const isLeaseText = (text: string): boolean => TEXT.test(text);

export const formatHolder = (
  { pid, start, space, boot, machine, namespace, host }: Self,
  { nonce, since }: { readonly nonce: string; readonly since: number },
): string => `${[pid, start, nonce, space, boot, machine, namespace, since, host].join(' ')}\n`;

export function parseHolder(text: string): Holder | undefined {
  if (!/^\d{1,10} \d+[\w .-]*\n?$/.test(text)) return undefined;
  const [pid, start = '', third, fourth, boot, machine, namespace, since, host] = text
    .trim()
    .split(' ');
  const seen = { pid: Number(pid), start };
  if (fourth === undefined) return seen;
  if (boot === undefined) return { ...seen, ...(third !== undefined && { space: third }) };
  return {
    ...seen,
    space: fourth,
    boot,
    machine: machine ?? '-',
    namespace: namespace ?? '-',
    since: Number(since),
    host: host ?? '-',
  };
}

/** Processes elsewhere that were silent for so long that they count as ended. */
const over = new Set<string>();

const keyOf = ({ pid, start, space = '' }: Holder): string => `${pid} ${start} ${space}`;

export const noteOver = (holder: Holder): void => {
  over.add(keyOf(holder));
};

/**
 * Judges a process by what can be seen from here. A holder of an earlier version without a space is
 * looked for in our own.
 */
export async function judge(holder: Holder): Promise<Judgement> {
  const own = await readSelf();
  const { pid, start, space = own.space, boot, machine = '-' } = holder;
  if (over.has(keyOf(holder))) return 'dead';
  if (space === own.space) return (await readStartTime(pid)) === start ? 'alive' : 'dead';
  const hasRestarted = machine !== '-' && machine === own.machine && boot !== own.boot;
  return hasRestarted ? 'dead' : 'elsewhere';
}

/** True if a process of our own space has this id; for names that do not say when it began. */
export const isRunning = async (pid: number): Promise<boolean> =>
  (await readStartTime(pid)) !== undefined;

export async function isSelf(holder: Holder): Promise<boolean> {
  const own = await readSelf();
  return keyOf(holder) === keyOf(own);
}

export function describeHolder({ pid, host, namespace, since }: Holder): string {
  const place = host === undefined ? '' : ` on host ${host} (pid namespace ${namespace ?? '-'})`;
  const time = since === undefined || !(since < 8.64e15) ? '' : `, since ${formatTime(since)}`;
  return `process ${pid}${place}${time}`;
}

const formatTime = (since: number): string => new Date(since).toISOString().replace(/\.\d+Z$/, 'Z');

/**
 * The time at which a process began, which together with its id identifies it for good: ids are
 * used again. Clock ticks after boot, proc(5), /proc/pid/stat field 22; undefined if the process
 * does not exist, or has ended and waits for its parent to ask for its exit code: a container
 * without an init keeps such a zombie forever.
 */
async function readStartTime(pid: number): Promise<string | undefined> {
  try {
    const text = await readFile(`/proc/${pid}/stat`, 'utf8');
    // Field 2 may hold spaces and brackets.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return /^[ZXx]$/.test(fields[0] ?? '') ? undefined : fields[19];
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ESRCH')) return undefined;
    throw error;
  }
}
