import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { textFile, type IgnitionConfig } from '../../src/ignition/index.ts';
import { encodeInitrd } from '../../src/ignition/initrd.ts';
import { makeCoreosIso, makeIso } from './iso.ts';

export const RELEASE_IMAGE = `quay.io/openshift-release-dev/ocp-release@sha256:${'a'.repeat(64)}`;

/** As the installer writes it. */
export const formatImageSet = (releaseImage: string, namespace?: string): string =>
  [
    'apiVersion: hive.openshift.io/v1',
    'kind: ClusterImageSet',
    'metadata:',
    '  creationTimestamp: null',
    '  name: openshift-4.21.3',
    ...(namespace === undefined ? [] : [`  namespace: ${namespace}`]),
    'spec:',
    `  releaseImage: ${releaseImage}`,
    'status: {}',
    '',
  ].join('\n');

export const IMAGE_SET_PATH = '/etc/assisted/manifests/cluster-image-set.yaml';

/** Key and certificate of a signer, by OpenSSL. */
function makeCertificate(): { readonly key: string; readonly certificate: string } {
  const both = execFileSync(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=signer', '-days', '3650'],
      ...['-keyout', '-', '-out', '-'],
    ],
    { encoding: 'utf8', stdio: 'pipe' },
  );
  const at = both.indexOf('-----BEGIN CERTIFICATE');
  const [key, certificate] = [both.slice(0, at), both.slice(at)];
  return { key, certificate };
}

const SIGNERS = ['admin-kubeconfig', 'kube-apiserver-lb', 'kube-apiserver-localhost'].concat(
  'kube-apiserver-service-network',
);

/** What every configuration image of installers from 4.18 on has, in the order of the list. */
export const REQUIRED_FILES: readonly string[] = [
  '/etc/assisted/manifests/pull-secret.yaml',
  '/etc/assisted/manifests/cluster-deployment.yaml',
  IMAGE_SET_PATH,
  '/etc/assisted/manifests/agent-cluster-install.yaml',
  '/etc/assisted/manifests/infraenv.yaml',
  '/etc/NetworkManager/conf.d/clientid.conf',
  '/etc/issue',
  '/etc/systemd/system.conf.d/10-default-env.conf',
  '/root/.docker/config.json',
  '/usr/local/share/start-cluster/start-cluster.env',
  '/usr/local/share/assisted-service/assisted-service.env',
  '/opt/agent/tls/kubeadmin-password.hash',
  ...SIGNERS.flatMap((name) => [
    `/opt/agent/tls/${name}-signer.key`,
    `/opt/agent/tls/${name}-signer.crt`,
  ]),
  '/etc/assisted/rendezvous-host.env',
];

const DIRECTORIES = ['manifests', 'extra-manifests', 'hostconfig', 'hostnames', 'network'].map(
  (name) => `/etc/assisted/${name}`,
);

/** Files and folders that a loader takes, in its order: the rendezvous host last. */
export const CONFIG_IMAGE_FILES: readonly string[] = [
  ...REQUIRED_FILES.slice(0, 5),
  ...DIRECTORIES,
  ...REQUIRED_FILES.slice(5),
];

export type Members = Readonly<Record<string, string>>;

/** Members of the image of a cluster with three masters and two workers. */
export function configImageMembers(imageSet = formatImageSet(RELEASE_IMAGE)): Members {
  const { key, certificate } = makeCertificate();
  const special: Members = {
    [IMAGE_SET_PATH]: imageSet,
    '/etc/assisted/manifests/infraenv.yaml': 'spec:\n  cpuArchitecture: x86_64\n',
    '/usr/local/share/start-cluster/start-cluster.env':
      'REQUIRED_MASTER_NODES=3\nREQUIRED_ARBITER_NODES=0\nREQUIRED_WORKER_NODES=2\n',
    '/etc/assisted/rendezvous-host.env':
      'NODE_ZERO_IP=192.168.111.80\nSERVICE_BASE_URL=http://192.168.111.80:8090/\n' +
      'USER_AUTH_TOKEN=secret-token\n',
  };
  const contentOf = (path: string): string =>
    special[path] ?? (/\.(key|crt)$/.exec(path)?.[1] === 'key' ? key : certificateOr(path));
  const certificateOr = (path: string): string =>
    path.endsWith('.crt') ? certificate : `content of ${path}\n`;
  return {
    ...Object.fromEntries(REQUIRED_FILES.map((path) => [path, contentOf(path)])),
    '/etc/assisted/hostconfig/master-0/mac_addresses': '52:54:00:00:00:01\n',
    '/etc/assisted/hostnames/52:54:00:00:00:01': 'master-0',
  };
}

/** The bytes of a `config.gz`: packed by bsdtar as newc with absolute names, and gzip. */
export async function packConfigArchive(directory: string, members: Members): Promise<Buffer> {
  const tree = await mkdtemp(join(directory, 'members-'));
  try {
    const names = Object.keys(members).map((path) => path.replace(/^\//, ''));
    for (const [path, text] of Object.entries(members)) {
      await mkdir(dirname(join(tree, path)), { recursive: true });
      await writeFile(join(tree, path), text);
    }
    const prefix = Object.keys(members)[0]?.startsWith('/') === true ? ['-s', ',^,/,'] : [];
    const cpio = execFileSync(
      'bsdtar',
      ['-c', '--format', 'newc', '-P', ...prefix, '-T', '-', '-f', '-'],
      { cwd: tree, input: names.map((name) => `${name}\n`).join(''), maxBuffer: 64 << 20 },
    );
    return gzipSync(cpio);
  } finally {
    await rm(tree, { recursive: true, force: true });
  }
}

/** An ISO of the form of `agentconfig.noarch.iso`, written by xorriso. */
export const makeConfigImage = (
  directory: string,
  archive: Uint8Array | { readonly symlink: string },
  { name, label = 'agent_configimage', file = 'config.gz' }: ImageOptions,
): Promise<string> =>
  makeIso(
    directory,
    { program: 'xorriso', files: { [file]: archive }, args: ['-r', '-V', label] },
    name,
  );

export type ImageOptions = {
  readonly name: string;
  readonly label?: string;
  readonly file?: string;
};

/** The unconfigured Ignition config of an installer, as far as configuration images go. */
export function unconfiguredIgnition(imageSet = formatImageSet(RELEASE_IMAGE)): IgnitionConfig {
  const live = ['/etc/issue', '/root/.docker/config.json', '/etc/assisted/manifests/infraenv.yaml'];
  return {
    ignition: { version: '3.2.0' },
    storage: {
      files: [
        textFile(IMAGE_SET_PATH, imageSet, 0o600),
        ...live.map((path) => textFile(path, 'live\n', 0o600)),
      ],
    },
    systemd: {
      units: [
        {
          name: 'load-config-iso@.service',
          contents: `[Service]\nEnvironment=CONFIG_IMAGE_FILES=${CONFIG_IMAGE_FILES.join(',')}\nExecStart=/usr/local/bin/load-config-iso.sh %I\n`,
        },
      ],
    },
  };
}

/** A live ISO with this in its embed area. */
export async function makeLiveMedium(
  directory: string,
  config: IgnitionConfig = unconfiguredIgnition(),
): Promise<string> {
  const data = Buffer.from(JSON.stringify(config));
  const area = Buffer.alloc(262_144);
  area.set(encodeInitrd([{ name: 'config.ign', mode: 0o100600, data }]));
  const folder = await mkdtemp(join(directory, 'live-'));
  return makeCoreosIso(folder, { files: { 'images/ignition.img': area } });
}
