import type { Answer } from './ask.ts';

/** What the run has met. */
export type Report = {
  readonly count: (what: string, by?: number) => void;
  /** One of these ends the run with a failure. */
  readonly problem: (what: string) => void;
  readonly counts: ReadonlyMap<string, number>;
  readonly problems: readonly string[];
};

export function createReport(): Report {
  const counts = new Map<string, number>();
  const problems: string[] = [];
  return {
    counts,
    problems,
    count(what, by = 1) {
      counts.set(what, (counts.get(what) ?? 0) + by);
    },
    problem(what) {
      problems.push(what);
      if (problems.length <= 20) console.error(`PROBLEM ${what}`);
    },
  };
}

type Judging = {
  readonly report: Report;
  /** Whether the server of the store was away in this time. */
  readonly wasStoreAway: (from: number, until: number) => boolean;
  /** Whether the database was away in this time. */
  readonly wasDatabaseAway: (from: number, until: number) => boolean;
};

/** Requests wait no longer for an ISO that is being opened. */
const OPENING_MS = 5000;

type Judged = {
  readonly what: string;
  readonly allowed: readonly number[];
  /** Whether it needs what the server of the store has. */
  readonly isRemote?: boolean;
};

/**
 * Whether an answer came that the state allows. A connection that broke for no reason, an answer that the
 * state does not allow, and a server that hangs are problems.
 */
export function judge(
  { report, wasDatabaseAway, wasStoreAway }: Judging,
  answer: Answer,
  { what, allowed, isRemote = false }: Judged,
): answer is Extract<Answer, { kind: 'answer' }> {
  const lacksStore = isRemote && wasStoreAway(answer.began, performance.now());
  if (answer.kind === 'broken') {
    const { excuse = lacksStore && answer.head ? 'store' : undefined } = answer;
    if (excuse !== undefined) report.count(`broken by ${excuse}`);
    else report.problem(`${what}: ${answer.message} after ${answer.received} bytes`);
    return false;
  }
  const { status, began, text } = answer;
  report.count(`${what.split(' ')[0] ?? what} ${status}`);
  if (allowed.includes(status)) return true;
  if (status === 503 && wasDatabaseAway(began, performance.now())) {
    report.count('answers without a database');
    return false;
  }
  if (status === 503 && lacksStore) {
    report.count('answers without a store');
    return false;
  }
  if (status === 503 && performance.now() - began >= OPENING_MS) {
    report.count('answers of a slow machine');
    return false;
  }
  report.problem(`${what}: ${status} is not one of ${allowed.join(', ')}: ${text.slice(0, 500)}`);
  return false;
}
