import { ConfigError } from '../../base/errors.ts';
import type { CpioMember } from '../../ignition/index.ts';
import type { HostNetwork } from '../../nmstate/index.ts';
import type { AgentCluster } from './agent-cluster.ts';
import { ASSISTED_SERVICE, START_CLUSTER } from './cluster.ts';
import { formatPullSecret } from './agent-manifests.ts';
import { mapProxy, type NamedText, renderClusterManifests } from './cluster-manifests.ts';
import {
  DOCKER_CONFIG,
  EXTRA_MANIFESTS,
  HOSTNAMES,
  PROXY_CONFIG,
  renderProxy,
} from './configure.ts';
import { setVariables } from './env-file.ts';
import { renderHostConfigs } from './host-configs.ts';
import { CLUSTER_IMAGE_SET, findScalar, type LiveSystem } from './live-system.ts';
import { INFRA_ENV, LIVE_MANIFESTS } from './live-manifest.ts';
import { shorten } from './obstacles.ts';
import { listPublicRegistries, findReleaseMirror } from './release-mirror.ts';
import { RENDEZVOUS, RENDEZVOUS_TEMPLATE, renderRendezvousHost } from './rendezvous.ts';
import { planNetworkFiles } from './values.ts';

/*
 * Owns the members of a configuration image: of a cluster, of its secrets, and of the live system that reads
 * them (installer: pkg/asset/agent/image, the list CONFIG_IMAGE_FILES).
 */

/** Values that are drawn for a cluster, and that only its own hosts and administrators know. */
export type AgentSecrets = {
  /** UUID. */
  readonly infraEnvId: string;
  /** PEM, by the name of the file in `/opt/agent/tls`. */
  readonly tls: readonly NamedText[];
  /** `$2a$...` */
  readonly passwordHash: string;
  readonly auth: AgentAuth;
};

/** Tokens that agents, people and watchers show to the services (RFC 7519, ES256), and the key that checks them. */
export type AgentAuth = {
  /** Base64 of PEM. */
  readonly publicKey: string;
  readonly agentToken: string;
  readonly userToken: string;
  readonly watcherToken: string;
};

export type ImageParts = {
  readonly secrets: AgentSecrets;
  /** The live system that the image is for. */
  readonly system: LiveSystem;
  /** The networks of the hosts that have one, planned. */
  readonly networks: readonly HostNetwork[];
};

const ISSUE = '/etc/issue';
const TLS = '/opt/agent/tls/';

/**
 * The members in the order in which the loader wants them: the file that starts the services is the last. What
 * the release alone decides is the medium's, byte by byte.
 *
 * @throws ConfigError `config-image.medium` if the medium takes no configuration image, or requires a member
 * that is not known
 */
export function planImageMembers(cluster: AgentCluster, parts: ImageParts): readonly CpioMember[] {
  const { secrets, system, networks } = parts;
  const { loader, clusterImageSet } = system;
  if (!loader || !clusterImageSet || system.isInteractive) {
    throw refuseMedium(
      'it takes none',
      'take a live ISO of the installer without its web interface',
    );
  }
  const own = [
    ...planManifests(cluster, clusterImageSet, system),
    ...planTexts(cluster, parts),
    ...planNetworkFiles(networks).map(({ path, text }) => createMember(path, text)),
    ...renderHostConfigs(cluster).map(({ name, text }) => createMember(name, text, PUBLIC)),
    ...cluster.hosts.flatMap(({ hostname, interfaces: [first] }) =>
      hostname === undefined || first === undefined
        ? []
        : [createMember(`${HOSTNAMES}${first.macAddress.toLowerCase()}`, hostname)],
    ),
    ...cluster.manifests.map(({ name, bytes }) =>
      createMember(`${EXTRA_MANIFESTS}${name}`, bytes, PUBLIC),
    ),
    ...secrets.tls.map(({ name, text }) => createMember(`${TLS}${name}`, text)),
    createMember(`${TLS}kubeadmin-password.hash`, secrets.passwordHash),
    ...planRendezvousHost(cluster, parts),
  ];
  const listed = [...loader.required, ...loader.directories];
  const taken = own.filter(({ name }) => listed.some((each) => name.includes(each)));
  requireAll(taken, system);
  return taken;
}

const PRIVATE = 0o600;
const PUBLIC = 0o644;

const createMember = (name: string, data: string | Uint8Array, mode = PRIVATE): CpioMember => ({
  name,
  mode,
  data: typeof data === 'string' ? Buffer.from(data) : data,
});

const NEWER = 'make the image with the installer of the release, or take a newer sealift';

const refuseMedium = (problem: string, hint: string): ConfigError =>
  new ConfigError('config-image.medium', `no configuration image fits the medium: ${problem}`, {
    hint,
  });

