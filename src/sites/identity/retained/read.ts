import { basename, dirname } from 'node:path';
import { ConfigError } from '../../../base/errors.ts';
import { formatCanonicalJson } from '../../../base/text/json.ts';
import { SIGNER_NAMES, SIGNERS, type SiteIdentity, type RetainedIdentity } from '../identity.ts';
import {
  INSTALL_STATE_FILE,
  parseInstallState,
  type InstallState,
  parseRetainedManifest,
  parseRetainedSources,
  type RetainedManifest,
  type ShownFile,
} from './documents.ts';
import {
  incomplete,
  retainedMismatch,
  readRetainedText,
  readSigners,
  readTlsPassword,
  refuseMissing,
  type RetainedSigners,
} from './files.ts';
import {
  joinIdentity,
  nameRetained,
  parseRetainedKubeconfig,
  type RetainedKubeconfig,
} from './join.ts';
import { joinManifest } from './join-manifest.ts';

/*
 * Main file of retained identities: a directory, an ISO or a kubeconfig of an earlier producer comes in, and
 * the identity in it leaves. It must not know the inputs of the site that will use it.
 */

export type RetainedIso = {
  /** manifest.json */
  readonly manifest: string;
  /** Seconds since 1970, if the volume has a time. */
  readonly madeAt?: number;
};

export type RetainedPlace = {
  /** Directory of openshift-install, or a directory that was filled like it. */
  readonly directory?: string;
  readonly iso?: string;
  /** Kubeconfig to use in place of the directory's kubeconfig. */
  readonly kubeconfig?: string;
  readonly readIso: (path: string) => Promise<RetainedIso>;
};

type FoundText = ShownFile & { readonly text: string };

type Found = {
  readonly shownAs: string;
  readonly manifest: RetainedManifest | undefined;
  readonly kubeconfig: RetainedKubeconfig | undefined;
  readonly signers: RetainedSigners;
  readonly tlsPassword: SiteIdentity['password'] | undefined;
  readonly password: FoundText | undefined;
  readonly adminKey: FoundText | undefined;
  readonly madeAt: number | undefined;
  readonly sources: RetainedIdentity['imageDigestSources'];
};

type InDirectory = Pick<Found, 'signers' | 'tlsPassword' | 'adminKey' | 'sources'> &
  Readonly<Record<'manifests' | 'kubeconfigs' | 'passwords', readonly (FoundText | undefined)[]>>;

/**
 * Reads an identity that an earlier producer left. With a manifest (in the directory, on an ISO,
 * or in the state of openshift-install) and a kubeconfig, it is the whole identity. With a
 * manifest and the administrator's signer in `tls/`, or with only signers and password in `tls/`,
 * the missing parts are drawn. From a manifest only name, domain, ids, keys and password hash are
 * taken. Makes no key; proves the password if there is one.
 */
export async function readRetained(place: RetainedPlace): Promise<RetainedIdentity> {
  const found = await findAll(place);
  const { manifest, kubeconfig, signers, tlsPassword, sources } = found;
  const retained = {
    ...describeSigners(signers),
    ...(tlsPassword && { password: tlsPassword }),
    ...(sources && { imageDigestSources: sources }),
  };
  if (manifest && kubeconfig) {
    const identity = { ...retained, ...joinManifest(manifest, found) };
    return { ...identity, whole: await joinIdentity({ ...found, manifest, kubeconfig }) };
  }
  const count = Object.keys(signers).length;
  if (manifest) {
    if (count === 0) throw withoutAdmin(manifest);
    refuseMissing(found.shownAs, signers, ['adminKubeconfig']);
    return { ...retained, ...joinManifest(manifest, found) };
  }
  if (count > 0) refuseMissing(found.shownAs, signers, SIGNER_NAMES);
  else if (!sources && !tlsPassword) throw nothing(found.shownAs);
  return { ...retained, signerKeys: {} };
}

const withoutAdmin = ({ shownAs }: RetainedManifest): ConfigError =>
  incomplete(
    `${shownAs} has no private key of ${SIGNERS.adminKubeconfig.file}, and there is no kubeconfig`,
    `give auth/kubeconfig or --kubeconfig, or tls/${SIGNERS.adminKubeconfig.file}.key and .crt`,
  );

const MANIFEST_FILE = 'cluster-configuration/manifest.json';

const nothing = (shownAs: string): ConfigError =>
  new ConfigError(
    'retained.empty',
    `${shownAs} has neither tls/ nor ${MANIFEST_FILE} nor imagebasedconfig.iso nor ${INSTALL_STATE_FILE}`,
    { hint: 'give the directory in which openshift-install ran, or an ISO and --kubeconfig' },
  );

