import { hexOf, type Digest } from '../../base/digest.ts';
import { fetchPublic, readLimited } from '../../base/download/fetch.ts';
import { IntegrityError, RegistryError, SealiftError } from '../../base/errors.ts';
import type { Http, HttpResponse } from '../../base/http/http.ts';
import type { TlsOptions } from '../../base/http/tls.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { redactUrl } from '../../base/text/redact.ts';
import { withTimeLimit } from '../../base/wait.ts';
import type { Stage, StageContext } from '../../engine/index.ts';
import {
  digestOfRelease,
  type Release,
  type ReleaseSignature,
} from '../../openshift/release/release.ts';
import {
  MAX_SIGNATURE_SIZE,
  type StoredSignature,
  MAX_SIGNATURES,
  readReleaseKeys,
  readSignatureFiles,
  type TrustedKeys,
} from '../../openshift/release/signature-store.ts';
import { verifyReleaseMessage } from '../../openshift/release/signature.ts';
import { isSignedVersion, stripBuild } from '../../openshift/release/version.ts';

/* The check of a release's signature: which sources are asked, in which order, and which answer counts. */

/** Locations of release signatures and of their keys, and the treatment of a release without a signature. */
export type SignatureGate = {
  /** Path of a folder `sha256=HEX/signature-N`, or of a file with ConfigMaps. */
  readonly files?: string;
  /** Address of a signature store; asked before the public ones. */
  readonly store?: string;
  /** Path of a file with public keys; default: the keys of Red Hat. */
  readonly keys?: string;
  /** True if releases without signatures, nightlies and CI builds, are accepted. */
  readonly allowUnsigned: boolean;
};

export type VerifyReleaseInput = SignatureGate & {
  readonly release: Release;
  /** Signatures of an oc-mirror workspace. */
  readonly workspace?: readonly StoredSignature[];
  /** Addresses of the public stores; default: Red Hat's. */
  readonly publicStores?: readonly string[];
};

export type VerifyReleaseTools = { readonly http: Http; readonly tls?: TlsOptions };

type Tools = VerifyReleaseTools & StageContext;

/**
 * Verifies the release and adds the facts about its signature. Sources are asked by digest, regardless of the
 * registry that the release is read from, until one has a valid signature: the named files, the workspace,
 * the named store, then the public stores. The public stores have no signatures of nightlies and CI builds,
 * and are not asked for them; a build from a workspace waits for no network.
 */
export const verifyRelease: Stage<VerifyReleaseInput, Release, VerifyReleaseTools> = {
  name: 'verify release',
  async run(input, tools, context) {
    const { release } = input;
    const known = { digest: digestOfRelease(release), ...readReleaseKeys(input.keys) };
    const answers: Answer[] = [];
    for (const sources of listSources(input, known.digest)) {
      const asked = await Promise.all(
        sources.map((source) => ask(source, { ...tools, ...context })),
      );
      for (const answer of asked) {
        const { accepted, refused } = judge(answer, known);
        answers.push({ ...answer, refused });
        if (!accepted) continue;
        for (const { message } of refused) {
          context.warn(
            `a signature of release ${release.version} in ${answer.from} is refused: ${message}`,
          );
        }
        return { ...release, signature: accepted };
      }
    }
    const error = explain(release, answers);
    if (!input.allowUnsigned || !isNightly(release)) throw error;
    return { ...release, signature: { status: 'unsigned', problem: error.message } };
  },
};

const isNightly = ({ version }: Release): boolean => !isSignedVersion(stripBuild(version));

type Known = TrustedKeys & { readonly digest: Digest };

/** A place that may have signatures: read here, or a store that is asked for them by number. */
type Source = { readonly from: string } & (
  { readonly read: () => readonly Buffer[] } | { readonly store: (number: number) => URL }
);

/** Lists sources in the order of asking; the sources of one list are asked at the same time. */
function listSources(input: VerifyReleaseInput, digest: Digest): readonly (readonly Source[])[] {
  const { files, workspace, store, release } = input;
  const toStore = (address: string): Source => {
    const base = new URL(address);
    if (!base.pathname.endsWith('/')) base.pathname += '/';
    const folder = `${base.pathname}sha256=${hexOf(digest)}`;
    const store = (number: number): URL =>
      Object.assign(new URL(base), { pathname: `${folder}/signature-${number}` });
    return { from: redactUrl(base), store };
  };
  const asksPublicStores = workspace === undefined && !isNightly(release);
  const own = workspace?.filter((one) => one.digest === digest);
  const messages = own?.map(({ signature }) => Buffer.from(signature, 'base64'));
  return [
    ...(files === undefined
      ? []
      : [[{ from: files, read: () => readSignatureFiles(files, digest) }]]),
    ...(messages ? [[{ from: "the workspace's working-dir", read: () => messages }]] : []),
    ...(store === undefined ? [] : [[toStore(store)]]),
    ...(asksPublicStores ? [(input.publicStores ?? PUBLIC_STORES).map(toStore)] : []),
  ];
}

/** Stores that both have the signatures of all releases of Red Hat. */
const PUBLIC_STORES = [
  'https://mirror.openshift.com/pub/openshift-v4/signatures/openshift/release/',
  'https://storage.googleapis.com/openshift-release/official/signatures/openshift/release/',
];

