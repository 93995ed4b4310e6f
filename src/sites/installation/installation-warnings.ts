import type { ConfigDocument } from '../../config/document/document.ts';
import type { ConfigProblem } from '../../config/document/problem.ts';
import type { InstallationConfig } from './installation-config.ts';

/** What is allowed in image-based-installation-config.yaml and yet seldom meant. */
export function warnOfInstallation(
  { installationDisk }: InstallationConfig,
  { report, offsetOf }: ConfigDocument,
): readonly ConfigProblem[] {
  if (!/^\/dev\/sd[a-z]+$/.test(installationDisk)) return [];
  const path = 'installationDisk';
  const problem =
    `${installationDisk} is named in the order in which disks are found: ` +
    'it may be another disk at the next boot';
  const hint = 'name it by /dev/disk/by-id/wwn-0x... or another path in /dev/disk/by-id';
  return [report.atOffset(offsetOf(path), { path, problem, hint })];
}
