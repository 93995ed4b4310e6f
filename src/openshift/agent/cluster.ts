import { isIP } from 'node:net';
import { UUID } from '../../base/uuid.ts';
import { readTrustBundle } from '../../keys/index.ts';
import {
  type ConfigArchive,
  CLUSTER_IMAGE_SET,
  findScalar,
  type LiveSystem,
} from './live-system.ts';
import { toRpmName } from '../release/bundle.ts';
import { EXTRA_MANIFESTS } from './configure.ts';
import { AGENT_CLUSTER_INSTALL, INFRA_ENV, LIVE_MANIFESTS } from './live-manifest.ts';
import { shorten } from './obstacles.ts';
import { RENDEZVOUS } from './rendezvous.ts';

export type ConfiguredCluster = {
  /** Name and base domain: `edge.example.com`. */
  readonly name?: string;
  readonly nodes?: {
    readonly masters: number;
    readonly arbiters: number;
    readonly workers: number;
  };
  /** Number of hosts with a separate configuration, known by MAC address. */
  readonly hosts: number;
  readonly rendezvousIp?: string;
  /** UUID, which no other image has. */
  readonly infraEnvId?: string;
  readonly certificates: readonly {
    readonly path: string;
    readonly notBefore: string;
    readonly notAfter: string;
  }[];
};

type PlannedCluster = Omit<ConfiguredCluster, 'certificates'>;

/** Files of the numbers of nodes, and of the settings of the services. */
export const START_CLUSTER = '/usr/local/share/start-cluster/start-cluster.env';
export const ASSISTED_SERVICE = '/usr/local/share/assisted-service/assisted-service.env';
const CLUSTER_DEPLOYMENT = `${LIVE_MANIFESTS}cluster-deployment.yaml`;

export const readConfiguredCluster = (archive: ConfigArchive): ConfiguredCluster => ({
  ...readPlannedCluster(archive),
  certificates: listCertificates(archive.files),
});

/** Without certificates, whose reading takes longer than all else. */
export function readPlannedCluster({ files }: ConfigArchive): PlannedCluster {
  const nodes = readNodes(files.get(START_CLUSTER));
  const rendezvousIp = readVariable(files.get(RENDEZVOUS), 'NODE_ZERO_IP');
  const infraEnvId = readVariable(files.get(ASSISTED_SERVICE), 'INFRA_ENV_ID');
  const name = readName(files.get(CLUSTER_DEPLOYMENT));
  return {
    ...(name !== undefined && { name: shorten(name) }),
    ...(nodes && { nodes }),
    hosts: [...files.keys()].filter((path) => HOST.test(path)).length,
    ...(rendezvousIp !== undefined && { rendezvousIp: shorten(rendezvousIp) }),
    ...(infraEnvId !== undefined && UUID.test(infraEnvId) && { infraEnvId }),
  };
}

function readName(deployment: Uint8Array | undefined): string | undefined {
  const [name, domain] = ['clusterName', 'baseDomain'].map(
    (key) => deployment && findScalar(deployment, key),
  );
  return name === undefined || domain === undefined ? name : `${name}.${domain}`;
}

const HOST = /^\/etc\/assisted\/hostconfig\/[^/]+\/mac_addresses$/;

function readNodes(bytes: Uint8Array | undefined): ConfiguredCluster['nodes'] {
  const masters = readCount(bytes, 'REQUIRED_MASTER_NODES');
  if (masters === undefined) return undefined;
  return {
    masters,
    arbiters: readCount(bytes, 'REQUIRED_ARBITER_NODES') ?? 0,
    workers: readCount(bytes, 'REQUIRED_WORKER_NODES') ?? 0,
  };
}

function readCount(bytes: Uint8Array | undefined, name: string): number | undefined {
  const value = readVariable(bytes, name);
  return value !== undefined && /^\d{1,6}$/.test(value) ? Number(value) : undefined;
}

/** Bytes; more than an environment file of an installer ever has. */
const WINDOW = 64 << 10;

function readVariable(bytes: Uint8Array | undefined, name: string): string | undefined {
  const text = Buffer.from(bytes?.subarray(0, WINDOW) ?? []).toString('utf8');
  const line = text.split('\n').findLast((line) => line.startsWith(`${name}=`));
  return line?.slice(name.length + 1).trim();
}

/** A medium has the certificates of four signers. */
const MOST_CERTIFICATES = 20;
const MAX_CERTIFICATE_SIZE = 64 << 10;

function listCertificates(files: ConfigArchive['files']): ConfiguredCluster['certificates'] {
  const paths = [...files.keys()].filter((path) => /^\/opt\/agent\/tls\/[^/]+\.crt$/.test(path));
  return paths
    .sort()
    .slice(0, MOST_CERTIFICATES)
    .flatMap((path) => {
      const certificate = parseCertificate(files.get(path));
      return certificate ? [{ path, ...certificate }] : [];
    });
}

