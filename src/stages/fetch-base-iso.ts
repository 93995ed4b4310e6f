import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { hexOf, type Digest } from '../base/digest.ts';
import { ConfigError } from '../base/errors.ts';
import { digestFile, hasFile } from '../base/files.ts';
import type { Http, TlsOptions } from '../base/http.ts';
import { redactUrl } from '../base/redact.ts';
import { extractComponentFile } from '../openshift/release/component-file.ts';
import { downloadFile } from '../openshift/files/download.ts';
import type { ImageTools } from '../openshift/image-access.ts';
import { findKept, keepFile, type KeptFile } from '../openshift/files/kept-file.ts';
import type { RpmArchitecture } from '../openshift/release/release-bundle.ts';
import { getComponent, type Release } from '../openshift/release/release-payload.ts';
import { isAtLeast } from '../openshift/release/version.ts';
import type { Pacing } from '../registry/client/retry.ts';
import { formatReference } from '../registry/reference.ts';

/** A live ISO that is not the release's own. */
export type GivenBaseIso =
  { readonly file: string } | { readonly url: string; readonly sha256?: Digest };

export type FetchBaseIsoInput = {
  readonly release: Release;
  readonly arch: RpmArchitecture;
  readonly given?: GivenBaseIso;
  readonly workDir: string;
};

export type FetchBaseIsoTools = ImageTools & FetchGivenTools;

type FetchGivenTools = Pick<ImageTools, 'signal' | 'onProgress'> & {
  readonly http: Http;
  readonly tls?: TlsOptions;
  readonly pacing?: Pacing;
};

/** `from` says in words where it came from: a file, an address, an image. */
export type BaseIso = KeptFile & { readonly from: string };

/**
 * The CoreOS live ISO that the medium is built on: a given one, or that of the release's
 * `machine-os-images`. A second run finds what the first has fetched or extracted.
 *
 * @throws ConfigError `base-iso.missing`, `base-iso.no-digest`, `base-iso.not-https`; IntegrityError
 * `release.component-missing`, `layer.file-missing`, `download.digest`
 */
export async function fetchBaseIso(
  { release, arch, given, workDir }: FetchBaseIsoInput,
  tools: FetchBaseIsoTools,
): Promise<BaseIso> {
  if (given !== undefined) return fetchGivenBaseIso(given, workDir, tools);
  return extractBaseIso({ release, arch, directory: directoryOf(workDir) }, tools);
}

/**
 * A live ISO that the user names, where no release has one.
 *
 * @throws ConfigError `base-iso.missing`, `base-iso.no-digest`, `base-iso.not-https`; IntegrityError
 * `download.digest`
 */
export async function fetchGivenBaseIso(
  given: GivenBaseIso,
  workDir: string,
  tools: FetchGivenTools,
): Promise<BaseIso> {
  if ('file' in given) return readGivenFile(given.file);
  return downloadBaseIso(given, directoryOf(workDir), tools);
}

const directoryOf = (workDir: string): string => join(workDir, 'cache', 'base');

/** Where the live ISO is in `machine-os-images`; from 5.0 on there are two, and this is the one. */
export function baseIsoPath(version: string, arch: RpmArchitecture): string {
  const name = isAtLeast(version, '5.0.0') ? 'coreos10' : 'coreos';
  return `coreos/${name}-${arch}.iso`;
}

async function extractBaseIso(
  input: { readonly release: Release; readonly arch: RpmArchitecture; readonly directory: string },
  tools: ImageTools,
): Promise<BaseIso> {
  const { release, arch, directory } = input;
  const reference = getComponent(release, 'machine-os-images');
  const path = baseIsoPath(release.version, arch);
  const wanted = { reference, arch, path, directory, suffix: '.iso' };
  return {
    ...(await extractComponentFile(wanted, tools)),
    from: `${path} of ${formatReference(reference)}`,
  };
}

async function readGivenFile(file: string): Promise<BaseIso> {
  const path = resolve(file);
  if (!(await hasFile(path))) {
    throw new ConfigError('base-iso.missing', `base ISO "${path}" does not exist`, {
      hint: 'check its name, or leave it out to use the live ISO of a release',
    });
  }
  const { size } = await stat(path);
  return { path, size, digest: await digestFile(path), from: path };
}

async function downloadBaseIso(
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
  const known = await findKept(path);
  if (known?.digest === sha256) return { ...known, from };
  const { http, signal, tls, pacing, onProgress } = tools;
  const aside = `${path}.partial`;
  await downloadFile({
    url,
    digest: sha256,
    path: aside,
    http,
    signal,
    ...(tls && { tls }),
    ...(pacing && { pacing }),
    ...(onProgress && { onProgress }),
  });
  return { ...(await keepFile(aside, path, sha256)), from };
}

function parseHttps(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'https:') return url;
  throw new ConfigError('base-iso.not-https', `base ISO "${text}" is neither a file nor https`, {
    expected: 'https://...',
    found: url?.protocol ?? 'no address',
  });
}
