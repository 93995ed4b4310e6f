import { dirname, join, resolve } from 'node:path';
import { findDevice } from '../base/disk/block-device.ts';
import { UsageError } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import { formatS3Address, parseS3Address } from '../base/s3/object.ts';
import { formatReference } from '../registry/index.ts';
import { createArtifactOutput, type ArtifactOutputTools } from './artifact.ts';
import { claimDevice, standInFor } from './device.ts';
import { createFileOutput, type FileOutputTools } from './file.ts';
import { checkFile, claimFile } from './file/claim.ts';
import { createObjectOutput, type ObjectOutputTools } from './object.ts';
import {
  isHere,
  outputKindOf,
  parseTaggedAddress,
  type IsoPlace,
  type MediaReader,
  type Output,
} from './place.ts';

/*
 * The door to all outputs. A name of the command line becomes the place of an ISO, and a place becomes an
 * `Output`: a file, a block device, an object in an object store, an artifact in a registry.
 */

/**
 * The records about a device are in the work directory, under a path that `output` names.
 *
 * @param workDir as the user names it; default: `.sealift` next to a file, else in `cwd`
 * @throws UsageError `usage.no-stream`, `usage.empty-path`, `usage.artifact`, `output.not-a-file`,
 * `object-store.address`
 */
export function parseOutput(
  text: string,
  { cwd, workDir: given }: { readonly cwd: string; readonly workDir: string | undefined },
): Pick<IsoPlace, 'output' | 'workDir' | 'device'> {
  const named = parseName(text, cwd);
  const device = findDevice(named);
  const beside = !device && isHere({ output: named }) ? dirname(named) : cwd;
  const workDir = resolve(cwd, given ?? join(beside, '.sealift'));
  const output = device ? standInFor(device, workDir) : named;
  return { output, workDir, ...withoutUndefined({ device }) };
}

function parseName(text: string, cwd: string): string {
  const kind = outputKindOf({ output: text });
  if (kind === 'artifact') return `oci://${formatReference(parseTaggedAddress(text))}`;
  if (kind === 'object') return formatS3Address(parseS3Address(text));
  refuseStream(text);
  if (text === '') {
    throw new UsageError('usage.empty-path', '--output is empty', { hint: 'name a file' });
  }
  if (!/(?:^|\/)\.{0,2}$/.test(text)) return resolve(cwd, text);
  throw new UsageError('output.not-a-file', `--output "${text}" names a directory`, {
    expected: 'the name of a file',
    found: text,
    hint: `name a file in it, such as ${join(text, 'medium.iso')}`,
  });
}

/** @throws UsageError `usage.no-stream` */
export function refuseStream(text: string): void {
  if (text !== '-') return;
  throw new UsageError('usage.no-stream', 'an ISO cannot be written to standard output', {
    hint: 'name a file with --output, ./- for one of that name; it is written out of order and resumable',
  });
}

export type OutputTools = FileOutputTools & ObjectOutputTools & ArtifactOutputTools;

/** Opens the output for a place; costs nothing, and reads and writes nothing. */
export function openOutput(place: IsoPlace, tools: OutputTools): Output {
  const kind = outputKindOf(place);
  if (kind === 'object') return createObjectOutput(place, tools);
  if (kind === 'artifact') return createArtifactOutput(place.output, tools);
  return createFileOutput(place, tools);
}

/**
 * Claims a place on this machine before the work directory and the network are open, which `Output.claim` of
 * other places needs.
 *
 * @throws the errors of `claimFile` and `claimDevice`
 */
export async function claimHere(
  place: IsoPlace,
  recognize: MediaReader['recognize'],
): Promise<void> {
  if (place.device) await claimDevice(place.device, place);
  else if (isHere(place)) await claimFile(place, recognize);
}

/**
 * Refuses a place that `claimHere` refuses even with `force`, for commands that build nothing.
 *
 * @throws the errors of `checkFile` and `claimDevice`
 */
export async function checkHere(place: IsoPlace): Promise<void> {
  if (place.device) await claimDevice(place.device, { ...place, force: true });
  else if (isHere(place)) await checkFile(place);
}
