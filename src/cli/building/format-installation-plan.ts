import { formatSize } from '../../base/format-size.ts';
import { printable } from '../../sites/document/report.ts';
import type { InstallationIsoPlan } from '../../recipes/installation-iso/installation-iso-summary.ts';
import { formatSignatures } from './format-signatures.ts';
import { formatRoom } from './build-installation-iso.ts';

/** Values of the configuration may hold anything, but give the terminal no orders. */
export function formatInstallationPlan(plan: InstallationIsoPlan): string {
  const { embedded } = plan;
  return [
    `seed           ${printable(plan.seedImage)}, version ${printable(plan.seedVersion)}`,
    `disk           ${printable(plan.installationDisk)}`,
    `base ISO       ${formatSize(plan.base.size)} from ${plan.base.from}`,
    `config         ${formatRoom(plan.embedArea)}`,
    ...(embedded
      ? [
          `images         ${embedded.images.length}, served on the ISO by ${embedded.registryImage}`,
          `unique blobs   ${embedded.blobs}, ${formatSize(embedded.payloadSize)}`,
          `to fetch       ${formatSize(plan.bytesToFetch)}`,
          `already cached ${formatSize(plan.bytesReused)}`,
        ]
      : []),
    `ISO size       ${formatSize(plan.isoSize)}, exactly ${plan.isoSize} bytes`,
    `free space     ${formatSize(plan.freeBytes)}, ${formatSize(plan.neededBytes)} needed`,
    ...formatSignatures(plan.signatures, 'release        '),
    ...plan.registriesConf.map((file) => `mirrors from   ${file}`),
    `on the media   ${plan.secretsOnMedia.join(', ')}`,
    ...plan.unverifiedTls.map(
      (host) =>
        `warning        TLS of ${host} is not verified, and passwords are sent to it without encryption`,
    ),
    ...plan.notes.map((note) => `note           ${printable(note)}`),
    '',
  ].join('\n');
}
