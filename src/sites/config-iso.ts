import { stringify } from 'yaml';
import { digestOf, type Digest } from '../base/digest.ts';
import { IntegrityError } from '../base/errors.ts';
import { redactAddresses } from '../base/text/redact.ts';
import { formatSize } from '../base/text/words.ts';
import type { IsoImage } from '../iso/index.ts';
import { useMedium } from '../media/open.ts';
import { CONFIG_IMAGE_LABEL } from '../openshift/agent/live-system.ts';
import { findJsonExcess } from '../shape/json-text.ts';
import { parse, findYamlExcess } from '../shape/parse-text.ts';
import { MANIFEST_PATH } from './compose/tree.ts';
import type { RetainedIso } from './identity/retained/read.ts';

/* Owns the reading of configuration ISOs of any maker, and the redaction of their manifests. */

export type JsonValue =
  null | boolean | number | string | readonly JsonValue[] | { readonly [key: string]: JsonValue };

/** The content of a configuration ISO; the manifest includes its secrets. */
export type ConfigIso = {
  readonly volumeId: string;
  /** Bytes of the image. */
  readonly size: number;
  /** Sorted by path; directories end in `/` and have no digest. */
  readonly entries: readonly ConfigIsoEntry[];
  readonly manifest: JsonValue;
};

type ConfigIsoEntry = {
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  readonly digest?: Digest;
};

/** The lifecycle agent looks for both, the second to support old media. */
const VOLUME_IDS = ['cluster-config', 'relocation-config'];

/**
 * Reads a configuration ISO of any maker.
 *
 * @throws IntegrityError `config-iso.label`, `config-iso.manifest`, `config-iso.too-large`;
 * ConfigError `iso.unreadable`
 */
export async function readConfigIso(path: string): Promise<ConfigIso> {
  return useMedium(path, async (iso) => {
    const { volumeId } = iso.volume;
    if (!VOLUME_IDS.includes(volumeId)) throw notLabelled(path, volumeId);
    const entries = await readEntries(iso);
    return { volumeId, size: iso.fileSize, entries, manifest: await readManifest(iso) };
  });
}

/** Members of a manifest that are never secret; all others count as secret. */
const PUBLIC = new Set([
  'additionalTrustBundle',
  'api_version',
  'base_domain',
  'cluster_id',
  'cluster_name',
  'chrony_config',
  'hostname',
  'infra_id',
  'machine_network',
  'machine_networks',
  'node_ip',
  'node_ips',
  'release_registry',
  'ssh_key',
  'node_labels',
]);

/**
 * Redacts a manifest.json for display: the same shape, with keys, hashes, passwords and everything
 * not known to be public masked. The registries of the pull secret stay.
 */
export function redactReconfiguration(manifest: JsonValue): JsonValue {
  return mapMembers(manifest, (key, value) => {
    if (PUBLIC.has(key)) return typeof value === 'number' ? value : mapTexts(value, maskKeys);
    if (key === 'proxy' || key === 'status_proxy') return mapTexts(value, redactProxy);
    if (key === 'pull_secret') return redactPullSecret(value);
    if (key === 'raw_nm_state_config') return redactNetwork(value);
    if (key === 'KubeconfigCryptoRetention') return redactCrypto(value);
    return mapTexts(value, mask);
  });
}

/** Reads the parts of a configuration ISO of any maker that give an identity. */
export async function readRetainedIso(path: string): Promise<RetainedIso> {
  return useMedium(path, async (iso) => {
    const { volumeId, createdAt } = iso.volume;
    if (!VOLUME_IDS.includes(volumeId)) throw notLabelled(path, volumeId);
    const manifest = (await readManifestBytes(iso)).toString('utf8');
    return { manifest, ...(createdAt && { madeAt: Math.floor(createdAt.getTime() / 1000) }) };
  });
}

const MASK = '[redacted]';

const mask = (text: string): string => (text === '' ? '' : MASK);

/** A user who put a private key in place of a certificate did not mean to show it. */
const maskKeys = (text: string): string => (text.includes('PRIVATE KEY-----') ? MASK : text);

/** In a file of another maker, the proxy need not be a URL. */
const redactProxy = (text: string): string =>
  redactAddresses(text).replaceAll(/(?<![^\s,/])[^\s,/]+@/g, `${MASK}@`);

function mapMembers(
  value: JsonValue,
  change: (key: string, member: JsonValue) => JsonValue,
): JsonValue {
  if (!isObject(value)) return mapTexts(value, mask);
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [key, change(key, member)]),
  );
}

const isObject = (value: JsonValue): value is Readonly<Record<string, JsonValue>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Numbers count as texts, too: no masked member keeps its value. */
function mapTexts(value: JsonValue, change: (text: string) => string): JsonValue {
  if (typeof value === 'string') return change(value);
  if (typeof value === 'number') return change(String(value));
  if (Array.isArray(value)) return (value as JsonValue[]).map((item) => mapTexts(item, change));
  return isObject(value) ? mapMembers(value, (_, member) => mapTexts(member, change)) : value;
}

const PUBLIC_CRYPTO = new Set(['admin_ca_certificate', 'ingress_certificate_cn']);

