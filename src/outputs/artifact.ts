import pLimit from 'p-limit';
import type { Digest } from '../base/digest.ts';
import { RegistryError, IntegrityError } from '../base/errors.ts';
import { maxOf, sumSizes } from '../base/lists.ts';
import { follow } from '../base/wait.ts';
import {
  type Descriptor,
  formatReference,
  MAX_MANIFEST_SIZE,
  type PushedBlob,
  type Reference,
  type RegistryClient,
  type RegistryWriter,
  type StoredManifest,
  type WritingClient,
} from '../registry/index.ts';
import {
  EMPTY_CONFIG,
  formatArtifact,
  type ArtifactManifests,
  type IsoArtifact,
  parseArtifact,
} from './artifact/manifest.ts';
import { openLayout } from './artifact/layout.ts';
import { createMountsOf } from './artifact/mounts.ts';
import type { Part } from './artifact/parts.ts';
import { parseTaggedAddress, type MediaReader, type Output } from './place.ts';

export type ArtifactOutputTools = Pick<MediaReader, 'describe'> & {
  readonly registry: Pick<WritingClient, 'writerOf' | 'placesOf'>;
  readonly signal: AbortSignal;
};

/**
 * The registry is asked for every layer, so no other state is kept: the tag claims, the manifest finishes.
 */
export function createArtifactOutput(output: string, tools: ArtifactOutputTools): Output {
  const { registry: client, describe, signal } = tools;
  const reference = parseTaggedAddress(output);
  const { registry, repository, tag } = reference;
  return {
    claim: () => Promise.resolve(),
    look: () => Promise.resolve(undefined),
    async put({ layout, mode, lanes, openExtent, sourcesOf, onProgress }) {
      const { artifact, open, counters } = await openLayout({
        layout,
        about: {
          title: `${repository.split('/').at(-1) ?? ''}-${tag}.iso`,
          ...describe(layout),
          isPrivate: (mode & 0o004) === 0,
        },
        openExtent,
        lanes,
        signal,
      });
      const { digest, sent, mounted, present } = await pushArtifact(artifact, {
        client,
        reference,
        mountsOf: createMountsOf({ sourcesOf }, { client, registry, mountFrom: [] }),
        open,
        mostLayers: MOST_LAYERS,
        signal,
        onProgress(bytes, total) {
          onProgress(bytes, total, counters.fetched);
        },
      });
      return {
        noChecksum: 'no process had all of its bytes; a pull computes it',
        manifest: digest,
        isPresent: sent === 0,
        bytes: { ...counters, reused: mounted + present, written: sent, readBack: 0 },
      };
    },
    seal: () => Promise.resolve(),
  };
}

export type PushOptions = {
  readonly client: Pick<WritingClient, 'writerOf'>;
  /** A reference with a tag. */
  readonly reference: Reference & { readonly tag: string };
  /** Repositories of the same registry that may have a layer, in this order. */
  readonly mountsOf: (layer: Digest) => readonly string[];
  /** The bytes of a part, from the first to the last; called again for each attempt. */
  readonly open: (part: Required<Part>) => AsyncIterable<Uint8Array>;
  /** Maximum number of layers in one manifest. */
  readonly mostLayers: number;
  readonly signal: AbortSignal;
  /** Bytes of layers that are in the repository, out of all. */
  readonly onProgress: (bytes: number, total: number) => void;
};

/** Sizes are bytes. */
export type PushReport = {
  /** Digest of the manifest or index that the tag names now. */
  readonly digest: Digest;
  readonly layers: number;
  readonly manifests: number;
  /** Bytes of layers that were sent, including bytes that were sent again. */
  readonly sent: number;
  /** Bytes of layers that the registry took from other repositories. */
  readonly mounted: number;
  /** Bytes of layers that were already in the repository. */
  readonly present: number;
};

const LANES = 8;

/** Default for the number of layers in one manifest. */
export const MOST_LAYERS = 4096;

/**
 * Brings layers, then manifests, then the tag: a half-finished artifact has no name. Called again, it sends
 * the rest.
 *
 * @throws RegistryError `artifact.manifest-limit` and those of the registry; the errors of `open`
 */
export async function pushArtifact(
  artifact: IsoArtifact,
  options: PushOptions,
): Promise<PushReport> {
  const { client, reference, signal, mostLayers } = options;
  const writer = client.writerOf(reference);
  const layers = [...new Map(artifact.parts.map((part) => [part.digest, part])).values()];
  const bytes = await pushLayers(layers, writer, options);
  await writer.pushBlob({
    blob: EMPTY_CONFIG.descriptor,
    open: () => piecesOf(EMPTY_CONFIG.bytes),
    mountFrom: [],
    signal,
    onSent: () => undefined,
  });
  const { top, others } = await putManifests(artifact, mostLayers, { writer, ...options });
  return {
    digest: top.descriptor.digest,
    layers: layers.length,
    manifests: others.length + 1,
    ...bytes,
  };
}

