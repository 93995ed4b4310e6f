import cluster, { type Worker } from 'node:cluster';
import { startTimer } from '../../base/wait.ts';
import type { FromWorker, ToWorker, WorkerReport } from './messages.ts';

/* Owns one worker, from the first process. */

export type Member = {
  readonly worker: Worker;
  /** Time of its start, by `performance.now()`. */
  readonly since: number;
  isReady: boolean;
  isListening: boolean;
  /** Amounts that owners have of it, by its last report. */
  tenants: ReadonlyMap<string, number>;
  owners: ReadonlyMap<string, number>;
  /** Numbers of changes that it has not forgotten yet, with what to call then. */
  readonly waiting: Map<number, () => void>;
};

export type MemberEvents = {
  readonly ready: (member: Member) => void;
  /** It listens, or cannot. */
  readonly listening: (failure?: Error) => void;
  readonly report: (member: Member, report: WorkerReport) => void;
  /** @param why exit code, or the signal that ended it */
  readonly ended: (member: Member, why: string) => void;
};

/** Milliseconds for a worker to forget; one that does not answer is killed. */
const FORGET_WITHIN = 1000;

export function startMember(events: MemberEvents): Member {
  const worker = cluster.fork(hideEnvironment());
  const member: Member = {
    worker,
    since: performance.now(),
    isReady: false,
    isListening: false,
    tenants: new Map(),
    owners: new Map(),
    waiting: new Map(),
  };
  worker.on('message', (message: FromWorker) => {
    takeMessage(member, message, events);
  });
  worker.on('error', () => undefined); // a message to a worker that has ended
  worker.on('exit', (code, signal) => {
    for (const done of member.waiting.values()) done();
    events.ended(member, signal || `exit code ${code}`);
  });
  return member;
}

function takeMessage(member: Member, message: FromWorker, events: MemberEvents): void {
  switch (message.type) {
    case 'ready':
      member.isReady = true;
      events.ready(member);
      break;
    case 'listening':
      member.isListening = true;
      events.listening();
      break;
    case 'failed':
      events.listening(new Error(message.message));
      break;
    case 'forgotten':
      member.waiting.get(message.number)?.();
      break;
    case 'report':
      if (message.tenants) member.tenants = new Map(message.tenants);
      if (message.owners) member.owners = new Map(message.owners);
      events.report(member, message);
      break;
    case 'drained':
      break;
  }
}

/** Variables that a worker has: not those with keys. */
const SHOWN = new Set(['PATH', 'HOME', 'TMPDIR', 'TZ', 'LANG', 'NODE_OPTIONS']);

/** Overrides for the environment of a worker, which gets the rest as it is. */
const hideEnvironment = (): NodeJS.ProcessEnv =>
  Object.fromEntries(
    Object.keys(process.env).flatMap((name) => (SHOWN.has(name) ? [] : [[name, undefined]])),
  );

export function tellMember({ worker, isReady }: Member, message: ToWorker): void {
  if (isReady && worker.isConnected()) worker.send(message, () => undefined);
}

export const killMember = ({ worker }: Member): void => {
  worker.process.kill('SIGKILL');
};

/** Resolves when a worker has forgotten, or has ended. */
export const forgetInMember = (
  member: Member,
  message: Extract<ToWorker, { readonly type: 'forget' }>,
): Promise<void> =>
  new Promise((resolve) => {
    const late = startTimer(FORGET_WITHIN, () => {
      killMember(member);
    });
    member.waiting.set(message.number, () => {
      late.stop();
      member.waiting.delete(message.number);
      resolve();
    });
    tellMember(member, message);
  });

export const whenEnded = ({ worker }: Member): Promise<void> =>
  new Promise((resolve) => {
    worker.once('exit', () => {
      resolve();
    });
  });
