import { RegistryError, SealiftError } from '../../base/errors.ts';
import type { OpenBytes, SourceAnswer } from '../../base/download/sources.ts';
import { maxOf } from '../../base/lists.ts';
import type { RangeSource } from '../../base/random-access.ts';
import type { BlobSource } from '../../base/store/blob-source.ts';
import { credentialsFromFiles } from '../../registry/client/credentials.ts';
import { loadRegistriesConf } from '../../registry/client/mirror-files.ts';
import { createRegistryClient } from '../../registry/client.ts';
import { formatReference } from '../../registry/reference.ts';
import { joinAnswers } from '../../base/download/fill-file.ts';
import type { OpenedRanges, SourceTools } from '../source/range-opener.ts';
import { parseArtifactAddress } from './artifact-address.ts';
import type { IsoArtifact } from './artifact-manifest.ts';
import { fetchArtifact } from './read-artifact.ts';

/**
 * The ISO of an artifact, by ranges of its layers; what no layer has is zeros. Credentials, certificates and
 * mirrors are those of the environment.
 *
 * @throws UsageError `usage.artifact`; IntegrityError `artifact.not-ours`, `artifact.malformed`; RegistryError
 */
export async function openArtifactRanges(text: string, tools: SourceTools): Promise<OpenedRanges> {
  const reference = parseArtifactAddress(text);
  const { http, env, signal } = tools;
  const registriesConf = await loadRegistriesConf(undefined, tools);
  const credentials = [credentialsFromFiles(env)];
  const client = createRegistryClient({ http, registriesConf, credentials });
  const { artifact, manifest } = await fetchArtifact(reference, { client, signal });
  const sources = client.sourcesOf(reference);
  const source: RangeSource = {
    name: `oci://${formatReference(reference)}`,
    size: artifact.size,
    version: manifest,
    open: (range, signal = tools.signal) =>
      Promise.resolve(readRange(artifact, range, { sources, signal })),
  };
  return { source, host: reference.registry };
}

type Range = Parameters<RangeSource['open']>[0];

type Reading = { readonly sources: readonly BlobSource[]; readonly signal: AbortSignal };

/** Ends where a layer breaks off: the reader asks again from there. */
export async function* readRange(
  { parts }: Pick<IsoArtifact, 'parts'>,
  { offset, size }: Range,
  reading: Reading,
): AsyncGenerator<Uint8Array> {
  const end = offset + size;
  let at = offset;
  for (const part of parts) {
    if (part.offset + part.size <= at) continue;
    if (part.offset >= end) break;
    yield* zeros(part.offset - at);
    at = maxOf([at, part.offset]);
    const wanted = { offset: at - part.offset, size: Math.min(end, part.offset + part.size) - at };
    if (!(yield* readPart(part, wanted, reading))) return;
    at += wanted.size;
  }
  yield* zeros(end - at);
}

const ZEROS = new Uint8Array(1 << 16);

function* zeros(size: number): Generator<Uint8Array> {
  for (let left = size; left > 0; left -= ZEROS.length) yield ZEROS.subarray(0, left);
}

/** Returns whether all came, and not less because its source broke off. */
async function* readPart(
  part: IsoArtifact['parts'][number],
  wanted: Range,
  reading: Reading,
): AsyncGenerator<Uint8Array, boolean> {
  const { body, offset } = await openPart(part, wanted, reading);
  if (offset !== wanted.offset) {
    body.destroy();
    throw new RegistryError(
      'source.no-ranges',
      `the registry does not give parts of ${part.digest}`,
      {
        expected: `bytes from ${wanted.offset}`,
        found: `bytes from ${offset}`,
        hint: 'pull the artifact, and name the file',
      },
    );
  }
  let left = wanted.size;
  for await (const piece of body) {
    const bytes = (piece as Uint8Array).subarray(0, left);
    left -= bytes.length;
    yield bytes;
    if (left === 0) return true;
  }
  return false;
}

async function openPart(
  { digest, size: blobSize }: IsoArtifact['parts'][number],
  { offset, size }: Range,
  { sources, signal }: Reading,
): Promise<OpenBytes> {
  const blob = { mediaType: 'application/octet-stream', digest, size: blobSize };
  const answers: SourceAnswer[] = [];
  for (const source of sources) {
    try {
      const opened = await source.open(blob, { offset, size, signal });
      if (opened) return opened;
      const error = new RegistryError('blob.unknown', `${source.name} does not have ${digest}`);
      answers.push({ source: source.name, error });
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof SealiftError)) throw error;
      answers.push({ source: source.name, error });
    }
  }
  throw joinAnswers(answers);
}
