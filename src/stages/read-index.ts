import type { IsoImage } from '../iso/open-iso.ts';
import { parseMediaIndex, type MediaIndex } from '../openshift/media/media-index.ts';
import { INDEX_PATH } from '../openshift/media/media-paths.ts';

const LIMIT = 256 * 1024 * 1024;

/**
 * The index of a medium that this program made; undefined on any other image.
 *
 * @throws IntegrityError `index.malformed`, `index.format`
 */
export async function readIndex(iso: IsoImage): Promise<MediaIndex | undefined> {
  const node = await iso.find(INDEX_PATH);
  if (node?.kind !== 'file') return undefined;
  return parseMediaIndex(await iso.readFile(node, LIMIT));
}