const NOTHING: InDirectory = {
  signers: {},
  tlsPassword: undefined,
  adminKey: undefined,
  sources: undefined,
  manifests: [],
  kubeconfigs: [],
  passwords: [],
};

async function findAll(place: RetainedPlace): Promise<Found> {
  const { directory, iso } = place;
  const given = await readGiven(place.kubeconfig);
  const found = directory === undefined ? NOTHING : await readDirectory(directory);
  const { manifests, kubeconfigs, passwords, ...others } = found;
  const onIso = iso === undefined ? undefined : await place.readIso(iso);
  const isoManifest = onIso && { text: onIso.manifest, directory: iso ?? '', path: MANIFEST_FILE };
  return {
    shownAs: directory ?? iso ?? '',
    manifest: pickManifest([...manifests, isoManifest]),
    kubeconfig: pickKubeconfig(given.kubeconfig ? [given.kubeconfig] : kubeconfigs),
    password: [...passwords, given.password].find((password) => password && password.text !== ''),
    ...others,
    madeAt: onIso?.madeAt,
  };
}

const MIRRORS_FILE = 'cluster-configuration/manifests/image-digest-mirror-set.json';
const KUBECONFIG_FILE = 'auth/kubeconfig';
const PASSWORD_FILE = 'auth/kubeadmin-password';

async function readDirectory(directory: string): Promise<InDirectory> {
  const read = (path: string): Promise<FoundText | undefined> => readFound(directory, path);
  const stateFile = await read(INSTALL_STATE_FILE);
  const state = stateFile ? parseInstallState(stateFile.text, stateFile) : {};
  const inState = (member: keyof InstallState): FoundText | undefined => {
    const text = state[member];
    return stateFile && text !== undefined ? { ...stateFile, text } : undefined;
  };
  const signers = await readSigners(directory);
  const mirrors = await read(MIRRORS_FILE);
  return {
    signers,
    tlsPassword: await readTlsPassword(directory),
    manifests: [await read(MANIFEST_FILE), inState('manifest')],
    kubeconfigs: [await read(KUBECONFIG_FILE), inState('kubeconfig')],
    passwords: [await read(PASSWORD_FILE), inState('password')],
    adminKey: pickAdminKey(directory, signers) ?? inState('adminSignerKey'),
    sources: mirrors && parseRetainedSources(mirrors.text, mirrors),
  };
}

async function readFound(directory: string, path: string): Promise<FoundText | undefined> {
  const text = await readRetainedText(directory, path);
  return text === undefined ? undefined : { text, directory, path };
}

/** Reads the kubeconfig, and the password that openshift-install puts next to it. */
async function readGiven(path: string | undefined): Promise<{
  readonly kubeconfig?: FoundText;
  readonly password?: FoundText | undefined;
}> {
  if (path === undefined) return {};
  const kubeconfig = await readFound(dirname(path), basename(path));
  if (!kubeconfig) {
    throw new ConfigError('retained.unreadable', `there is no kubeconfig ${path}`, {
      hint: 'check the path of --kubeconfig',
    });
  }
  return { kubeconfig, password: await readFound(dirname(path), basename(PASSWORD_FILE)) };
}

/** All manifests that exist must have the same identity. */
function pickManifest(found: readonly (FoundText | undefined)[]): RetainedManifest | undefined {
  const [first, ...others] = found.flatMap((file) =>
    file ? [parseRetainedManifest(file.text, file)] : [],
  );
  for (const other of others) if (first) refuseOther(first, other);
  return first;
}

function refuseOther(first: RetainedManifest, other: RetainedManifest): void {
  const [a, b] = [first, other].map((one) => formatCanonicalJson({ ...one, shownAs: '' }));
  if (a !== b)
    throw retainedMismatch(`${first.shownAs} and ${other.shownAs} belong to different identities`);
}

function pickKubeconfig(found: readonly (FoundText | undefined)[]): RetainedKubeconfig | undefined {
  const [first, other] = found.flatMap((file) =>
    file ? [parseRetainedKubeconfig(file.text, nameRetained(file))] : [],
  );
  if (!first || !other || first.client.certificate === other.client.certificate) return first;
  throw retainedMismatch(
    `${first.shownAs} and ${other.shownAs} belong to different administrators`,
  );
}

function pickAdminKey(directory: string, signers: RetainedSigners): FoundText | undefined {
  const path = `tls/${SIGNERS.adminKubeconfig.file}.key`;
  const text = signers.adminKubeconfig?.privateKey;
  return text === undefined ? undefined : { text, directory, path };
}

function describeSigners(signers: RetainedSigners): Pick<RetainedIdentity, 'signers'> & {
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
