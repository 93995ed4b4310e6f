import { formatSize } from '../../base/text/words.ts';
import type { Customisation } from '../../media/customize/read.ts';
import { listHeldImage } from './held-image-rows.ts';
import { type Report, lineOf, listRows, say } from '../terminal/report.ts';
import { LIVE_MANIFESTS } from '../../openshift/agent/live-manifest.ts';

/* The result of `sealift customize`, in words. */

export type Done = {
  readonly output: string;
  readonly action: 'customised' | 'reset' | 'unchanged';
  /** Size of the areas that differ from before, in bytes. */
  readonly changed: number;
  /** True if an earlier run that was killed was undone first. */
  readonly undone: boolean;
};

/** Values of an ISO after `--reset=bare`. */
export const BARE = 'it has no values, not even those of its build';

export const describeDone = ({ output, action, changed, undone }: Done): Report => ({
  title: say`Values of ${output}`,
  body: [
    ...(undone
      ? [lineOf(say`an earlier run had changed ${output} in part: that was undone first`)]
      : []),
    lineOf(
      action === 'unchanged'
        ? say`${output} is unchanged: it already is as requested`
        : say`${output} is ${[action === 'reset' ? 'restored' : 'customised']}: ${formatSize(changed)} of areas written`,
    ),
  ],
});

/** Describes everything that is set; of secrets, only that they are set. */
export function describeCustomisation(
  iso: string,
  { customised, bare, builtSecrets, ignition, kernelArguments, configImage }: Customisation,
): Report {
  const copy: Row = [
    'copy of build',
    builtSecrets ? 'holds a secret, see --drop-built' : undefined,
  ];
  const rows = [...listIgnition(ignition), ...listArguments(kernelArguments), copy];
  const state = bare ? `bare: ${BARE}` : customised ? 'customised' : 'not customised';
  return {
    title: say`Values of ${iso}`,
    body: [
      lineOf(say`${iso} is ${[state]}`),
      ...listRows(
        { width: 15 },
        rows.flatMap(([name, value]) => (value === undefined ? [] : [[name, say`${value}`]])),
      ),
      ...(configImage ? listRows({ width: 15 }, listHeldImage(configImage)) : []),
    ],
  };
}

type Row = readonly [name: string, value: string | undefined];

const listIgnition = (ignition: Customisation['ignition']): readonly Row[] => [
  ['room', `${formatSize(ignition.used)} of ${formatSize(ignition.size)} used`],
  ...ignition.sshKeys.map((key): Row => ['ssh key', key]),
  ['pull secret', ignition.pullSecret ? 'set, not shown' : undefined],
  ['rendezvous ip', describeRendezvous(ignition)],
  ...Object.entries(ignition.proxy ?? {}),
  ['time servers', ignition.ntpSources.join(', ') || undefined],
  ['trust bundle', ignition.trustBundle ? 'set' : undefined],
  ...Object.entries(ignition.hostnames).map(([mac, name]): Row => ['host name', `${mac} ${name}`]),
  ...ignition.networkFiles.map((name): Row => ['network', name]),
  ...ignition.manifests.map((name): Row => ['manifest', name]),
  ...ignition.others.map(({ kind, name }): Row => ['override', `${kind} ${name}`]),
  ...(ignition.notRead ?? []).map(({ source, reason }): Row => [
    'not read',
    `${source}: ${reason}`,
  ]),
  ...ignition.files.flatMap((path): readonly Row[] =>
    path.startsWith(LIVE_MANIFESTS) ? [['agents read', path]] : [],
  ),
];

/** The rendezvous IP, and the interfaces of the host that has it. */
export const describeRendezvous = ({
  rendezvousIp,
  rendezvousHost = [],
}: Customisation['ignition']): string | undefined =>
  rendezvousIp === undefined || rendezvousHost.length === 0
    ? rendezvousIp
    : `${rendezvousIp} of the host with ${rendezvousHost.join(', ')}`;

function listArguments(kargs: Customisation['kernelArguments']): readonly Row[] {
  if (!kargs) return [];
  const isDefault = kargs.now === kargs.default;
  return [
    ['kernel args', kargs.now],
    ['  default', isDefault ? undefined : kargs.default],
  ];
}
