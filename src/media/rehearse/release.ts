import type { IsoImage } from '../../iso/index.ts';
import {
  isPayloadFile,
  type PayloadFiles,
  readPayloadFiles,
} from '../../openshift/release/payload.ts';
import { type Layer, readFiles, readReference, type Reference } from '../../registry/index.ts';
import { archOf, type NamingImage } from '../named-images.ts';
import { type OpenAttempt, attempt } from '../open.ts';
import { openImageOf, openPayload } from '../payload.ts';
import type { PlayedMedium } from './played-medium.ts';

export type PlayedRelease = PayloadFiles;

/** Absent on media that carry no payload. */
export async function readPlayedRelease(
  { iso, index, registry }: PlayedMedium,
  signal: AbortSignal,
): Promise<OpenAttempt<PlayedRelease>> {
  if (index === undefined || registry === undefined) return {};
  if (readReference(index.release.reference) === undefined) {
    return {
      problem: `the index names the release ${index.release.reference}, which is not a reference to an image`,
    };
  }
  return attempt(async () => readPayload(await openPayload(iso, index, signal), signal));
}

/** Reads the payloads of the releases that clusters pass on their way to that of the medium. */
export async function readPassed(
  { iso, index }: { readonly iso: IsoImage } & Pick<PlayedMedium, 'index'>,
  releases: readonly NamingImage[],
  signal: AbortSignal,
): Promise<readonly PlayedRelease[]> {
  const target = index && readReference(index.release.reference)?.digest;
  const passed: PlayedRelease[] = [];
  for (const { name, digest } of releases.filter((one) => one.digest !== target)) {
    const reference = { registry: '', repository: name, digest };
    const { value } = await attempt(async () => {
      const image = { name, reference, arch: archOf(index) };
      return readPayload({ reference, layers: await openImageOf(iso, image, signal) }, signal);
    });
    if (value) passed.push(value); // damage is reported where its images are pulled
  }
  return passed;
}

async function readPayload(
  { layers, reference }: { readonly layers: readonly Layer[]; readonly reference: Reference },
  signal: AbortSignal,
): Promise<PlayedRelease> {
  const last = await readFiles(layers.slice(-1), isPayloadFile, { signal });
  const files = last.size > 0 ? last : await readFiles(layers, isPayloadFile, { signal });
  return readPayloadFiles(files, reference);
}
