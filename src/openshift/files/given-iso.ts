import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { nameAside } from '../../base/disk/aside.ts';
import { hexOf, type Digest } from '../../base/digest.ts';
import { ConfigError, IntegrityError } from '../../base/errors.ts';
import type { FileInput } from '../../base/disk/file-digests.ts';
import type { Http } from '../../base/http/http.ts';
import type { TlsOptions } from '../../base/http/proxy.ts';
import { redactUrl } from '../../base/text/redact.ts';
import { downloadFile, type Download } from '../../base/download/fetch.ts';
import type { FileDigests } from '../../base/disk/file-digests.ts';
import { findCached, cacheFile } from '../../base/disk/file-digests.ts';
import { packingOf, unpackFile, type Packing } from '../../base/download/unpack.ts';

/**
 * A live ISO that is not the release's own. A name that ends in .gz or .xz is that of a packed one;
 * `sha256` is of the ISO itself, as in the metadata of a CoreOS stream.
 */
export type GivenBaseIso =
  { readonly file: string } | { readonly url: string; readonly sha256?: Digest };

/** `from` says in words where it came from: a file, an address, an image. */
export type BaseIso = FileInput & { readonly from: string };

export type FetchGivenTools = {
  readonly http: Http;
  readonly digests: FileDigests;
  readonly signal: AbortSignal;
  readonly tls?: TlsOptions;
  readonly onProgress?: (bytes: number, total?: number, note?: string) => void;
};

/** Bytes; ten times what CoreOS has. */
const MAX_ISO_SIZE = 16 * 2 ** 30;

/**
 * The live ISO at its place, or unpacked or downloaded to `directory`, where a second run finds it.
 *
 * @throws ConfigError `base-iso.missing`, `base-iso.no-digest`, `base-iso.not-https`; IntegrityError
 * `base-iso.digest`, `download.digest`, `download.too-large`, `unpack.malformed`, `unpack.too-large`
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
  if (!file) throw missing(path);
  const packing = packingOf(path);
  if (packing === undefined) return { ...file, from: path };
  const target = join(directory, `${hexOf(file.digest)}-unpacked.iso`);
  const known = await findCached(target);
  if (known) return { ...known, from: path };
  return { ...(await unpackTo(target, { packed: path, packing }, tools)), from: path };
}

const missing = (path: string): ConfigError =>
  new ConfigError('base-iso.missing', `base ISO "${path}" does not exist, or is not a file`, {
    hint: 'check its name, or leave it out to use the live ISO of a release',
  });

async function downloadIso(
  { url: text, sha256 }: { readonly url: string; readonly sha256?: Digest },
  directory: string,
  tools: FetchGivenTools,
): Promise<BaseIso> {
  const url = parseHttps(text);
  const from = redactUrl(url);
  if (sha256 === undefined) {
    throw new ConfigError('base-iso.no-digest', `base ISO ${from} is given without its sha256`, {
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

/** The packed file stays until what is in it is kept, so that an interrupted build need not fetch it again. */
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
  /** Absent where nobody has said what the ISO should be. */
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
    onProgress: (bytes) => onProgress?.(bytes, undefined, 'unpacking'),
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

function parseHttps(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'https:') return url;
  throw new ConfigError('base-iso.not-https', `base ISO "${text}" is neither a file nor https`, {
    expected: 'https://...',
    found: url?.protocol ?? 'no address',
  });
}