type Answer = {
  readonly from: string;
  readonly messages: readonly Buffer[];
  /** True for a store; files and workspaces do not show what the stores have. */
  readonly isStore: boolean;
  /** Failure of a store that did not answer. */
  readonly failure?: string;
  readonly refused?: readonly SealiftError[];
};

async function ask(source: Source, tools: Tools): Promise<Answer> {
  const { from } = source;
  if ('read' in source) return { from, isStore: false, messages: source.read() };
  const messages: Buffer[] = [];
  try {
    for (let number = 1; number <= MAX_SIGNATURES; number++) {
      const bytes = await fetchSignature(source.store(number), tools);
      if (bytes === undefined) break;
      messages.push(bytes);
    }
  } catch (error) {
    tools.signal.throwIfAborted();
    if (!(error instanceof SealiftError) && !isTimeout(error)) throw error;
    return { from, isStore: true, messages, failure: (error as Error).message };
  }
  return { from, isStore: true, messages };
}

/** Separates the valid part of an answer from the reasons why the rest is invalid. */
function judge(
  { from, messages }: Pick<Answer, 'from' | 'messages'>,
  known: Known,
): { readonly accepted?: ReleaseSignature; readonly refused: readonly SealiftError[] } {
  const refused: SealiftError[] = [];
  const verified: { message: Buffer; key: string; identity: string }[] = [];
  for (const message of messages) {
    try {
      verified.push({ message, ...verifyReleaseMessage(message, known.digest, known) });
    } catch (error) {
      if (!(error instanceof SealiftError)) throw error;
      refused.push(error);
    }
  }
  const [first] = verified;
  if (!first) return { refused };
  const { key, identity } = first;
  const accepted = {
    ...({ status: 'verified', key, identity, from } as const),
    messages: verified.map(({ message }) => message.toString('base64')),
  };
  return { refused, accepted };
}

/** An invalid signature explains more than a missing one, and both more than a store without an answer. */
function explain(release: Release, answers: readonly Answer[]): SealiftError {
  const { version } = release;
  for (const { from, refused: [first] = [] } of answers) {
    if (!first) continue;
    const { code, expected, found } = first;
    return new IntegrityError(
      code,
      `the signature of release ${version} in ${from} is refused: ${first.message}`,
      {
        ...withoutUndefined({ expected, found }),
        hint: HINTS[code] ?? first.hint ?? 'get the signature again from its publisher',
      },
    );
  }
  return explainAbsence(release, answers);
}

function explainAbsence(release: Release, answers: readonly Answer[]): SealiftError {
  const { version } = release;
  const told = answers.map(({ from, failure }) => `${from}: ${failure ?? 'none'}`).join('; ');
  if (isNightly(release)) {
    return new IntegrityError(
      'signature.unsigned',
      `release ${version} is a nightly or CI build without a signature${told && ` (${told})`}`,
      { hint: 'if you trust its source, give --allow-unsigned or set build.allowUnsigned' },
    );
  }
  const message = `no signature of release ${version} (${digestOfRelease(release)}) was found: ${told}`;
  const stores = answers.filter(({ isStore }) => isStore);
  return stores.length > 0 && stores.every(({ failure }) => failure !== undefined)
    ? new RegistryError('signature.store-failed', message, { hint: HOW_TO_SUPPLY })
    : new IntegrityError('signature.missing', message, { hint: HOW_TO_SUPPLY });
}

const HOW_TO_SUPPLY =
  'name a folder with sha256=HEX/signature-1, or a file with signature ConfigMaps, with --signatures or ' +
  'build.signatures; or a copy of the store with --signature-url';

const HINTS: Readonly<Record<string, string>> = {
  'signature.untrusted-key':
    'to trust this key, name a file that has it with --signature-keys or build.signatureKeys',
  'signature.expired': 'get a newer signature from its publisher',
  'signature.key-expired': 'name a file that has the renewed key with --signature-keys',
  'signature.key-refused': 'name a file that has another key with --signature-keys',
  'signature.other-digest': 'get the signature of this release from its publisher',
};

/** Fetches a signature; undefined if the store has no signature of this number. */
function fetchSignature(url: URL, tools: Tools): Promise<Buffer | undefined> {
  return withTimeLimit(TIMEOUT_MS, tools.signal, (signal) =>
    tools.http.retries.run({ host: url.host, signal }, () =>
      askForSignature(url, { ...tools, signal }),
    ),
  );
}

const TIMEOUT_MS = 30_000;

async function askForSignature(
  url: URL,
  { http, tls, signal }: Tools,
): Promise<Buffer | undefined> {
  const response = await fetchPublic(http, { url, signal, ...(tls && { tls }) });
  if (response.status === 200) return readBounded(response, url);
  response.body.destroy();
  if (response.status === 404) return undefined;
  throw new RegistryError('http.refused', `${redactUrl(url)} answers ${response.status}`, {
    expected: '200 or 404',
    found: String(response.status),
  });
}

async function readBounded(response: HttpResponse, url: URL): Promise<Buffer> {
  const bytes = await readLimited(response, url, MAX_SIGNATURE_SIZE);
  if (bytes) return bytes;
  const message = `${redactUrl(url)} has more than ${MAX_SIGNATURE_SIZE} bytes`;
  throw new RegistryError('http.too-long', message);
}

const isTimeout = (error: unknown): boolean =>
  error instanceof DOMException && error.name === 'TimeoutError';
