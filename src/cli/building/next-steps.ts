import { dirname, join } from 'node:path';
import { formatShellPath } from '../terminal/output.ts';

/** What the way from a live ISO to a cluster depends on. */
export type BuiltMedium = {
  /** As a person in the working directory names it. */
  readonly output: string;
  readonly interactive: boolean;
  readonly fips: boolean;
  /** Embedded templates have no assisted installer: nothing installs a cluster. */
  readonly ignition: 'installer' | 'embedded';
};

/**
 * The steps from a finished live ISO to a cluster, as lines. A medium that is not interactive waits on
 * its console for a configuration image, which only its own release's installer can make.
 */
export function formatNextSteps(medium: BuiltMedium): readonly string[] {
  const { output, interactive, ignition } = medium;
  if (output.startsWith('oci://')) {
    return [
      `next: sealift pull ${formatShellPath(output)} --output appliance.iso, where the ISO is needed`,
    ];
  }
  const verify = `sealift verify ${formatShellPath(output)}`;
  if (ignition === 'embedded') return [`next: ${verify}`];
  const steps = interactive ? listInteractive(medium) : listWithImage(medium);
  return [
    'next:',
    ...[verify, ...steps].map((step, index) => `  ${index + 1}. ${step}`),
    '  docs/install.md has the boot order, when the medium may be detached, and how to add hosts.',
  ];
}

const listInteractive = ({ output }: BuiltMedium): readonly string[] => [
  `attach ${output} to every host; boot order: installation disk first, then the medium`,
  'boot; on the console of one host, choose it as the rendezvous host, and enter its IP on the others',
  'open http://<rendezvous IP>:3001 and configure the cluster',
];

function listWithImage({ output, fips }: BuiltMedium): readonly string[] {
  const name = fips ? 'openshift-install-fips' : 'openshift-install';
  const directory = /^(?:s3:\/|\/dev)\//.test(output) ? '.' : dirname(output);
  const program = formatShellPath(directory === '.' ? `./${name}` : join(directory, name));
  const iso = formatShellPath(output);
  return [
    `sealift extract installer ${iso} --out ${formatShellPath(directory)}`,
    'write install-config.yaml and agent-config.yaml to site/, and keep copies: the next step deletes them',
    `${program} agent create config-image --dir site`,
    `sealift config-iso check site/agentconfig.noarch.iso --medium ${iso}`,
    `attach ${output} and site/agentconfig.noarch.iso to every host, and boot; boot order: installation disk first`,
    `${program} agent wait-for install-complete --dir site`,
  ];
}
