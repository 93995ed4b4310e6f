import { IntegrityError } from '../base/errors.ts';
import type { IsoImage } from '../iso/index.ts';
import { readPayloadDefinitions } from '../openshift/agent/payload-definitions.ts';
import type { Definitions } from '../openshift/agent/resource-members.ts';
import { platformOf, type RpmArchitecture } from '../openshift/release/bundle.ts';
import { DEFINITION, isManifestPath, readManifests } from '../openshift/release/manifests.ts';
import { type Layer, parseReference, readFiles, type Reference } from '../registry/index.ts';
import { type MediaIndex, readIndex, REGISTRY_ROOT } from './media-index.ts';
import { findRegistryRoot, isoRegistryTree, openMediumLayers } from './tree.ts';

/* Opens the images of a release in the registry of a medium, without a network. */

export async function openImageOf(
  iso: IsoImage,
  image: { readonly name: string; readonly reference: Reference; readonly arch: RpmArchitecture },
  signal: AbortSignal,
): Promise<readonly Layer[]> {
  const { name, reference, arch } = image;
  const { digest } = reference;
  if (digest === undefined) {
    throw new IntegrityError('medium.no-image', `the medium names ${name} without a digest`);
  }
  const wanted = { name, digest, platform: platformOf(arch) };
  const root = (await findRegistryRoot(iso)) ?? REGISTRY_ROOT;
  return openMediumLayers(isoRegistryTree(iso, root), wanted, signal);
}

/** The release payload of the medium, by the digest in its index. */
export async function openPayload(
  iso: IsoImage,
  { release }: Pick<MediaIndex, 'release'>,
  signal: AbortSignal,
): Promise<{
  readonly reference: Reference;
  readonly arch: RpmArchitecture;
  readonly layers: readonly Layer[];
}> {
  const reference = parseReference(release.reference);
  const arch = release.architecture as RpmArchitecture;
  const layers = await openImageOf(iso, { name: 'the release image', reference, arch }, signal);
  return { reference, arch, layers };
}

/**
 * None for media that carry no payload of their own.
 *
 * @throws the errors of `openPayload`; IntegrityError `release.manifest-unreadable`
 */
export async function readMediumDefinitions(
  iso: IsoImage,
  kinds: readonly string[],
  signal: AbortSignal,
): Promise<Definitions> {
  const index = await readIndex(iso);
  if (index?.product !== 'live-iso') return {};
  const { layers } = await openPayload(iso, index, signal);
  const files = await readFiles(layers, isManifestPath, { signal });
  const relevant = [...files].filter(([, bytes]) =>
    kinds.some((kind) => Buffer.from(bytes).includes(`kind: ${kind}\n`)),
  );
  const manifests = readManifests(new Map(relevant), [DEFINITION], { withSchemas: true });
  return readPayloadDefinitions(manifests, kinds);
}
