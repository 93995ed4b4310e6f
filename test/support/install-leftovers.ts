import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hashSync } from 'bcryptjs';
import { runProcess } from '../../src/base/process.ts';
import { writeTree, type Tree } from './site-archives.ts';

type Pair = { readonly key: string; readonly crt: string };

/** What openshift-install draws for a cluster, made by openssl alone. */
export type InstalledCluster = {
  readonly signers: Readonly<Record<SignerFile, Pair>>;
  readonly client: Pair;
  readonly password: string;
  readonly manifest: Readonly<Record<string, unknown>>;
  readonly kubeconfig: string;
};

const SUBJECTS = {
  'kube-apiserver-lb-signer': '/OU=openshift/CN=kube-apiserver-lb-signer',
  'kube-apiserver-localhost-signer': '/OU=openshift/CN=kube-apiserver-localhost-signer',
  'kube-apiserver-service-network-signer': '/OU=openshift/CN=kube-apiserver-service-network-signer',
  'admin-kubeconfig-signer': '/OU=openshift/CN=admin-kubeconfig-signer',
  'ingress-operator-signer': '/CN=ingress-operator@1767323045',
} as const;

type SignerFile = keyof typeof SUBJECTS;

/** Names of the assets in a state, by the files of their signers: openshift-install's types in Go. */
const ASSETS: Readonly<Record<SignerFile, string>> = {
  'kube-apiserver-lb-signer': '*tls.KubeAPIServerLBSignerCertKey',
  'kube-apiserver-localhost-signer': '*tls.KubeAPIServerLocalhostSignerCertKey',
  'kube-apiserver-service-network-signer': '*tls.KubeAPIServerServiceNetworkSignerCertKey',
  'admin-kubeconfig-signer': '*tls.AdminKubeConfigSignerCertKey',
  'ingress-operator-signer': '*configimage.IngressOperatorSignerCertKey',
};

export const CLUSTER_ID = 'e6a68c95-ee5c-4edd-9bb1-8141ac3eb348';
export const INFRA_ID = 'alpha-sktvm';

/** The cluster alpha.edge.example, installed before with other addresses. */
export async function installCluster(): Promise<InstalledCluster> {
  const directory = await mkdtemp(join(tmpdir(), 'sealift-installed-'));
  try {
    const signers = {} as Record<SignerFile, Pair>;
    for (const name of Object.keys(SUBJECTS) as SignerFile[]) {
      signers[name] = await makeSigner(directory, name);
    }
    const client = await makeClient(directory);
    const password = 'aBcDe-fGhJk-mNpQr-sTuVw';
    return {
      signers,
      client,
      password,
      manifest: describeCluster(signers, hashSync(password, 10)),
      kubeconfig: formatKubeconfig(signers, client),
    };
  } finally {
    await rm(directory, { recursive: true });
  }
}

const openssl = (directory: string, ...args: readonly string[]): Promise<unknown> =>
  runProcess('openssl', args, { cwd: directory });

const readPair = async (directory: string, name: string): Promise<Pair> => ({
  key: await readFile(join(directory, `${name}.key`), 'utf8'),
  crt: await readFile(join(directory, `${name}.crt`), 'utf8'),
});

async function makeSigner(directory: string, name: SignerFile): Promise<Pair> {
  await openssl(directory, 'genrsa', '-traditional', '-out', `${name}.key`, '2048');
  const usage = 'keyUsage=critical,digitalSignature,keyEncipherment,keyCertSign';
  await openssl(
    directory,
    ...['req', '-x509', '-new', '-key', `${name}.key`, '-subj', SUBJECTS[name], '-days', '3650'],
    ...['-addext', usage, '-out', `${name}.crt`],
  );
  return readPair(directory, name);
}

async function makeClient(directory: string): Promise<Pair> {
  const signer = 'admin-kubeconfig-signer';
  await openssl(directory, 'genrsa', '-traditional', '-out', 'client.key', '2048');
  const subject = '/O=system:masters/CN=system:admin';
  const request = ['req', '-new', '-key', 'client.key', '-subj', subject, '-out', 'client.csr'];
  await openssl(directory, ...request);
  await writeFile(join(directory, 'ext'), 'extendedKeyUsage=serverAuth,clientAuth\n');
  await openssl(
    directory,
    ...['x509', '-req', '-in', 'client.csr', '-CA', `${signer}.crt`, '-CAkey', `${signer}.key`],
    ...['-days', '3650', '-extfile', 'ext', '-out', 'client.crt'],
  );
  return readPair(directory, 'client');
}