function parseCertificate(bytes: Uint8Array | undefined) {
  if (bytes === undefined || bytes.length > MAX_CERTIFICATE_SIZE) return undefined;
  const [certificate] = readTrustBundle(bytes).certificates;
  if (certificate === undefined) return undefined;
  const { notBefore, notAfter } = certificate;
  return { notBefore: formatTime(notBefore), notAfter: formatTime(notAfter) };
}

const formatTime = (time: number): string => new Date(time).toISOString().replace(/\.\d+Z$/, 'Z');

/** Conditions that a live system accepts and that may still stop the installation. */
export function findCautions(
  system: LiveSystem,
  archive: ConfigArchive,
  {
    cluster,
    architecture,
    osStream,
  }: {
    readonly cluster: PlannedCluster;
    /** Architecture and stream of the operating system of the medium. */
    readonly architecture?: string;
    readonly osStream?: string;
  },
): readonly string[] {
  return [
    ...findAddressCaution(cluster),
    ...findHostCaution(cluster),
    ...findArchitectureCaution(archive, architecture),
    ...findStreamCaution(archive, osStream),
    ...findMixedNetworks(system, archive),
    ...findCarriedOver(system, archive),
    ...findReplacedManifests(system, archive),
    ...findRepeated(archive),
  ];
}

function findAddressCaution({ rendezvousIp }: PlannedCluster): readonly string[] {
  if (rendezvousIp !== undefined && isIP(rendezvousIp) !== 0) return [];
  const found = rendezvousIp === undefined ? 'not set' : `"${rendezvousIp}"`;
  return [`the rendezvous IP is ${found}, so no host becomes the rendezvous host`];
}

/** Installation starts when exactly as many hosts are ready, and every entry has met its host. */
function findHostCaution({ nodes, hosts }: PlannedCluster): readonly string[] {
  if (nodes === undefined) return ['the numbers of nodes are not set'];
  const wanted = nodes.masters + nodes.arbiters + nodes.workers;
  if (wanted === 0) return ['the cluster has 0 nodes'];
  return hosts > wanted
    ? [`${hosts} hosts are configured, but the cluster has ${wanted} nodes: it waits forever`]
    : [];
}

function findArchitectureCaution({ files }: ConfigArchive, medium: string | undefined) {
  const infraEnv = files.get(INFRA_ENV);
  const found = infraEnv && findScalar(infraEnv, 'cpuArchitecture');
  if (medium === undefined || found === undefined || toRpmName(found) === medium) return [];
  return [`the image is for hosts of ${shorten(found)}, but the medium is for ${medium}`];
}

/** In JSON inside an annotation, with any quotes, or as a member of its own. */
const STREAM = /\bos(?:Image)?Stream\b[\\"']*: *[\\"']*([\w.-]+)/;

function findStreamCaution({ files }: ConfigArchive, medium: string | undefined) {
  const manifest = files.get(AGENT_CLUSTER_INSTALL)?.subarray(0, WINDOW) ?? [];
  const found = STREAM.exec(Buffer.from(manifest).toString('utf8'))?.[1];
  if (medium === undefined || found === undefined || found === medium) return [];
  return [
    `the image has osImageStream ${shorten(found)}, but the medium boots ${medium}: ` +
      'hosts change the operating system while they install',
  ];
}

/** The name of a host's folder: `host0`. */
const NETWORK = /^\/etc\/assisted\/network\/([^/]+)\/./;

/** The loader copies the networks of the image over those of the medium, and removes none. */
function findMixedNetworks({ paths }: LiveSystem, { files }: ConfigArchive): readonly string[] {
  const [medium, image] = [paths, files].map(listNetworks);
  if (!medium?.length || !image?.length) return [];
  const list = (names: readonly string[]): string => shorten(names.slice(0, MOST).join(', '));
  return [
    `the medium has networks (${list(medium)}) and the image too (${list(image)}): hosts get a mixture of both`,
  ];
}

const listNetworks = (paths: Pick<ReadonlySet<string>, 'keys'>): readonly string[] => [
  ...new Set([...paths.keys()].flatMap((path) => NETWORK.exec(path)?.[1] ?? [])),
];

function findCarriedOver({ loader, paths }: LiveSystem, { files }: ConfigArchive) {
  const absent = (loader?.required ?? []).filter(
    (path) => path !== CLUSTER_IMAGE_SET && !files.has(path) && paths.has(path),
  );
  return absent.map((path) => `the image has no ${path}: the file of the medium remains`);
}

/** Maximum number of a kind; an archive can hold a hundred thousand. */
const MOST = 20;

const findReplacedManifests = ({ paths }: LiveSystem, { files }: ConfigArchive) =>
  [...files.keys()]
    .filter((path) => path.startsWith(EXTRA_MANIFESTS) && paths.has(path))
    .slice(0, MOST)
    .map((path) => `${path} replaces the manifest of that name on the medium`);

const findRepeated = ({ repeated }: ConfigArchive) =>
  repeated.slice(0, MOST).map((path) => `${shorten(path)} occurs more than once: the last counts`);
