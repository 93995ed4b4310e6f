import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { hexOf, type Digest, isDigest } from '../../base/digest.ts';
import { nameAside } from '../../base/disk/aside.ts';
import {
  type FileInput,
  type FileDigests,
  findCached,
  cacheFile,
} from '../../base/disk/file-digests.ts';
import { downloadFile, type Download, fetchText } from '../../base/download/fetch.ts';
import { packingOf, unpackFile, type Packing } from '../../base/download/unpack.ts';
import { ConfigError, IntegrityError } from '../../base/errors.ts';
import type { Http } from '../../base/http/http.ts';
import type { TlsOptions } from '../../base/http/tls.ts';
import { redactUrl } from '../../base/text/redact.ts';
import { decode, decodeJson, GO_RULES, requireDecoded, type Finding } from '../../shape/decode.ts';
import {
  defaulted,
  FREE,
  LEFT_OUT,
  mapping,
  optional,
  partial,
  record,
  refine,
  TEXT,
  type TypeOf,
} from '../../shape/shape.ts';
import { describeFinding } from '../../shape/words.ts';
import type { RpmArchitecture } from './bundle.ts';
import type { GraphAccess } from './update-graph.ts';

/**
 * A live ISO that is not the release's own. A name in .gz or .xz is packed; `sha256` is the unpacked ISO's.
 */
export type GivenBaseIso =
  { readonly file: string } | { readonly url: string; readonly sha256?: Digest };

/** `from` describes its origin in words: a file, an address, an image. */
export type BaseIso = FileInput & { readonly from: string };

export type FetchGivenTools = {
  readonly http: Http;
  readonly digests: FileDigests;
  readonly signal: AbortSignal;
  readonly tls?: TlsOptions;
  /** Name of the image in errors; default: `base ISO`. */
  readonly noun?: string;
  readonly onProgress?: (bytes: number, total?: number, about?: { readonly note?: string }) => void;
};

const BASE_ISO = 'base ISO';

/** Bytes; ten times the size of the CoreOS ISO. */
const MAX_ISO_SIZE = 16 * 2 ** 30;

/**
 * The live ISO at its place, or in `directory`, in which a second run finds it.
 *
 * @throws ConfigError `base-iso.missing`, `base-iso.no-digest`, `base-iso.not-https`;
 * IntegrityError `base-iso.digest`, `download.digest`, `download.too-large`, `unpack.malformed`,
 * `unpack.too-large`
 */
export function takeGivenIso(
  given: GivenBaseIso,
  directory: string,
  tools: FetchGivenTools,
): Promise<BaseIso> {
  if ('file' in given) return takeFile(resolve(given.file), directory, tools);
  return downloadIso(given, directory, tools);
}

async function takeFile(path: string, directory: string, tools: FetchGivenTools): Promise<BaseIso> {
  const file = await tools.digests.identify(path);
  if (!file) throw missing(path, tools.noun);
  const packing = packingOf(path);
  if (packing === undefined) return { ...file, from: path };
  const target = join(directory, `${hexOf(file.digest)}-unpacked.iso`);
  const known = await findCached(target);
  if (known) return { ...known, from: path };
  return { ...(await unpackTo(target, { packed: path, packing }, tools)), from: path };
}

const missing = (path: string, noun = BASE_ISO): ConfigError =>
  new ConfigError('base-iso.missing', `${noun} "${path}" does not exist, or is not a file`, {
    hint:
      noun === BASE_ISO
        ? 'check its name, or leave it out to use the live ISO of a release'
        : 'check its name',
  });

async function downloadIso(
  { url: text, sha256 }: { readonly url: string; readonly sha256?: Digest },
  directory: string,
  tools: FetchGivenTools,
): Promise<BaseIso> {
  const { noun = BASE_ISO } = tools;
  const url = parseHttps(text, noun);
  const from = redactUrl(url);
  if (sha256 === undefined) {
    throw new ConfigError('base-iso.no-digest', `${noun} ${from} is given without its sha256`, {
      hint: 'add the sha256 that its publisher names',
    });
  }
  const path = join(directory, `${hexOf(sha256)}.iso`);
  const known = await findCached(path);
  if (known?.digest === sha256) return { ...known, from };
  const { http, signal, tls, onProgress } = tools;
  const packing = packingOf(url.pathname);
  const download: Download = {
    url,
    http,
    signal,
    limit: MAX_ISO_SIZE,
    path: `${path}.partial`,
    ...(tls && { tls }),
    ...(onProgress && { onProgress }),
  };
  if (packing) {
    return { ...(await downloadPacked({ download, packing, path, sha256 }, tools)), from };
  }
  await downloadFile({ ...download, digest: sha256 });
  return { ...(await cacheFile(download.path, path, sha256)), from };
}

/** Keeps the packed file until its contents are stored: an interrupted build does not fetch it again. */
async function downloadPacked(
  wanted: {
    readonly download: Download;
    readonly packing: Packing;
    readonly path: string;
    readonly sha256: Digest;
  },
  tools: FetchGivenTools,
): Promise<FileInput> {
  const { packing, path, sha256 } = wanted;
  const packed = `${path}.${packing}.partial`;
  const { digest } = await downloadFile({ ...wanted.download, path: packed });
  const expected = { sha256, packedAs: digest, from: redactUrl(wanted.download.url) };
  try {
    const kept = await unpackTo(path, { packed, packing, expected }, tools);
    await rm(packed, { force: true });
    return kept;
  } catch (error) {
    if (error instanceof IntegrityError) await rm(packed, { force: true });
    throw error;
  }
}