const redactCrypto = (value: JsonValue): JsonValue =>
  mapMembers(value, (key, member) => {
    if (PUBLIC_CRYPTO.has(key)) return member;
    return isObject(member) ? redactCrypto(member) : mapTexts(member, mask);
  });

function redactPullSecret(value: JsonValue): JsonValue {
  const registries = readRegistries(value);
  if (!registries) return mapTexts(value, mask);
  return JSON.stringify({ auths: Object.fromEntries(registries.map((host) => [host, MASK])) });
}

function readRegistries(value: JsonValue): readonly string[] | undefined {
  try {
    const secret = (typeof value === 'string' ? JSON.parse(value) : null) as JsonValue;
    const auths = isObject(secret) ? secret['auths'] : undefined;
    return auths !== undefined && isObject(auths) ? Object.keys(auths) : undefined;
  } catch {
    return undefined; // anything except a pull secret is masked as a whole
  }
}

/** The normal form of nmstate documents. */
const FORM = { schema: 'failsafe', lineWidth: 0, indentSeq: false } as const;

/** Parsed again, because makers write it in any style; text that cannot be read is masked as a whole. */
function redactNetwork(value: JsonValue): JsonValue {
  const state = readNetwork(value);
  if (state === undefined) return mapTexts(value, mask);
  return redactAddresses(stringify(redactState(state), FORM));
}

/** Every scalar stays the text that it is. */
function readNetwork(value: JsonValue): JsonValue | undefined {
  try {
    const text = typeof value === 'string' ? value : '';
    if (findYamlExcess(text)) return undefined;
    const state = parse(text, { schema: 'failsafe', logLevel: 'silent' }) as JsonValue;
    return isObject(state) ? state : undefined;
  } catch {
    return undefined; // the parser's words would quote the text
  }
}

/** NMState: 802.1X, WireGuard, IPsec, MACsec and similar. */
const SECRET_OF_NETWORK = /password|passwd|secret|psk|private|shared|wep|mka-cak|token|pin$/i;

function redactState(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return (value as JsonValue[]).map(redactState);
  if (!isObject(value)) return value;
  return mapMembers(value, (key, member) =>
    SECRET_OF_NETWORK.test(key) ? mapTexts(member, mask) : redactState(member),
  );
}

const notLabelled = (path: string, found: string): IntegrityError =>
  new IntegrityError('config-iso.label', `${path} does not have the label of a configuration ISO`, {
    expected: VOLUME_IDS.join(' or '),
    found: JSON.stringify(found).slice(1, -1), // the label may contain control sequences for the terminal
    hint:
      found === CONFIG_IMAGE_LABEL
        ? 'this is a configuration image of an agent-based installation: see "sealift config-iso check"'
        : 'give an ISO made by "sealift config-iso build" or openshift-install',
  });

/** A configuration ISO has only a few; another kind of image is rejected early. */
const MAX_ENTRIES = 10_000;
/** Bytes of all files together; a site's inputs may have 16 MiB. */
const MAX_CONTENT = 256 << 20;

async function readEntries(iso: IsoImage): Promise<ConfigIsoEntry[]> {
  const entries: ConfigIsoEntry[] = [];
  let content = 0;
  for await (const { path, node } of iso.walk()) {
    content += node.kind === 'file' ? node.size : 0;
    if (entries.length === MAX_ENTRIES) throw tooLarge(iso, `more than ${MAX_ENTRIES} files`);
    if (content > MAX_CONTENT) throw tooLarge(iso, `more than ${formatSize(MAX_CONTENT)} of files`);
    if (node.kind === 'file') {
      entries.push({ path, size: node.size, digest: digestOf(await iso.readFile(node)) });
    } else {
      entries.push({ path: node.kind === 'directory' ? `${path}/` : path, size: 0 });
    }
  }
  return entries.sort((a, b) => (a.path < b.path ? -1 : 1));
}

const tooLarge = ({ path }: IsoImage, what: string): IntegrityError =>
  new IntegrityError('config-iso.too-large', `${path} has ${what}`);

async function readManifestBytes(iso: IsoImage): Promise<Buffer> {
  const node = await iso.find(MANIFEST_PATH);
  if (node?.kind !== 'file') {
    throw new IntegrityError('config-iso.manifest', `${iso.path} has no ${MANIFEST_PATH}`);
  }
  return Buffer.from(await iso.readFile(node));
}

/** Bounds of a manifest; a seed reconfiguration has five levels. */
const BOUNDS = { values: 200_000, depth: 64 };

async function readManifest(iso: IsoImage): Promise<JsonValue> {
  const bytes = await readManifestBytes(iso);
  const excess = findJsonExcess(bytes, BOUNDS);
  if (excess !== undefined) {
    throw new IntegrityError('config-iso.manifest', `${MANIFEST_PATH} of ${iso.path} ${excess}`);
  }
  const manifest = parseManifest(bytes.toString('utf8'));
  if (typeof manifest === 'object' && manifest !== null && !Array.isArray(manifest))
    return manifest;
  throw new IntegrityError(
    'config-iso.manifest',
    `${MANIFEST_PATH} of ${iso.path} is not a JSON object`,
  );
}

/** The parser's own message would quote the text, including keys. */
function parseManifest(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}
