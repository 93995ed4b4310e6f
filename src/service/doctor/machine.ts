import { maxOf } from '../../base/lists.ts';
import { advised, findingsOf, refused, type DoctorFinding } from './finding.ts';

/* Owns the rules for the process: its runtime, its user, its memory, and its audit log. */

export type DoctorMachine = {
  /** As in `process.version`: v20.19.0. */
  readonly node: string;
  readonly now: number;
  readonly user: number | undefined;
  /** Largest core dump in bytes; undefined if it is not known. */
  readonly coreLimit: number | undefined;
  readonly hasAuditLog: boolean;
  readonly hasSyslog: boolean;
};

/** Ends of the maintenance of Node.js, from https://github.com/nodejs/release/blob/main/schedule.json. */
const NODE_ENDS: Readonly<Record<number, string>> = {
  18: '2025-04-30',
  19: '2023-06-01',
  20: '2026-04-30',
  21: '2024-06-01',
  22: '2027-04-30',
  23: '2025-06-01',
  24: '2028-04-30',
  25: '2026-06-01',
  26: '2029-04-30',
};

export const checkMachine = (machine: DoctorMachine): readonly DoctorFinding[] =>
  findingsOf(
    checkRuntime(machine),
    machine.user === 0 &&
      refused({
        code: 'doctor.root',
        file: 'process',
        problem: 'the service runs as root',
        hint: 'run it as a user of its own, such as by DynamicUser=yes of systemd',
      }),
    machine.coreLimit !== undefined &&
      machine.coreLimit > 0 &&
      advised({
        code: 'doctor.core-dumps',
        file: 'process',
        problem: 'after a crash, a core dump has the keys and pull secrets in memory',
        hint: 'run "ulimit -c 0" first, or give LimitCORE=0 to systemd',
      }),
    !machine.hasAuditLog &&
      refused({
        code: 'doctor.no-audit',
        file: '--audit-log',
        problem: 'it is not recorded who changes and fetches what, and a restore is not noticed',
        hint: 'give --audit-log FILE',
      }),
    machine.hasAuditLog &&
      !machine.hasSyslog &&
      advised({
        code: 'doctor.audit-here-alone',
        file: '--audit-syslog',
        problem: 'whoever can write to the audit log can make it again as a whole',
        hint: 'send it elsewhere as well, or keep the last hash of "sealift audit verify" elsewhere',
      }),
  );

function checkRuntime({ node, now }: DoctorMachine): DoctorFinding | undefined {
  const major = Number(/^v(\d+)\./.exec(node)?.[1]);
  const newest = maxOf(Object.keys(NODE_ENDS).map(Number));
  const end = NODE_ENDS[major];
  if (major > newest || (end !== undefined && now < Date.parse(end) + DAY)) return undefined;
  return refused({
    code: 'doctor.runtime-end',
    file: 'process',
    problem: `Node.js ${node} gets no security fixes${end === undefined ? '' : ` since ${end}`}`,
    hint: 'use a version of Node.js that is maintained, as https://nodejs.org/en/about/previous-releases lists',
  });
}

const DAY = 24 * 3_600_000;
