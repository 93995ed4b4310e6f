import { stringify } from 'yaml';
import { parse } from '../../shape/parse-text.ts';
import { redact } from '../../base/text/redact.ts';
import { findYamlExcess } from '../../shape/parse-text.ts';

export type JsonValue =
  null | boolean | number | string | readonly JsonValue[] | { readonly [key: string]: JsonValue };

const MASK = '[redacted]';

/** Members of a manifest that hold no secret, whatever is in them. All others do until shown. */
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
const PUBLIC_CRYPTO = new Set(['admin_ca_certificate', 'ingress_certificate_cn']);
/** NMState: 802.1X, WireGuard, IPsec, MACsec and their like. */
const SECRET_OF_NETWORK = /password|passwd|secret|psk|private|shared|wep|mka-cak|token|pin$/i;

/**
 * A manifest.json as it may be shown: the same shape, with keys, hashes, passwords and what is not
 * known to be public masked. Of the pull secret the registries stay.
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

const mask = (text: string): string => (text === '' ? '' : MASK);

/** Whoever put a private key where a certificate belongs did not mean to show it. */
const maskKeys = (text: string): string => (text.includes('PRIVATE KEY-----') ? MASK : text);

/** Of other makers it need not be a URL. */
const redactProxy = (text: string): string => redact(text).replaceAll(/[^\s,/]+@/g, `${MASK}@`);

const isObject = (value: JsonValue): value is Readonly<Record<string, JsonValue>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function mapMembers(
  value: JsonValue,
  change: (key: string, member: JsonValue) => JsonValue,
): JsonValue {
  if (!isObject(value)) return mapTexts(value, mask);
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [key, change(key, member)]),
  );
}

/** Numbers, too, count as texts: nothing that is masked keeps its value. */
function mapTexts(value: JsonValue, change: (text: string) => string): JsonValue {
  if (typeof value === 'string') return change(value);
  if (typeof value === 'number') return change(String(value));
  if (Array.isArray(value)) return (value as JsonValue[]).map((item) => mapTexts(item, change));
  return isObject(value) ? mapMembers(value, (_, member) => mapTexts(member, change)) : value;
}

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
    return undefined; // anything but a pull secret is masked as a whole
  }
}

/** Parsed again, for other makers may write it in any style; what cannot be read is masked as a whole. */
function redactNetwork(value: JsonValue): JsonValue {
  const state = readNetwork(value);
  if (state === undefined) return mapTexts(value, mask);
  return redact(stringify(redactState(state), FORM));
}

/** As the normal form of nmstate documents is. */
const FORM = { schema: 'failsafe', lineWidth: 0, indentSeq: false } as const;

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

function redactState(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return (value as JsonValue[]).map(redactState);
  if (!isObject(value)) return value;
  return mapMembers(value, (key, member) =>
    SECRET_OF_NETWORK.test(key) ? mapTexts(member, mask) : redactState(member),
  );
}
