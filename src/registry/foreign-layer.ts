import type { Descriptor } from './descriptor.ts';
import { descriptorsOf, type Manifest } from './manifest.ts';

/**
 * Layers that stay at the URLs their descriptor names and that no registry has to hold: OCI's
 * non-distributable and Docker's foreign ones (image-spec layer.md).
 */
const isForeignLayer = ({ mediaType, urls }: Descriptor): boolean =>
  (urls?.length ?? 0) > 0 || /\.foreign\.|\.nondistributable\./.test(mediaType);

/** The config and layers a registry must hold for this manifest; none for an index. */
export const blobsOf = (manifest: Manifest): readonly Descriptor[] =>
  manifest.kind === 'index' ? [] : descriptorsOf(manifest).filter((blob) => !isForeignLayer(blob));
