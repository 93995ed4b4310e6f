import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { X509Certificate } from 'node:crypto';
import { ConfigError } from '../../../../base/errors.ts';
import { isErrno } from '../../../../base/errno.ts';
import { readFileIfPresent } from '../../../../base/files.ts';
import { formatSize } from '../../../../base/format-size.ts';
import type { RetainedIdentity } from './retain-identity.ts';
import {
  parseRetainedManifest,
  parseRetainedSources,
  type RetainedManifest,
} from './retained-manifest.ts';
import { proveRetainedPassword } from './retained-password.ts';
import { isSameKey, parseRetainedCertificate, parseRetainedKey } from './retained-pem.ts';
import { INGRESS_PREFIX, SIGNER_NAMES, SIGNERS, type SignerName } from '../certificates/signers.ts';
import type { KeyPair } from '../site-identity.ts';

const MANIFEST_FILE = 'cluster-configuration/manifest.json';
const MIRRORS_FILE = 'cluster-configuration/manifests/image-digest-mirror-set.json';
const HASH_FILE = 'tls/kubeadmin-password.hash';
const PASSWORD_FILE = 'tls/kubeadmin-password';

type Signer = KeyPair & { readonly commonName: string };
type Signers = Partial<Record<SignerName, Signer>>;

/**
 * What openshift-install left in its directory, or was given there: signers and password in `tls/`,
 * `cluster-configuration/manifest.json`, and the list of mirrors below it. Signers are all there or
 * none; with a manifest, whose keys are used, only the administrator's must be. Costs no key, and the
 * proof of a password where there is one.
 *
 * @throws ConfigError `retained.unreadable`, `retained.empty`, `retained.incomplete`,
 * `retained.not-pem`, `retained.not-rsa`, `retained.mismatch`, `retained.password`, `retained.manifest`
 */
export async function readRetained(dir: string): Promise<RetainedIdentity> {
  const text = await readText(dir, MANIFEST_FILE);
  const sources = await readSources(dir);
  const signers = await readSigners(dir);
  const password = await readPassword(dir);
  const count = Object.keys(signers).length;
  if (text === undefined && !sources && !password && count === 0) {
    throw new ConfigError('retained.empty', `${dir} has neither tls/ nor ${MANIFEST_FILE}`, {
      hint: 'give the directory in which openshift-install ran',
    });
  }
  const kept = {
    ...describeSigners(signers),
    ...(password && { password }),
    ...(sources && { imageDigestSources: sources }),
  };
  if (text === undefined) {
    if (count > 0) refuseMissing(dir, signers, SIGNER_NAMES);
    return { ...kept, signerKeys: {} };
  }
  refuseMissing(dir, signers, ['adminKubeconfig']);
  const manifest = parseRetainedManifest(text, { directory: dir, path: MANIFEST_FILE });
  return { ...kept, ...joinManifest(manifest, { dir, signers, password }), manifest: text };
}

async function readSources(dir: string): Promise<RetainedIdentity['imageDigestSources']> {
  const text = await readText(dir, MIRRORS_FILE);
  return text === undefined
    ? undefined
    : parseRetainedSources(text, { directory: dir, path: MIRRORS_FILE });
}

/** A manifest has the pull secret and the network of a site; all else is smaller. */
const MAX_SIZE = 16 << 20;

async function readText(dir: string, file: string): Promise<string | undefined> {
  const path = join(dir, file);
  try {
    const size = await findSize(path);
    if (size === undefined) return undefined;
    if (size > MAX_SIZE) throw unreadable(dir, file);
    const bytes = await readFileIfPresent(path);
    return bytes && new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    if (!isErrno(cause, 'EACCES', 'EISDIR', 'ELOOP', 'ERR_ENCODING_INVALID_ENCODED_DATA'))
      throw cause;
    throw unreadable(dir, file, cause);
  }
}