/** A file of the medium stays where none replaces it; the loader stops at a required path without a file. */
function requireAll(members: readonly CpioMember[], { loader, paths }: LiveSystem): void {
  const names = new Set(members.map(({ name }) => name));
  const missing = (loader?.required ?? []).filter((path) => !names.has(path) && !paths.has(path));
  if (missing.length === 0) return;
  throw refuseMedium(
    `its loader requires ${missing.join(', ')}, which this version does not know`,
    NEWER,
  );
}

function planManifests(
  cluster: AgentCluster,
  clusterImageSet: Uint8Array,
  { infraEnv }: LiveSystem,
): readonly CpioMember[] {
  const imageSet = findScalar(clusterImageSet, 'name') ?? '';
  if (infraEnv === undefined) {
    throw refuseMedium(`its ${INFRA_ENV} is not YAML of one resource`, 'build it again');
  }
  return [
    ...renderClusterManifests(cluster, { imageSet, infraEnv }).map(({ name, text }) =>
      createMember(`${LIVE_MANIFESTS}${name}`, text),
    ),
    createMember(CLUSTER_IMAGE_SET, clusterImageSet),
    ...(cluster.agentConfig
      ? [createMember(`${LIVE_MANIFESTS}agent-config.yaml`, cluster.agentConfig())]
      : []),
  ];
}

/** Files that the medium has without a cluster, with the values of this one. */
function planTexts(cluster: AgentCluster, { secrets, system }: ImageParts): readonly CpioMember[] {
  const { replicas, pullSecret } = cluster;
  const proxy = mapProxy(cluster);
  const changes: Readonly<Record<string, (text: string) => string>> = {
    [ISSUE]: (text) => nameCluster(text, cluster),
    [PROXY_CONFIG]: () => (proxy === undefined ? '' : renderProxy(proxy)),
    [DOCKER_CONFIG]: () => formatPullSecret(pullSecret),
    [START_CLUSTER]: (text) =>
      setVariables(text, {
        REQUIRED_MASTER_NODES: String(replicas.master),
        REQUIRED_ARBITER_NODES: String(replicas.arbiter),
        REQUIRED_WORKER_NODES: String(replicas.worker),
      }),
    [ASSISTED_SERVICE]: (text) => setVariables(text, listSettings(cluster, { secrets, system })),
  };
  return (system.loader?.required ?? []).flatMap((path) => {
    const file = system.texts.get(path);
    if (file === undefined || path.startsWith(LIVE_MANIFESTS) || path === RENDEZVOUS) return [];
    return [createMember(path, changes[path]?.(file.text) ?? file.text, file.mode)];
  });
}

/** The banner of a console names the cluster in its last line. */
const nameCluster = (text: string, { name, baseDomain }: AgentCluster): string =>
  text.replace(/(?: for \S+)?\n?$/, ` for ${name}.${baseDomain}\n`);

/** Settings that the services read; a release that knows none of the tokens gets none. */
function listSettings(
  cluster: AgentCluster,
  { secrets, system }: Pick<ImageParts, 'secrets' | 'system'>,
): Readonly<Record<string, string>> {
  const { infraEnvId, auth } = secrets;
  return {
    AUTH_TYPE: 'agent-installer-local',
    PUBLIC_CONTAINER_REGISTRIES: listPublicRegistries(cluster.mirrors).join(','),
    OPENSHIFT_INSTALL_RELEASE_IMAGE_MIRROR: findReleaseMirror(cluster.mirrors, system) ?? '',
    INFRA_ENV_ID: infraEnvId,
    EC_PUBLIC_KEY_PEM: auth.publicKey,
    USER_AUTH_TOKEN: auth.userToken,
    WATCHER_AUTH_TOKEN: auth.watcherToken,
  };
}

function planRendezvousHost(
  { rendezvousIp }: AgentCluster,
  { secrets, system }: ImageParts,
): readonly CpioMember[] {
  const file = system.texts.get(RENDEZVOUS_TEMPLATE) ?? system.texts.get(RENDEZVOUS);
  if (file === undefined) return [];
  const { agentToken, userToken } = secrets.auth;
  const filled = renderRendezvousHost(file.text, rendezvousIp);
  const left = filled.split('\n').find((line) => line.includes('{{'));
  if (left !== undefined) {
    throw refuseMedium(
      `its ${RENDEZVOUS} has a template that this version does not know: ${shorten(left)}`,
      NEWER,
    );
  }
  const text = setVariables(filled, {
    PULL_SECRET_TOKEN: agentToken,
    USER_AUTH_TOKEN: userToken,
  });
  return [createMember(RENDEZVOUS, text, file.mode)];
}