/** The first failure ends all transfers. */
async function pushLayers(
  layers: readonly Required<Part>[],
  writer: RegistryWriter,
  { mountsOf, open, signal, onProgress }: PushOptions,
): Promise<Record<PushedBlob, number>> {
  const bytes: Record<PushedBlob, number> = { present: 0, mounted: 0, sent: 0 };
  const total = sumSizes(layers);
  const stop = new AbortController();
  const forget = follow([signal], stop);
  const limit = pLimit(LANES);
  let done = 0;
  const push = async (layer: Required<Part>): Promise<void> => {
    stop.signal.throwIfAborted();
    let sent = 0;
    const advance = (size: number): void => {
      done += size;
      onProgress(done, total);
    };
    const how = await writer.pushBlob({
      blob: layer,
      open: () => open(layer),
      mountFrom: mountsOf(layer.digest),
      signal: stop.signal,
      onSent(size) {
        bytes.sent += size;
        sent += size;
        advance(size);
      },
    });
    advance(layer.size - sent);
    if (how !== 'sent') bytes[how] += layer.size;
  };
  const pushed = layers.map((layer) =>
    limit(() =>
      push(layer).catch((error: unknown) => {
        stop.abort(error);
      }),
    ),
  );
  await Promise.all(pushed);
  forget();
  stop.signal.throwIfAborted();
  return bytes;
}

/** A registry that refuses manifests for their size gets more and smaller ones. */
async function putManifests(
  artifact: IsoArtifact,
  most: number,
  place: PushOptions & { readonly writer: RegistryWriter },
): Promise<ArtifactManifests> {
  const manifests = formatArtifact(artifact, most);
  const all = [manifests.top, ...manifests.others];
  const size = maxOf(all.map(({ bytes }) => bytes.length));
  const canShrink = most > FEWEST_LAYERS;
  const shrink = (): Promise<ArtifactManifests> =>
    putManifests(artifact, Math.floor(Math.min(most, artifact.parts.length) / 2), place);
  if (canShrink && size > MAX_MANIFEST_SIZE) return shrink();
  try {
    await put(manifests, place);
    return manifests;
  } catch (error) {
    if (!(error instanceof RegistryError) || !isRefusedForSize(error)) throw error;
    if (canShrink) return shrink();
    throw new RegistryError(
      'artifact.manifest-limit',
      `${formatReference(place.reference)} cannot be pushed: the registry refuses manifests of ${size} bytes`,
      {
        cause: error,
        found: `${size} bytes`,
        hint: 'raise the limit for manifests in the registry, or use a registry that accepts OCI 1.1 artifacts',
      },
    );
  }
}

/** With fewer layers, a registry has no reason to refuse a manifest for its size. */
const FEWEST_LAYERS = 16;

/** Sends the tag last. */
async function put(
  { top, others }: ArtifactManifests,
  { writer, reference, signal }: PushOptions & { readonly writer: RegistryWriter },
): Promise<void> {
  for (const { bytes, descriptor } of others) {
    const { mediaType, digest: name } = descriptor;
    await writer.putManifest(bytes, { mediaType, name, signal });
  }
  const { mediaType } = top.descriptor;
  await writer.putManifest(top.bytes, { mediaType, name: reference.tag, signal });
}

/** distribution answers 400 MANIFEST_INVALID to a manifest that exceeds its limit, proxies 413. */
const isRefusedForSize = ({ code, found = '' }: RegistryError): boolean =>
  code === 'registry.manifest-refused' && /^413|MANIFEST_INVALID|SIZE_INVALID/.test(found);

async function* piecesOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(bytes);
}

export type FoundArtifact = { readonly artifact: IsoArtifact; readonly manifest: Digest };

/** Limit on the bytes of all manifests: 200,000 layers take 50 MB. */
const LARGEST = 64 * 2 ** 20;

/**
 * Fetches the manifests of an index too.
 *
 * @throws IntegrityError `artifact.not-ours`, `artifact.malformed`; RegistryError
 */
export async function fetchArtifact(
  reference: Reference,
  { client, signal }: { readonly client: RegistryClient; readonly signal: AbortSignal },
): Promise<FoundArtifact> {
  const name = formatReference(reference);
  const top = await client.fetchManifest(reference, { signal });
  const others: StoredManifest[] = [];
  if (top.manifest.kind === 'index') {
    const { manifests } = top.manifest;
    requireFew(name, sumSizes(manifests));
    parseArtifact(name, top, []); // an index of any other artifact is not followed
    for (const { digest, size } of manifests) {
      const { registry, repository } = reference;
      const other = await client.fetchManifest({ registry, repository, digest }, { signal });
      if (other.bytes.length !== size) throw wrongSize(name, { digest, size }, other);
      others.push(other);
    }
  }
  return { artifact: parseArtifact(name, top, others), manifest: top.descriptor.digest };
}

/** Error for a manifest of another size than its index states: the limit relies on these sizes. */
const wrongSize = (
  name: string,
  { digest, size }: Pick<Descriptor, 'digest' | 'size'>,
  { bytes }: StoredManifest,
): IntegrityError =>
  new IntegrityError('artifact.malformed', `${name} states a wrong size for ${digest}`, {
    expected: `${size} bytes`,
    found: `${bytes.length} bytes`,
    hint: 'push the ISO again',
  });

function requireFew(name: string, size: number): void {
  if (size <= LARGEST) return;
  throw new IntegrityError('artifact.malformed', `${name} has manifests of ${size} bytes`, {
    expected: `at most ${LARGEST}`,
    found: String(size),
  });
}
