import type { FilePlace, Problem } from '../../base/errors.ts';

/* Owns the form of what `serve doctor` finds. */

/** An error is what a security officer would refuse, a warning is advice; the place is an option, or the machine. */
export type DoctorFinding = Problem<FilePlace>;

type About = Pick<DoctorFinding, 'code' | 'file' | 'problem'> & { readonly hint: string };

export const refused = (about: About): DoctorFinding => ({ ...about, severity: 'error' });

export const advised = (about: About): DoctorFinding => ({ ...about, severity: 'warning' });

export const findingsOf = (
  ...found: readonly (DoctorFinding | false | undefined)[]
): readonly DoctorFinding[] => found.filter((each) => each !== false && each !== undefined);