/** manifest.json as openshift-install 4.22 has it. */
const describeCluster = (
  signers: InstalledCluster['signers'],
  hash: string,
): Readonly<Record<string, unknown>> => ({
  additionalTrustBundle: { userCaBundle: '', proxyConfigmapName: '', proxyConfigmapBundle: '' },
  api_version: 1,
  base_domain: 'edge.example',
  cluster_id: CLUSTER_ID,
  cluster_name: 'alpha',
  hostname: 'old-host',
  infra_id: INFRA_ID,
  kubeadmin_password_hash: hash,
  KubeconfigCryptoRetention: {
    KubeAPICrypto: {
      ServingCrypto: {
        localhost_signer_private_key: signers['kube-apiserver-localhost-signer'].key,
        service_network_signer_private_key: signers['kube-apiserver-service-network-signer'].key,
        loadbalancer_external_signer_private_key: signers['kube-apiserver-lb-signer'].key,
      },
      ClientAuthCrypto: { admin_ca_certificate: signers['admin-kubeconfig-signer'].crt },
    },
    IngresssCrypto: {
      ingress_ca: signers['ingress-operator-signer'].key,
      ingress_certificate_cn: 'ingress-operator@1767323045',
    },
  },
  machine_networks: ['10.9.0.0/24'],
  raw_nm_state_config: 'interfaces: []\n',
  ssh_key: '',
  proxy: { httpProxy: 'http://old.example:3128' },
  pull_secret: '{"auths":{}}',
});

const encode = (text: string): string => Buffer.from(text).toString('base64');

function formatKubeconfig(signers: InstalledCluster['signers'], client: Pair): string {
  const bundle = [
    ...['kube-apiserver-localhost-signer', 'kube-apiserver-service-network-signer'],
    ...['kube-apiserver-lb-signer', 'ingress-operator-signer'],
  ].map((name) => signers[name as SignerFile].crt);
  return `clusters:
- cluster:
    certificate-authority-data: ${encode(bundle.join(''))}
    server: https://api.alpha.edge.example:6443
  name: alpha
contexts:
- context:
    cluster: alpha
    user: admin
  name: admin
current-context: admin
users:
- name: admin
  user:
    client-certificate-data: ${encode(client.crt)}
    client-key-data: ${encode(client.key)}
`;
}

/** .openshift_install_state.json: assets by their Go types, bytes in base64, indented by four. */
export function formatInstallState(cluster: InstalledCluster): string {
  const { manifest, kubeconfig, password, signers, client } = cluster;
  const file = (Filename: string, text: string) => ({ Filename, Data: encode(text) });
  const pair = ({ key, crt }: Pair, name: string | undefined) => ({
    CertRaw: encode(crt),
    KeyRaw: encode(key),
    FileList: name === undefined ? null : [file(`${name}.key`, key), file(`${name}.crt`, crt)],
  });
  const assets = {
    '*configimage.ClusterConfiguration': {
      File: file('cluster-configuration/manifest.json', JSON.stringify(manifest)),
      Config: manifest,
    },
    '*configimage.ClusterID': { UUID: CLUSTER_ID, InfraID: INFRA_ID },
    '*configimage.ConfigImage': {},
    '*configimage.ExtraManifests': { FileList: null },
    '*configimage.ImageDigestMirrorSet': { File: null, Config: null },
    '*kubeconfig.ImageBasedAdminClient': { Config: {}, File: file('auth/kubeconfig', kubeconfig) },
    '*password.KubeadminPassword': {
      Password: password,
      PasswordHash: encode(String(manifest['kubeadmin_password_hash'])),
      File: file('auth/kubeadmin-password', password),
    },
    '*tls.AdminKubeConfigClientCertKey': pair(client, 'tls/admin-kubeconfig-client'),
    ...Object.fromEntries(
      (Object.keys(ASSETS) as SignerFile[]).map((name) => [
        ASSETS[name],
        pair(signers[name], name === 'ingress-operator-signer' ? undefined : `tls/${name}`),
      ]),
    ),
  };
  return JSON.stringify(assets, null, 4);
}

/** What an ISO of openshift-install has, written by a foreign program. */
export async function writeConfigIso(path: string, cluster: InstalledCluster): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'sealift-iso-tree-'));
  try {
    writeTree(directory, {
      'cluster-configuration/manifest.json': JSON.stringify(cluster.manifest),
      'cluster-configuration/manifests/image-digest-mirror-set.json': MIRROR_SET,
      'extra-manifests/old.yaml': 'kind: Old\n',
    });
    const args = ['-as', 'mkisofs', '-V', 'cluster-config', '-R', '-o', path, directory];
    await runProcess('xorriso', args);
  } finally {
    await rm(directory, { recursive: true });
  }
}

/** image-digest-mirror-set.json as it is on an ISO. */
export const MIRROR_SET = JSON.stringify({
  kind: 'ImageDigestMirrorSet',
  apiVersion: 'config.openshift.io/v1',
  metadata: { name: 'image-digest-mirror' },
  spec: { imageDigestMirrors: [{ source: 'quay.io/old', mirrors: ['mirror.example/old'] }] },
  status: {},
});

export const authTree = ({ kubeconfig, password }: InstalledCluster): Tree => ({
  'auth/kubeconfig': kubeconfig,
  'auth/kubeadmin-password': password,
});
