import { join } from 'node:path';
import { hexOf } from '../../base/digest.ts';
import { isUnreadable } from '../../base/disk/disk-errors.ts';
import {
  isCached,
  type FileInput,
  type FileDigests,
  baseChanged,
} from '../../base/disk/file-digests.ts';
import { readInputFile } from '../../base/disk/files.ts';
import { withLease } from '../../base/disk/lease.ts';
import { ConfigError } from '../../base/errors.ts';
import type { Http } from '../../base/http/http.ts';
import type { TlsOptions } from '../../base/http/tls.ts';
import type { Stage } from '../../engine/index.ts';
import {
  type BaseScan,
  encodeBaseScan,
  openIso,
  readCoreosLive,
  scanBaseIso,
} from '../../iso/index.ts';
import { type ImageTools, extractComponentFile } from '../../openshift/images.ts';
import {
  type BaseIso,
  takeGivenIso,
  type FetchGivenTools,
  type GivenBaseIso,
  fetchStreamIso,
  findStreamIso,
  type StreamIso,
} from '../../openshift/release/base-iso.ts';
import type { RpmArchitecture } from '../../openshift/release/bundle.ts';
import { getComponent, type Release } from '../../openshift/release/release.ts';
import { isAtLeast } from '../../openshift/release/version.ts';
import { formatReference } from '../../registry/index.ts';

/* The live ISO that a medium is built on: from the release, from the user, or from a CoreOS stream. */

export type FetchBaseIsoInput = { readonly release: Release };

export type FetchBaseIsoTools = Pick<ImageTools, 'client' | 'cache'> & { readonly workDir: string };

/** Fetches the CoreOS live ISO that the medium is built on, from the release's `machine-os-images`. */
export const fetchBaseIso: Stage<FetchBaseIsoInput, BaseIso, FetchBaseIsoTools> = {
  name: 'fetch base ISO',
  reuse: { kind: 'same-program', isUsable: isCached },
  async run({ release }, { client, cache, workDir }, { signal, onProgress }) {
    const { arch } = release;
    const reference = getComponent(release, 'machine-os-images');
    const path = baseIsoPath(release.version, arch);
    const directory = join(workDir, 'cache', 'base');
    const file = await extractComponentFile(
      { reference, arch, path, directory, suffix: '.iso' },
      { client, cache, signal, onProgress },
    );
    return { ...file, from: `${path} of ${formatReference(reference)}` };
  },
};

/** Path in `machine-os-images`; from 5.0 on it contains two live ISOs, and this is the right one. */
function baseIsoPath(version: string, arch: RpmArchitecture): string {
  const name = isAtLeast(version, '5.0.0') ? 'coreos10' : 'coreos';
  return `coreos/${name}-${arch}.iso`;
}

export type TakeBaseIsoTools = Pick<FetchGivenTools, 'http' | 'digests' | 'tls'> & {
  readonly workDir: string;
};

/** A file may have changed, so it is read each time; a downloaded or unpacked ISO is found by digest. */
export const takeBaseIso: Stage<{ readonly given: GivenBaseIso }, BaseIso, TakeBaseIsoTools> = {
  name: 'take base ISO',
  async run({ given }, { workDir, ...parts }, context) {
    const directory = join(workDir, 'cache', 'base');
    const tools = { ...parts, ...context };
    if ('file' in given || given.sha256 === undefined) return takeGivenIso(given, directory, tools);
    const lock = join(directory, `${hexOf(given.sha256)}.lock`);
    // Two builds of one work directory would write the same partial download.
    const warn = (): void => {
      context.onProgress(0, undefined, { note: 'another build is fetching it' });
    };
    return withLease(lock, { signal: context.signal, wait: true, warn }, () =>
      takeGivenIso(given, directory, tools),
    );
  },
};

/** Location of the metadata of a CoreOS stream. The metadata vouches for the ISO, so its address is https. */
export type CoreosStream = { readonly streamFile: string } | { readonly streamUrl: string };

export type ReadCoreosStreamInput = {
  readonly stream: CoreosStream;
  readonly arch: RpmArchitecture;
};

export type ReadCoreosStreamTools = {
  readonly http: Http;
  readonly tls?: TlsOptions;
};

/** The live ISO of a CoreOS stream changes with the next build of CoreOS, so it is read each time. */
export const readCoreosStream: Stage<ReadCoreosStreamInput, StreamIso, ReadCoreosStreamTools> = {
  name: 'read CoreOS stream',
  async run({ stream, arch }, { http, tls }, { signal }) {
    if ('streamFile' in stream) {
      const { streamFile } = stream;
      return findStreamIso(readStreamFile(streamFile), arch, `"${streamFile}"`);
    }
    return fetchStreamIso(stream.streamUrl, arch, { http, signal, ...(tls && { tls }) });
  },
};

function readStreamFile(path: string): string {
  try {
    return readInputFile(path, { domain: 'coreos-stream' }).toString('utf8');
  } catch (cause) {
    if (!isUnreadable(cause)) throw cause;
    throw new ConfigError('coreos-stream.missing', `CoreOS stream "${path}" cannot be read`, {
      cause,
      hint: 'check the name of the file',
    });
  }
}

export type ScanBaseTools = { readonly digests: FileDigests };

/** Reads the base ISO once, and refuses any but a live ISO of CoreOS before anything large is fetched. */
export const scanBase: Stage<{ readonly base: FileInput }, BaseScan, ScanBaseTools> = {
  name: 'scan base ISO',
  reuse: { kind: 'same-program', isUsable: () => true },
  async run({ base }, { digests }) {
    const iso = await openIso(base.path);
    try {
      await readCoreosLive(iso);
    } finally {
      await iso.close();
    }
    const scan = encodeBaseScan(await scanBaseIso(base.path));
    if (scan.digest === base.digest) return scan;
    throw await baseChanged(base, digests, scan.digest);
  },
};
