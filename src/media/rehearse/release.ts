import {
  isPayloadFile,
  type PayloadFiles,
  readPayloadFiles,
} from '../../openshift/release/payload.ts';
import { readFiles, readReference } from '../../registry/index.ts';
import { type Attempt, attempt } from '../open.ts';
import { openPayload } from '../payload.ts';
import type { PlayedMedium } from './played-medium.ts';

/** The release that the medium carries, by its own payload. */
export type PlayedRelease = PayloadFiles;

/** Reads the payload; absent on media that carry none. */
export async function readPlayedRelease(
  { iso, index, registry }: PlayedMedium,
  signal: AbortSignal,
): Promise<Attempt<PlayedRelease>> {
  if (index === undefined || registry === undefined) return {};
  if (readReference(index.release.reference) === undefined) {
    return {
      problem: `the index names the release ${index.release.reference}, which is no reference`,
    };
  }
  return attempt(async () => {
    const { layers, reference } = await openPayload(iso, index, signal);
    const last = await readFiles(layers.slice(-1), isPayloadFile, { signal });
    const files = last.size > 0 ? last : await readFiles(layers, isPayloadFile, { signal });
    return readPayloadFiles(files, reference);
  });
}