type PackedIso = {
  readonly packed: string;
  readonly packing: Packing;
  /** Absent if no source states which ISO it should be. */
  readonly expected?: Expected;
};

type Expected = { readonly sha256: Digest; readonly packedAs: Digest; readonly from: string };

async function unpackTo(
  target: string,
  { packed, packing, expected }: PackedIso,
  { signal, onProgress }: FetchGivenTools,
): Promise<FileInput> {
  const aside = await nameAside(target);
  const { digest } = await unpackFile({
    packed,
    packing,
    path: aside,
    limit: MAX_ISO_SIZE,
    signal,
    ...(expected && { shownAs: expected.from }),
    onProgress: (bytes) => onProgress?.(bytes, undefined, { note: 'unpacking' }),
  });
  if (expected && digest !== expected.sha256) {
    await rm(aside, { force: true });
    throw wrongDigest(digest, expected);
  }
  return cacheFile(aside, target, digest);
}

function wrongDigest(found: Digest, { sha256, packedAs, from }: Expected): IntegrityError {
  const isOfPacked = packedAs === sha256;
  return new IntegrityError(
    'base-iso.digest',
    `the ISO in ${from} should be ${sha256}, but is ${found}`,
    {
      expected: sha256,
      found,
      hint: isOfPacked
        ? 'give the sha256 of the unpacked ISO: this one is of the packed file'
        : 'compare the sha256 with the one its publisher names for the unpacked ISO',
    },
  );
}

function parseHttps(text: string, noun: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'https:') return url;
  throw new ConfigError(
    'base-iso.not-https',
    `${noun} "${text}" is neither a file nor an https address`,
    {
      expected: 'https://...',
      found: url?.protocol ?? 'no address',
    },
  );
}

/** The digest is the unpacked ISO's. */
export type StreamIso = { readonly url: string; readonly sha256: Digest };

const DISK = record(
  {
    'location': refine(TEXT, (url) => (URL.canParse(url) ? undefined : 'is not an address')),
    'sha256': optional(TEXT),
    'uncompressed-sha256': optional(TEXT),
  },
  LEFT_OUT,
);

/** Formats by name; other ones than `iso` have other members. */
const FORMATS = record({ iso: optional(partial({ disk: DISK }, LEFT_OUT)) }, { others: 'kept' });
const METAL = record({ formats: defaulted(FORMATS, () => ({})) }, LEFT_OUT);
const ARTIFACTS = record({ metal: optional(METAL) }, { others: 'kept' });
const ARCHITECTURE = record({ artifacts: defaulted(ARTIFACTS, () => ({})) }, LEFT_OUT);

/** Other architectures than the wanted one are not judged. */
const STREAM = record({ architectures: mapping(FREE) }, LEFT_OUT);

/**
 * @param text JSON as `openshift-install coreos print-stream-json` prints it, and
 * builds.coreos.fedoraproject.org has it
 * @param name for errors
 * @throws ConfigError `coreos-stream.malformed`, `coreos-stream.no-iso`
 */
export function findStreamIso(text: string, arch: RpmArchitecture, name: string): StreamIso {
  const refuse = ([first]: readonly [Finding, ...Finding[]]): ConfigError =>
    malformed(name, describeFinding(first, 'it'));
  const { architectures } = requireDecoded(decodeJson(STREAM, text, GO_RULES), refuse);
  const missing = (message: string, known: object): ConfigError =>
    missingOfCoreosStream(name, message, Object.keys(known).join(', '));
  const found = architectures[arch];
  if (found === undefined) throw missing(`no ISO found to download for ${arch}`, architectures);
  const { artifacts } = requireDecoded(decode(ARCHITECTURE, found, GO_RULES), refuse);
  const { metal } = artifacts;
  if (!metal) throw missing("coreOs stream data not found for 'metal' artifact", artifacts);
  const disk = metal.formats.iso?.disk;
  if (!disk) throw missing(`no ISO found to download for ${arch}`, metal.formats);
  return readDisk(disk, name);
}

/** Bytes; real ones have some 100,000. */
const MAX_SIZE = 16 * 1024 * 1024;

/** @throws the errors of `fetchText` */
export async function fetchStreamIso(
  streamUrl: string,
  arch: RpmArchitecture,
  { http, tls, signal }: Pick<GraphAccess, 'http' | 'tls' | 'signal'>,
): Promise<StreamIso> {
  const url = new URL(streamUrl);
  const text = await fetchText(http, { signal, url, limit: MAX_SIZE, ...(tls && { tls }) });
  return findStreamIso(text, arch, redactUrl(url));
}

/** "uncompressed-sha256" is the digest of the unpacked contents. */
function readDisk(disk: TypeOf<typeof DISK>, name: string): StreamIso {
  const isPacked = packingOf(new URL(disk.location).pathname) !== undefined;
  const key = isPacked ? 'uncompressed-sha256' : 'sha256';
  const digest = `sha256:${disk[key] ?? ''}`;
  if (!isDigest(digest)) throw malformed(name, `it has no digest at "${key}" of its ISO`);
  return { url: disk.location, sha256: digest };
}

const HINT =
  'give what "openshift-install coreos print-stream-json" prints, or name an ISO with --base-iso';

const missingOfCoreosStream = (name: string, message: string, known: string): ConfigError =>
  new ConfigError('coreos-stream.no-iso', `CoreOS stream ${name}: ${message}`, {
    found: known === '' ? 'none' : known,
    hint: HINT,
  });

const malformed = (name: string, problem: string): ConfigError =>
  new ConfigError('coreos-stream.malformed', `CoreOS stream ${name}: ${problem}`, { hint: HINT });
