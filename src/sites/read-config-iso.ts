import { digestOf, type Digest } from '../base/digest.ts';
import { IntegrityError } from '../base/errors.ts';
import { findJsonExcess } from '../shape/parse-text.ts';
import { formatSize } from '../base/text/words.ts';
import type { IsoImage } from '../iso/read/open.ts';
import { CONFIG_IMAGE_LABEL } from '../openshift/agent/live-system.ts';
import { MANIFEST_PATH } from './compose/config-tree.ts';
import type { RetainedIso } from './identity/retained/read-retained.ts';
import type { JsonValue } from './compose/redact-reconfiguration.ts';
import { useMedium } from '../media/open.ts';

/** What a configuration ISO holds; the manifest with its secrets. */
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

/** A configuration ISO has a handful; another kind of image is rejected early. */
const MAX_ENTRIES = 10_000;
/** Bytes of all files together; a site's inputs may have 16 MiB. */
const MAX_CONTENT = 256 << 20;
/** Of a manifest; that of a seed reconfiguration has five levels. */
const BOUNDS = { values: 200_000, depth: 64 };
/** The lifecycle agent looks for both, the second for the sake of old media. */
const VOLUME_IDS = ['cluster-config', 'relocation-config'];

/**
 * Reads a configuration ISO of any maker.
 *
 * @throws IntegrityError `config-iso.label`, `config-iso.manifest`, `config-iso.too-large`, and
 * those of reading an ISO; ConfigError `iso.unreadable`
 */
export async function readConfigIso(path: string): Promise<ConfigIso> {
  return useMedium(path, async (iso) => {
    const { volumeId } = iso.volume;
    if (!VOLUME_IDS.includes(volumeId)) throw notLabelled(path, volumeId);
    const entries = await readEntries(iso);
    return { volumeId, size: iso.fileSize, entries, manifest: await readManifest(iso) };
  });
}

const notLabelled = (path: string, found: string): IntegrityError =>
  new IntegrityError('config-iso.label', `${path} does not have the label of a configuration ISO`, {
    expected: VOLUME_IDS.join(' or '),
    found: JSON.stringify(found).slice(1, -1), // it may have been made to command the terminal
    hint:
      found === CONFIG_IMAGE_LABEL
        ? 'this is a configuration image of an agent-based installation: see "sealift config-iso check"'
        : 'give an ISO made by "sealift config-iso build" or openshift-install',
  });

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

/**
 * What of a configuration ISO of any maker an identity is read from.
 *
 * @throws as `readConfigIso`
 */
export async function readRetainedIso(path: string): Promise<RetainedIso> {
  return useMedium(path, async (iso) => {
    const { volumeId, createdAt } = iso.volume;
    if (!VOLUME_IDS.includes(volumeId)) throw notLabelled(path, volumeId);
    const manifest = (await readManifestBytes(iso)).toString('utf8');
    return { manifest, ...(createdAt && { madeAt: Math.floor(createdAt.getTime() / 1000) }) };
  });
}

async function readManifestBytes(iso: IsoImage): Promise<Buffer> {
  const node = await iso.find(MANIFEST_PATH);
  if (node?.kind !== 'file') {
    throw new IntegrityError('config-iso.manifest', `${iso.path} has no ${MANIFEST_PATH}`);
  }
  return Buffer.from(await iso.readFile(node));
}

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

/** The parser's own message would quote the text, keys and all. */
function parseManifest(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}
