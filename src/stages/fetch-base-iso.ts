import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { hexOf } from '../base/digest.ts';
import { DiskError } from '../base/errors.ts';
import { lockOutput } from '../iso/pour/lock.ts';
import {
  takeGivenIso,
  type BaseIso,
  type FetchGivenTools,
  type GivenBaseIso,
} from '../openshift/files/given-iso.ts';
import type { ImageTools } from '../openshift/image-access.ts';
import { extractComponentFile } from '../openshift/release/component-file.ts';
import type { RpmArchitecture } from '../openshift/release/release-bundle.ts';
import { getComponent, type Release } from '../openshift/release/release-payload.ts';
import { isAtLeast } from '../openshift/release/version.ts';
import { formatReference } from '../registry/reference.ts';

export type { BaseIso, GivenBaseIso } from '../openshift/files/given-iso.ts';

export type FetchBaseIsoInput = {
  readonly release: Release;
  readonly arch: RpmArchitecture;
  readonly given?: GivenBaseIso;
  readonly workDir: string;
};

export type FetchBaseIsoTools = ImageTools & FetchGivenTools;

/**
 * The CoreOS live ISO that the medium is built on: a given one, or that of the release's
 * `machine-os-images`. A second run finds what the first has fetched or extracted.
 *
 * @throws IntegrityError `release.component-missing`, `layer.file-missing`, and what `takeGivenIso` throws
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
 * @throws what `takeGivenIso` throws
 */
export async function fetchGivenBaseIso(
  given: GivenBaseIso,
  workDir: string,
  tools: FetchGivenTools,
): Promise<BaseIso> {
  const directory = directoryOf(workDir);
  if ('file' in given || given.sha256 === undefined) return takeGivenIso(given, directory, tools);
  const unlock = await waitForLock(join(directory, `${hexOf(given.sha256)}.lock`), tools);
  try {
    return await takeGivenIso(given, directory, tools);
  } finally {
    await unlock();
  }
}

const PAUSE_MS = 500;

/** Two builds of one work directory would write the same partial download: the other's is waited for. */
async function waitForLock(
  path: string,
  { signal, onProgress }: FetchGivenTools,
): Promise<() => Promise<void>> {
  for (;;) {
    try {
      return await lockOutput(path);
    } catch (error) {
      if (!(error instanceof DiskError) || error.code !== 'output.locked') throw error;
      onProgress?.(0, undefined, 'another build fetches it');
      await sleep(PAUSE_MS, undefined, { signal });
    }
  }
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
