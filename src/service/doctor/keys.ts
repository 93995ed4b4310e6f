import type { Secret } from '../../base/secret.ts';
import { advised, findingsOf, refused, type DoctorFinding } from './finding.ts';

/* Owns the rules for the key of the service and for its database: how good they are, and who sees them. */

export type DoctorKeys = {
  /** As the option names it: file:PATH or env:NAME. */
  readonly source: string;
  /** Absent: it cannot be read. */
  readonly key?: Secret | undefined;
  readonly hasPrevious: boolean;
  /** As the option names it. */
  readonly databaseSource?: string | undefined;
  /** A warning about the connection to the database. */
  readonly databaseDoubt?: string | undefined;
};

/** The command line of a process is public. */
export const checkCommandLine = ({
  databaseSource,
}: Pick<DoctorKeys, 'databaseSource'>): readonly DoctorFinding[] =>
  findingsOf(
    hasPassword(databaseSource) &&
      refused({
        code: 'doctor.database-password',
        file: '--database',
        problem: 'the password is in the list of processes',
        hint: 'give the URL as file:PATH or env:NAME',
      }),
  );

export const checkKeys = (keys: DoctorKeys): readonly DoctorFinding[] =>
  findingsOf(
    keys.key !== undefined &&
      estimateBits(keys.key.reveal().trim()) < LEAST_BITS &&
      refused({
        code: 'doctor.key-weak',
        file: '--key',
        problem: `the key repeats itself: its characters have less than ${LEAST_BITS} bits`,
        hint: 'make one with "openssl rand -hex 32", and change it with "sealift serve rekey"',
      }),
    keys.source.startsWith('env:') &&
      advised({
        code: 'doctor.key-in-environment',
        file: '--key',
        problem: 'the key is in the environment, which other processes of the user can read',
        hint: 'give file:PATH, such as a credential of systemd',
      }),
    keys.hasPrevious &&
      advised({
        code: 'doctor.previous-key',
        file: '--previous-key',
        problem: 'the key before is still in use',
        hint: 'leave it out after "sealift serve rekey", and destroy it',
      }),
    ...checkCommandLine(keys),
    keys.databaseDoubt !== undefined &&
      refused({
        code: 'doctor.database-tls',
        file: '--database',
        problem: keys.databaseDoubt,
        hint: 'add ?sslmode=verify-full, and sslrootcert=PATH for a private authority',
      }),
  );

/** The 32 random hex digits of the shortest key have some more. */
const LEAST_BITS = 96;

/** Shannon's entropy of single characters: too high for words, but low for what repeats itself. */
function estimateBits(text: string): number {
  const counts = new Map<string, number>();
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1);
  // A text that is a shorter one again and again has the bits of that.
  const period = (text + text).indexOf(text, 1);
  const share = period / Math.max(1, text.length);
  return [...counts.values()].reduce(
    (bits, count) => bits - share * count * Math.log2(count / text.length),
    0,
  );
}

const hasPassword = (source = ''): boolean =>
  URL.canParse(source) && new URL(source).password !== '';
