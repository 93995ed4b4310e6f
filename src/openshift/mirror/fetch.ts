import type { LimitFunction } from 'p-limit';
import { hexOf, type Digest } from '../../base/digest.ts';
import { findWorst, restate } from '../../base/download/source-answers.ts';
import { IntegrityError, RegistryError, type SealiftError } from '../../base/errors.ts';
import {
  type Descriptor,
  formatReference,
  isForPlatform,
  type Platform,
  type Reference,
  type StoredManifest,
} from '../../registry/index.ts';
import { askForManifest, formatPlatforms, noPlatform, type ImageTools } from '../images.ts';
import type { FetchedImage } from './plan.ts';
import type { ImageSet, Need, WantedImage } from './sets.ts';

/** The children of an index that are carried. */
export type Selection = Platform | 'all';

export type FetchTools = Omit<ImageTools, 'onProgress'> & {
  /** Bounds the requests under way. */
  readonly limit: LimitFunction;
  readonly onProgress?: (done: number, total: number) => void;
};

type Read = (reference: Reference) => Promise<StoredManifest>;

/**
 * In the order of the sets; a manifest that several need is asked for once.
 *
 * @throws an error that names each image that could not be fetched, and apart from them the images
 * that were not asked for because their registry is out of reach: with the code of the reason if
 * there is only one, else IntegrityError `mirror.images-damaged` if one had wrong bytes, else
 * RegistryError `mirror.images-missing`
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
        // A full disk, or a tool that is missing, is not caused by the image.
        if (!(error instanceof RegistryError || error instanceof IntegrityError)) throw error;
        failures.push({ image, error });
        return [];
      }
    }),
  );
  if (failures.length > 0) throw summarise(failures, wanted.length);
  return fetched.flat();
}

/** Reads a manifest at most once at a time and in all; requests wait for their turn. */
function createReader({ client, cache, signal, limit }: FetchTools): Read {
  const asked = new Map<string, Promise<StoredManifest>>();
  return (reference) => {
    const key = formatReference(reference);
    const answer =
      asked.get(key) ?? limit(() => askForManifest({ client, cache, signal }, reference));
    asked.set(key, answer);
    return answer;
  };
}

/** The manifest that the source names, then every carried child, and the children's children. */
export async function readImage(
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

/**
 * A reason is given once, with its code if it is the only one. Images that were not asked for, because their
 * registry is out of reach, are counted and not called missing.
 */
function summarise(failures: readonly Failure[], total: number): SealiftError {
  const [first] = failures;
  if (first === undefined) throw new RangeError('nothing failed');
  const asked = failures.filter(({ error }) => error.code !== NOT_ASKED);
  const reasons = groupByReason(failures);
  const lines = [...reasons].map(([reason, shared]) => `${formatNames(shared)}: ${reason}`);
  const message = `${formatCounts(failures, asked, total)}:\n${lines.join('\n')}`;
  const answers = (asked.length > 0 ? asked : failures).map(({ image, error }) => ({
    source: image.name,
    error,
  }));
  const { error } = findWorst(answers);
  if (groupByReason(asked).size <= 1) return restate(error, message);
  const details = {
    expected: `${total} images`,
    found: `${total - failures.length} images`,
    cause: error,
    hint: 'check these references and the pull secret',
  };
  return error instanceof IntegrityError
    ? new IntegrityError('mirror.images-damaged', message, details)
    : new RegistryError('mirror.images-missing', message, details);
}

const NOT_ASKED = 'registry.not-asked';

function groupByReason(failures: readonly Failure[]): Map<string, Failure[]> {
  const reasons = new Map<string, Failure[]>();
  for (const failure of failures) {
    const reason = failure.error.message;
    reasons.set(reason, [...(reasons.get(reason) ?? []), failure]);
  }
  return reasons;
}

/** `1 of 52 images cannot be fetched, 12 were not asked for`. */
function formatCounts(
  failures: readonly Failure[],
  asked: readonly Failure[],
  total: number,
): string {
  const failed = `${asked.length} of ${total} images cannot be fetched`;
  const rest = failures.length - asked.length;
  return rest === 0 ? failed : `${failed}, ${rest} ${rest === 1 ? 'was' : 'were'} not asked for`;
}

function formatNames(failures: readonly Failure[]): string {
  const names = failures.map(({ image }) => image.name);
  const shown = names.length > 1 ? `${names[0] ?? ''} and ${names.length - 1} more` : names[0];
  return `${shown ?? ''}${formatNeeds(failures.flatMap(({ image }) => image.neededBy))}`;
}

/** ` (needed by mtv-operator.v2.10.1)`: the parts to leave out in order to do without an image. */
function formatNeeds(needs: readonly Need[]): string {
  const parts = new Set(needs.map(({ part, bundle }) => bundle ?? part));
  parts.delete('release');
  return parts.size === 0 ? '' : ` (needed by ${[...parts].join(', ')})`;
}

/**
 * The tag `sha256-<hex>.sig` in the repository of the signed manifest, an index or one of its children. A
 * missing tag means no signature; any other answer than 404 is a failure, because media that lack a signature
 * do not install.
 */
export async function fetchSignatures(
  images: readonly FetchedImage[],
  tools: FetchTools,
): Promise<FetchedImage[]> {
  const candidates = new Map<string, { image: FetchedImage; digest: Digest }>();
  for (const image of images) {
    if (image.wanted.isMadeHere) continue;
    for (const { descriptor } of image.manifests) {
      const key = `${formatReference(signatureOf(image, descriptor.digest))} ${placeOf(image)}`;
      if (!candidates.has(key)) candidates.set(key, { image, digest: descriptor.digest });
    }
  }
  const found = await Promise.all(
    [...candidates.values()].map(({ image, digest }) => fetchSignature(image, digest, tools)),
  );
  return found.flat();
}

const placeOf = ({ wanted }: FetchedImage): string =>
  (wanted.signedCopy ?? wanted.destination).repository;

async function fetchSignature(
  image: FetchedImage,
  digest: Digest,
  { client, cache, signal, limit }: FetchTools,
): Promise<FetchedImage[]> {
  const source = signatureOf(image, digest);
  const found = await limit(() => client.resolveTag(source, { signal }));
  if (found === undefined) return [];
  const { registry, repository, tag } = source;
  const wanted = {
    name: `${image.wanted.name} (signature)`,
    source: { registry, repository, digest: found.digest },
    destination: { repository: placeOf(image), tags: [tag] },
    neededBy: image.wanted.neededBy,
    kind: 'signature' as const,
  };
  const set = { name: image.set, images: [wanted] };
  return fetchImages([set], 'all', { client, cache, signal, limit });
}

function signatureOf(
  { wanted: { source } }: FetchedImage,
  digest: Digest,
): Reference & { readonly tag: string } {
  const { registry, repository } = source;
  return { registry, repository, tag: `sha256-${hexOf(digest)}.sig` };
}
