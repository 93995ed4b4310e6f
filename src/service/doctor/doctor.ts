import { checkAccess, type DoctorAccess } from './access.ts';
import { checkCertificate, type DoctorCertificate } from './certificate.ts';
import { checkFiles, type DoctorFiles } from './files.ts';
import type { DoctorFinding } from './finding.ts';
import { checkKeys, type DoctorKeys } from './keys.ts';
import { checkMachine, type DoctorMachine } from './machine.ts';

/*
 * Owns the list of rules that a service is held to before it listens. Settings and facts of the machine come in, findings
 * leave; `serve doctor` prints them, and `serve --strict` refuses by them.
 */

export type DoctorSettings = {
  readonly files: DoctorFiles;
  readonly keys: DoctorKeys;
  readonly access: DoctorAccess;
  readonly certificate?: DoctorCertificate | undefined;
  readonly machine: DoctorMachine;
};

export const examineService = async ({
  files,
  keys,
  access,
  certificate,
  machine,
}: DoctorSettings): Promise<readonly DoctorFinding[]> => [
  ...(await checkFiles(files)),
  ...checkKeys(keys),
  ...checkAccess(access),
  ...(certificate ? checkCertificate(certificate) : []),
  ...checkMachine(machine),
];
