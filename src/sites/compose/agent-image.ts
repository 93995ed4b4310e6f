import { gzipSync } from 'node:zlib';
import { ConfigError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { type CpioMember, encodeCpio } from '../../ignition/index.ts';
import type { HostNetwork } from '../../nmstate/index.ts';
import type { AgentCluster } from '../../openshift/agent/agent-cluster.ts';
import { findCautions, readPlannedCluster } from '../../openshift/agent/cluster.ts';
import { planImageMembers } from '../../openshift/agent/image-members.ts';
import {
  CONFIG_ARCHIVE_PATH,
  type ConfigArchive,
  findReleaseImage,
  findReleaseVersion,
  MAX_ARCHIVE_SIZE,
} from '../../openshift/agent/live-system.ts';
import {
  findArchiveObstacles,
  findMediumObstacles,
  type Obstacle,
} from '../../openshift/agent/obstacles.ts';
import { compareReleases } from '../../openshift/release/version.ts';
import type { LiveMedium } from '../../media/config-image.ts';
import { SIGNERS, type SignerName, type SiteIdentity } from '../identity/identity.ts';
import type { ConfigTree } from './tree.ts';

/* Owns the configuration image of a cluster that agents install: its archive, and the objections of its medium. */

export type AgentImageParts = {
  /** The medium that the hosts boot. */
  readonly live: LiveMedium;
  /** Networks of the hosts, planned. */
  readonly networks: readonly HostNetwork[];
};

export type AgentImage = {
  readonly tree: ConfigTree;
  /** Contents that the medium takes, and that may stop the installation. */
  readonly cautions: readonly string[];
};

/**
 * Plans the one file of a configuration image, which the medium takes.
 *
 * @throws ConfigError `config-image.medium` if the medium takes no image, or not this one;
 * `config-image.other-release`, `sites.too-large`
 */
export function planAgentImage(
  cluster: AgentCluster,
  identity: SiteIdentity,
  { live, networks }: AgentImageParts,
): AgentImage {
  const { system, ...about } = live;
  requireNone(findMediumObstacles(system));
  const unknown = judgeRelease(cluster, live);
  const members = planImageMembers(cluster, { secrets: listSecrets(identity), system, networks });
  const archive: ConfigArchive = {
    files: new Map(members.map(({ name, data }) => [name, data])),
    repeated: [],
    special: [],
  };
  requireNone(findArchiveObstacles(system, archive));
  const told = { cluster: readPlannedCluster(archive), ...about };
  return {
    tree: { directories: [], files: [packMembers(members)] },
    cautions: [...unknown, ...findCautions(system, archive, told)],
  };
}

/** The cluster gets the release of the medium: another one in its resources is refused, as `customize` does. */
function judgeRelease(
  { release }: AgentCluster,
  { system: { clusterImageSet: set }, architecture }: LiveMedium,
): readonly string[] {
  const image = set && findReleaseImage(set);
  if (release === undefined || !set || image === undefined) return [];
  const known = { image, ...withoutUndefined({ version: findReleaseVersion(set), architecture }) };
  const answer = compareReleases(release, known);
  if (answer === 'unknown')
    return [
      `the ClusterImageSet names ${release}, which cannot be compared with the medium's ${image}`,
    ];
  if (answer === 'same') return [];
  throw new ConfigError(
    'config-image.other-release',
    'the ClusterImageSet names a different release than the medium',
    {
      expected: image,
      found: release,
      hint: 'correct spec.releaseImage, or give the medium of that release',
    },
  );
}

function requireNone([obstacle]: readonly Obstacle[]): void {
  if (!obstacle) return;
  const { problem, hint } = obstacle;
  throw new ConfigError('config-image.medium', problem, withoutUndefined({ hint }));
}

function packMembers(members: readonly CpioMember[]): ConfigTree['files'][number] {
  const bytes = gzipSync(encodeCpio(members), { level: 9 });
  if (bytes.length <= MAX_ARCHIVE_SIZE) return { path: CONFIG_ARCHIVE_PATH, bytes, mode: 0o600 };
  throw new ConfigError(
    'sites.too-large',
    `${CONFIG_ARCHIVE_PATH} would have ${bytes.length} bytes`,
    { expected: `at most ${MAX_ARCHIVE_SIZE} bytes`, hint: 'leave out large manifests' },
  );
}

/** The signers of the API, and the one of the administrator; agents draw the others. */
export const SIGNERS_ON_IMAGE: readonly SignerName[] = [
  'loadBalancer',
  'localhost',
  'serviceNetwork',
  'adminKubeconfig',
];

function listSecrets(identity: SiteIdentity): Parameters<typeof planImageMembers>[1]['secrets'] {
  const { clusterId: infraEnvId, signers, password, auth } = identity;
  if (auth === undefined) throw new Error('the identity is not that of a cluster for agents');
  return {
    infraEnvId,
    auth,
    passwordHash: password.bcrypt,
    tls: SIGNERS_ON_IMAGE.flatMap((name) => {
      const { privateKey = '', certificate } = signers[name];
      const { file } = SIGNERS[name];
      return [
        { name: `${file}.key`, text: privateKey },
        { name: `${file}.crt`, text: certificate },
      ];
    }),
  };
}

/**
 * The state in which `openshift-install agent wait-for` finds the rendezvous host and the token of a watcher
 * (installer: pkg/agent/rest.go), and no other key.
 */
export function renderInstallerState(
  { name, sshKey, rendezvousIp }: AgentCluster,
  { auth }: Pick<SiteIdentity, 'auth'>,
): string {
  const config = { metadata: { name }, rendezvousIP: rendezvousIp };
  const state = {
    '*agentconfig.AgentConfig': { File: null, Config: config, Template: '' },
    '*agentconfig.AgentHosts': { Hosts: [] },
    '*gencrypto.AuthConfig': {
      PublicKey: auth?.publicKey,
      AgentAuthToken: '',
      UserAuthToken: '',
      WatcherAuthToken: auth?.watcherToken,
      AuthTokenExpiry: '',
      AuthType: 'agent-installer-local',
    },
    '*installconfig.InstallConfig': { config: { metadata: { name }, sshKey }, file: null },
  };
  return `${JSON.stringify(state, null, 4)}\n`;
}