/** What is no file counts as too large: to read a pipe may take for ever. */
async function findSize(path: string): Promise<number | undefined> {
  try {
    const found = await stat(path);
    return found.isFile() ? found.size : Infinity;
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  }
}

const unreadable = (dir: string, file: string, cause?: unknown): ConfigError =>
  new ConfigError('retained.unreadable', `${dir}: failed to load ${file} file`, {
    ...(cause === undefined
      ? { expected: `a file of at most ${formatSize(MAX_SIZE)}` }
      : { cause }),
  });

async function readSigners(dir: string): Promise<Signers> {
  const signers: Signers = {};
  for (const name of SIGNER_NAMES) {
    const signer = await readSigner(dir, name);
    if (signer) signers[name] = signer;
  }
  return signers;
}

async function readSigner(dir: string, name: SignerName): Promise<Signer | undefined> {
  const path = `tls/${SIGNERS[name].file}`;
  const [keyText, certificateText] = [
    await readText(dir, `${path}.key`),
    await readText(dir, `${path}.crt`),
  ];
  if (keyText === undefined && certificateText === undefined) return undefined;
  if (keyText === undefined || certificateText === undefined) {
    const [found, missing] = keyText === undefined ? ['crt', 'key'] : ['key', 'crt'];
    throw incomplete(`${join(dir, path)}.${found} is there, but ${path}.${missing} is not`);
  }
  const privateKey = parseRetainedKey(keyText, join(dir, `${path}.key`));
  const shownAs = join(dir, `${path}.crt`);
  const certificate = parseRetainedCertificate(certificateText, shownAs);
  if (!isSameKey(privateKey, certificate)) {
    throw mismatch(`${shownAs} is not the certificate of ${path}.key`);
  }
  if (!certificate.ca) throw mismatch(`${shownAs} is no CA, and should sign certificates`);
  const commonName = readCommonName(certificate, name, shownAs);
  return { privateKey, certificate: certificate.toString(), commonName };
}

/** The node looks its signers up by their names: any other would not be replaced by ours. */
function readCommonName(certificate: X509Certificate, name: SignerName, shownAs: string): string {
  const [, ingress] = /^CN=(ingress-operator@[0-9]+)$/.exec(certificate.subject) ?? [];
  const { organizationalUnit, commonName } = SIGNERS[name].subject(0);
  const isIngress = name === 'ingress';
  const found = isIngress ? ingress : commonName;
  const wanted = `OU=${organizationalUnit ?? ''}\nCN=${commonName}`;
  if (found !== undefined && (isIngress || certificate.subject === wanted)) return found;
  const expected = isIngress ? `CN=${INGRESS_PREFIX}<seconds>` : formatSubject(wanted);
  throw new ConfigError('retained.mismatch', `${shownAs} is the certificate of another signer`, {
    expected,
    found: formatSubject(certificate.subject),
  });
}

const formatSubject = (lines: string): string => lines.split('\n').join(', ');

async function readPassword(dir: string): Promise<RetainedIdentity['password']> {
  const bcrypt = await readText(dir, HASH_FILE);
  const text = await readText(dir, PASSWORD_FILE);
  if (bcrypt === undefined && text === undefined) return undefined;
  if (bcrypt === undefined) {
    throw incomplete(`${join(dir, PASSWORD_FILE)} is there, but ${HASH_FILE} is not`);
  }
  const files = { hash: join(dir, HASH_FILE), text: join(dir, PASSWORD_FILE) };
  await proveRetainedPassword({ bcrypt, text }, files);
  return { text: text ?? '', bcrypt };
}

function describeSigners(signers: Signers): Pick<RetainedIdentity, 'signers'> & {
  readonly ingressCommonName?: string;
} {
  const pairs = Object.entries(signers).map(
    ([name, { privateKey, certificate }]) => [name, { privateKey, certificate }] as const,
  );
  return {
    signers: Object.fromEntries(pairs),
    ...(signers.ingress && { ingressCommonName: signers.ingress.commonName }),
  };
}

