import type { IntegrityError } from '../../base/errors.ts';
import type { IsoImage } from '../../iso/open-iso.ts';
import { decodeMediaIndex, parseMediaIndex, type MediaIndex } from './media-index.ts';
import { INDEX_PATH } from './media-paths.ts';

/** 3,000 images with 60,000 blobs and 72,000 links take 48,000,000 bytes. */
const LIMIT = 48 * 1024 * 1024;

type Files = Pick<IsoImage, 'find' | 'readFile'>;

/**
 * The index of a medium that this program made; undefined on any other image.
 *
 * @throws IntegrityError `index.malformed`, `index.format`, `index.digest`, `index.overlap`,
 * `iso.file-too-large`
 */
export async function readIndex(iso: Files): Promise<MediaIndex | undefined> {
  const bytes = await readBytes(iso);
  return bytes && parseMediaIndex(bytes);
}

/**
 * The same for who looks for damage: an index that has another digest than it names comes with the
 * error that tells so.
 *
 * @throws IntegrityError `index.malformed`, `index.format`, `iso.file-too-large`
 */
export async function readDamagedIndex(
  iso: Files,
): Promise<{ readonly index: MediaIndex; readonly damage?: IntegrityError } | undefined> {
  const bytes = await readBytes(iso);
  return bytes && decodeMediaIndex(bytes);
}

async function readBytes(iso: Files): Promise<Uint8Array | undefined> {
  const node = await iso.find(INDEX_PATH);
  return node?.kind === 'file' ? iso.readFile(node, LIMIT) : undefined;
}
