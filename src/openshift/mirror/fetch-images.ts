import type { LimitFunction } from 'p-limit';
import { IntegrityError, RegistryError, SealiftError } from '../../base/errors.ts';
import type { Descriptor, Platform } from '../../registry/descriptor.ts';
import { isForPlatform, type StoredManifest } from '../../registry/manifest.ts';
import { formatReference, type Reference } from '../../registry/reference.ts';
import { formatPlatforms, noPlatform, readManifest, type ImageTools } from '../image-access.ts';
import type { ImageSet, Need, WantedImage } from './image-set.ts';
import type { FetchedImage } from './mirror-plan.ts';

/** Which children of an index are carried. */
export type Selection = Platform | 'all';

export type FetchTools = Omit<ImageTools, 'onProgress'> & {
  /** Bounds the requests under way. */
  readonly limit: LimitFunction;
  readonly onProgress?: (done: number, total: number) => void;
};

type Read = (reference: Reference) => Promise<StoredManifest>;

/**
 * The manifests of all images of all sets, in their order; one that several need is asked for once.
 *
 * @throws RegistryError `mirror.images-missing` when several cannot be had, naming each; the failure
 * itself when it is the only reason.
 */
export async function fetchImages(
  sets: readonly ImageSet[],
  selection: Selection,
  tools: FetchTools,
): Promise<FetchedImage[]> {
  const wanted = sets.flatMap(({ name, images }) => images.map((image) => ({ set: name, image })));
  const read = createReader(tools);
  const failures: Failure[] = [];
  let done = 0;
  const fetched = await Promise.all(
    wanted.map(async ({ set, image }): Promise<FetchedImage[]> => {
      try {
        const manifests = await readImage(read, image.source, selection);
        tools.onProgress?.(++done, wanted.length);
        return [{ wanted: image, set, manifests }];
      } catch (error) {
        tools.signal.throwIfAborted();
        if (!(error instanceof SealiftError)) throw error;
        failures.push({ image, error });
        return [];
      }
    }),
  );
  if (failures.length > 0) throw summarise(failures, wanted.length);
  return fetched.flat();
}

/** Failures of a registry, not of an image: what one was told, the next would be told, too. */
const REGISTRY_FAILURES = new Set([
  'registry.unreachable',
  'registry.unavailable',
  'registry.unknown-host',
  'registry.certificate',
]);

/**
 * A manifest at most once at a time and in all; requests wait for their turn. A registry that stays
 * silent through all attempts is not asked again: two hundred images would wait for it one by one.
 */
function createReader({ client, cache, signal, limit }: FetchTools): Read {
  const asked = new Map<string, Promise<StoredManifest>>();
  const silent = new Map<string, SealiftError>();
  const read: Read = async (reference) => {
    const known = silent.get(reference.registry);
    if (known) throw known;
    try {
      return await readManifest({ client, cache, signal }, reference);
    } catch (error) {
      if (error instanceof SealiftError && REGISTRY_FAILURES.has(error.code)) {
        silent.set(reference.registry, error);
      }
      throw error;
    }
  };
  return (reference) => {
    const key = formatReference(reference);
    const answer = asked.get(key) ?? limit(() => read(reference));
    asked.set(key, answer);
    return answer;
  };
}

/** The manifest the source names, then every carried child, and theirs. */
async function readImage(
  read: Read,
  source: Reference,
  selection: Selection,
): Promise<StoredManifest[]> {
  const top = await read(source);
  const { manifest } = top;
  if (manifest.kind === 'manifest') return [top];
  const children = select(manifest.manifests, source, selection);
  const { registry, repository } = source;
  const below = await Promise.all(
    children.map(({ digest }) => readImage(read, { registry, repository, digest }, selection)),
  );
  return [top, ...below.flat()];
}

/** A variant that the platform does not ask for is carried, too: the node chooses. */
function select(
  children: readonly Descriptor[],
  source: Reference,
  selection: Selection,
): readonly Descriptor[] {
  if (selection === 'all') return children;
  const carried = children.filter((child) => isForPlatform(child, selection));
  if (carried.length > 0) return carried;
  throw noPlatform(source, selection, formatPlatforms(children));
}

type Failure = { readonly image: WantedImage; readonly error: SealiftError };

/** Several failures are one answer of registries; a reason that many share is told once. */
function summarise(failures: readonly Failure[], total: number): SealiftError {
  const reasons = new Map<string, Failure[]>();
  for (const failure of failures) {
    const reason = failure.error.message;
    reasons.set(reason, [...(reasons.get(reason) ?? []), failure]);
  }
  const first = failures[0]?.error;
  const isOperator = failures.some(({ image }) => image.neededBy.some(({ bundle }) => bundle));
  if (first !== undefined && reasons.size === 1 && !isOperator) return first;
  const lines = [...reasons].map(([reason, shared]) => `${formatNames(shared)}: ${reason}`);
  const details = {
    expected: `${total} images`,
    found: `${total - failures.length} images`,
    cause: first,
    hint: 'check these references and the pull secret',
  };
  const message = `${failures.length} of ${total} images cannot be had:\n${lines.join('\n')}`;
  return failures.every(({ error }) => error instanceof IntegrityError)
    ? new IntegrityError('mirror.images-damaged', message, details)
    : new RegistryError('mirror.images-missing', message, details);
}

function formatNames(failures: readonly Failure[]): string {
  const names = failures.map(({ image }) => image.name);
  const shown = names.length > 1 ? `${names[0] ?? ''} and ${names.length - 1} more` : names[0];
  return `${shown ?? ''}${formatNeeds(failures.flatMap(({ image }) => image.neededBy))}`;
}

/** ` (needed by mtv-operator.v2.10.1)`: what to leave out to do without an image. */
function formatNeeds(needs: readonly Need[]): string {
  const parts = new Set(needs.map(({ part, bundle }) => bundle ?? part));
  parts.delete('release');
  return parts.size === 0 ? '' : ` (needed by ${[...parts].join(', ')})`;
}
