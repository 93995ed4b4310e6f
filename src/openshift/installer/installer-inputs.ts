import { formatManifest } from '../node/manifests/extra-manifests.ts';
import type { RpmArchitecture } from '../release/release-bundle.ts';

export type InstallerInput = {
  readonly arch: RpmArchitecture;
  readonly sshKey?: string;
  /** For the hosts; without one the installer gets a dummy, because it insists. */
  readonly pullSecret?: string;
  readonly registriesConf: string;
  /** NMStateConfig manifests, one YAML document a host. */
  readonly nmstate?: string;
  /** The user's own, in place of the rendered one. */
  readonly infraEnv?: string;
};

/** What the InfraEnv of the medium calls its pull secret. */
export const PULL_SECRET_NAME = 'appliance-pull-secret';

/** Names no registry and opens none. */
const DUMMY_PULL_SECRET = '{"auths":{"":{"auth":"dXNlcjpwYXNz"}}}';

/**
 * The files below the directory that `openshift-install agent create unconfigured-ignition --dir` is
 * run on. They may hold the pull secret: write them 0600. InfraEnv has no status, because older
 * installers refuse members that they do not know.
 */
export function planInstallerInputs(
  input: InstallerInput,
): readonly { readonly path: string; readonly text: string }[] {
  const { nmstate, infraEnv = formatInfraEnv(input) } = input;
  return [
    { path: 'cluster-manifests/infraenv.yaml', text: infraEnv },
    { path: 'cluster-manifests/pull-secret.yaml', text: formatPullSecret(input.pullSecret) },
    ...(nmstate === undefined || nmstate.trim() === ''
      ? []
      : [{ path: 'cluster-manifests/nmstateconfig.yaml', text: nmstate }]),
    { path: 'mirror/registries.conf', text: input.registriesConf },
  ];
}

/** The subcommand that makes the unconfigured Ignition config, with its flags. */
export const planInstallerArgs = (version: string, interactive: boolean): readonly string[] => [
  'agent',
  'create',
  'unconfigured-ignition',
  ...(interactive && supportsInteractiveFlag(version) ? ['--interactive'] : []),
];

/** Whether this release's installer has the flag `--interactive`; others refuse it. */
const supportsInteractiveFlag = (version: string): boolean => /^4\.(?:19|20)(?:\.|$)/.test(version);

const formatInfraEnv = ({ arch, sshKey }: InstallerInput): string =>
  formatManifest({
    apiVersion: 'agent-install.openshift.io/v1beta1',
    kind: 'InfraEnv',
    metadata: { name: 'appliance' },
    spec: {
      cpuArchitecture: arch,
      pullSecretRef: { name: PULL_SECRET_NAME },
      ...(sshKey !== undefined && { sshAuthorizedKey: sshKey.trim() }),
    },
  });

const formatPullSecret = (pullSecret = DUMMY_PULL_SECRET): string =>
  formatManifest({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: PULL_SECRET_NAME },
    stringData: { '.dockerconfigjson': pullSecret },
    type: 'kubernetes.io/dockerconfigjson',
  });
