import { describeValue } from '../../base/text/words.ts';
import { isDigest, type Digest } from '../../base/digest.ts';
import { ConfigError } from '../../base/errors.ts';
import { packingOf } from '../../base/download/unpack.ts';
import { redactUrl } from '../../base/text/redact.ts';
import { fetchText } from '../../base/download/fetch.ts';
import type { RpmArchitecture } from './release-bundle.ts';
import type { GraphAccess } from './update-graph.ts';
import { isObject } from '../../base/lists.ts';

/** A live ISO, as a CoreOS stream names it; the digest is that of the ISO, however it is packed. */
export type StreamIso = { readonly url: string; readonly sha256: Digest };

/**
 * The live ISO of an architecture in the metadata of a CoreOS stream: the JSON document that
 * `openshift-install coreos print-stream-json` prints and that builds.coreos.fedoraproject.org has.
 * `name` is what an error calls it.
 *
 * @throws ConfigError `coreos-stream.malformed`, `coreos-stream.no-iso`
 */
export function findStreamIso(text: string, arch: RpmArchitecture, name: string): StreamIso {
  const stream = parseStream(text, name);
  const architecture = member(stream, 'architectures', arch);
  if (architecture === undefined) {
    const known = Object.keys(member(stream, 'architectures') ?? {}).join(', ');
    throw missing(name, `no ISO found to download for ${arch}`, known);
  }
  const metal = member(architecture, 'artifacts', 'metal');
  if (metal === undefined) {
    const known = Object.keys(member(architecture, 'artifacts') ?? {}).join(', ');
    throw missing(name, "coreOs stream data not found for 'metal' artifact", known);
  }
  const disk = member(metal, 'formats', 'iso', 'disk');
  if (disk === undefined) {
    const known = Object.keys(member(metal, 'formats') ?? {}).join(', ');
    throw missing(name, `no ISO found to download for ${arch}`, known);
  }
  return readDisk(disk, name);
}

/** Bytes; real ones have some 100,000. */
const MAX_SIZE = 16 * 1024 * 1024;

/** The same of metadata at an address. @throws what `fetchText` throws */
export async function fetchStreamIso(
  streamUrl: string,
  arch: RpmArchitecture,
  { http, tls, signal }: Pick<GraphAccess, 'http' | 'tls' | 'signal'>,
): Promise<StreamIso> {
  const url = new URL(streamUrl);
  const text = await fetchText(http, { signal, url, limit: MAX_SIZE, ...(tls && { tls }) });
  return findStreamIso(text, arch, redactUrl(url));
}

type JsonObject = Readonly<Record<string, unknown>>;

function parseStream(text: string, name: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw malformed(name, 'is not JSON', cause);
  }
  if (isObject(value) && isObject(value['architectures'])) return value;
  throw malformed(name, 'has no "architectures"');
}

/** "sha256" is that of the file, "uncompressed-sha256" that of what is packed in it. */
function readDisk(disk: JsonObject, name: string): StreamIso {
  const { location } = disk;
  if (typeof location !== 'string' || !URL.canParse(location)) {
    throw malformed(name, 'has no address at "location" of its ISO');
  }
  const isPacked = packingOf(new URL(location).pathname) !== undefined;
  const key = isPacked ? 'uncompressed-sha256' : 'sha256';
  const digest = `sha256:${describeValue(disk[key])}`;
  if (!isDigest(digest)) throw malformed(name, `has no digest at "${key}" of its ISO`);
  return { url: location, sha256: digest };
}

function member(object: JsonObject, ...path: readonly string[]): JsonObject | undefined {
  let value: unknown = object;
  for (const key of path) {
    value = isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  }
  return isObject(value) ? value : undefined;
}

const HINT =
  'give what "openshift-install coreos print-stream-json" prints, or name an ISO with --base-iso';

const missing = (name: string, message: string, known: string): ConfigError =>
  new ConfigError('coreos-stream.no-iso', `CoreOS stream ${name}: ${message}`, {
    found: known === '' ? 'none' : known,
    hint: HINT,
  });

const malformed = (name: string, reason: string, cause?: unknown): ConfigError =>
  new ConfigError('coreos-stream.malformed', `CoreOS stream ${name} ${reason}`, {
    hint: HINT,
    cause,
  });