function refuseMissing(dir: string, signers: Signers, names: readonly SignerName[]): void {
  const missing = names.filter((name) => !signers[name]);
  if (missing.length === 0) return;
  const files = missing.flatMap((name) =>
    ['key', 'crt'].map((kind) => `tls/${SIGNERS[name].file}.${kind}`),
  );
  throw incomplete(`${dir} has no ${files.join(', ')}`);
}

type Beside = {
  readonly dir: string;
  readonly signers: Signers;
  readonly password: RetainedIdentity['password'];
};

/** The manifest goes on the ISO as it is: what is kept beside it must say the same. */
function joinManifest(
  manifest: RetainedManifest,
  beside: Beside,
): Omit<RetainedIdentity, 'signers' | 'manifest'> {
  const { clusterName, baseDomain, clusterId, infraId, passwordHash, ingressCommonName } = manifest;
  const shownAs = join(beside.dir, MANIFEST_FILE);
  const known = { cluster_id: clusterId, infra_id: infraId, cluster_name: clusterName };
  for (const [key, text] of Object.entries({ ...known, base_domain: baseDomain })) {
    if (text === '') throw incomplete(`${shownAs} has no ${key}`);
  }
  refuseOtherAdmin(manifest, beside);
  refuseOtherName(ingressCommonName, beside);
  if (beside.password && beside.password.bcrypt !== passwordHash) {
    throw mismatch(`${shownAs} has another hash than ${HASH_FILE}`);
  }
  return {
    ...{ clusterName, baseDomain, clusterId, infraId, ingressCommonName },
    signerKeys: readKeys(manifest, beside),
    password: beside.password ?? { text: '', bcrypt: passwordHash },
  };
}

/** Those that `tls/` has no certificate for. */
function readKeys({ keys }: RetainedManifest, { dir, signers }: Beside): Record<string, string> {
  const shownAs = join(dir, MANIFEST_FILE);
  const found = Object.entries(keys).map(([name, text]): [SignerName, string] => {
    const { file } = SIGNERS[name as SignerName];
    if (text === '') throw incomplete(`${shownAs} has no private key of ${file}`);
    return [name as SignerName, parseRetainedKey(text, `${shownAs}: key of ${file}`)];
  });
  for (const [name, key] of found) {
    const signer = signers[name];
    if (signer && !isSameKey(key, signer.privateKey)) {
      throw mismatch(`${shownAs} has another key than tls/${SIGNERS[name].file}.key`);
    }
  }
  return Object.fromEntries(found.filter(([name]) => !signers[name]));
}

/** The node trusts the one of the manifest, and the one of `tls/` signs the kubeconfig. */
function refuseOtherAdmin({ adminCertificate }: RetainedManifest, { dir, signers }: Beside): void {
  const shownAs = `${join(dir, MANIFEST_FILE)}: admin_ca_certificate`;
  const found = parseRetainedCertificate(adminCertificate, shownAs).toString();
  if (found === signers.adminKubeconfig?.certificate) return;
  throw mismatch(`${shownAs} is another than tls/${SIGNERS.adminKubeconfig.file}.crt`);
}

function refuseOtherName(commonName: string, { dir, signers }: Beside): void {
  const shownAs = join(dir, MANIFEST_FILE);
  if (commonName === '') throw incomplete(`${shownAs} has no ingress_certificate_cn`);
  if (!signers.ingress || signers.ingress.commonName === commonName) return;
  throw new ConfigError('retained.mismatch', `${shownAs} and tls/ name two ingress signers`, {
    expected: signers.ingress.commonName,
    found: commonName,
  });
}

const incomplete = (message: string): ConfigError =>
  new ConfigError('retained.incomplete', message, {
    hint: 'give all that the earlier producer left, or nothing of it',
  });

const mismatch = (message: string): ConfigError =>
  new ConfigError('retained.mismatch', message, {
    hint: 'give files of one cluster and of one run only',
  });
