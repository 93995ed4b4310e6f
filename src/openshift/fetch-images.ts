import type { LimitFunction } from 'p-limit';
import { IntegrityError, RegistryError, SealiftError } from '../base/errors.ts';
import type { Descriptor, Platform } from '../registry/descriptor.ts';
import { isForPlatform, type StoredManifest } from '../registry/manifest.ts';
import { formatReference, type Reference } from '../registry/reference.ts';
import { formatPlatforms, noPlatform, readManifest, type ImageTools } from './image-access.ts';
import type { ImageSet, WantedImage } from './image-set.ts';
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
 * itself when it is one.
 */
export async function fetchImages(
  sets: readonly ImageSet[],
  selection: Selection,
  tools: FetchTools,
): Promise<FetchedImage[]> {
  const wanted = sets.flatMap(({ name, images }) => images.map((image) => ({ set: name, image })));
  const read = createReader(tools);
  const failures: { readonly image: WantedImage; readonly error: SealiftError }[] = [];
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

/** A manifest at most once at a time and in all; requests wait for their turn. */
function createReader(tools: FetchTools): Read {
  const { client, cache, signal, limit } = tools;
  const asked = new Map<string, Promise<StoredManifest>>();
  return (reference) => {
    const key = formatReference(reference);
    const known = asked.get(key);
    if (known) return known;
    const answer = limit(() => readManifest({ client, cache, signal }, reference));
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

/** Several failures are one answer of registries; wrong bytes among them weigh more. */
function summarise(
  failures: readonly { readonly image: WantedImage; readonly error: SealiftError }[],
  total: number,
): SealiftError {
  const [first, second] = failures;
  if (first && !second) return first.error;
  const lines = failures.map(
    ({ image, error }) => `${image.name} (${formatReference(image.source)}): ${error.message}`,
  );
  const details = {
    expected: `${total} images`,
    found: `${total - failures.length} images`,
    cause: first?.error,
    hint: 'check these references and the pull secret',
  };
  const message = `${failures.length} of ${total} images cannot be had:\n${lines.join('\n')}`;
  return failures.every(({ error }) => error instanceof IntegrityError)
    ? new IntegrityError('mirror.images-damaged', message, details)
    : new RegistryError('mirror.images-missing', message, details);
}
