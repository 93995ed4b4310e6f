import { decodeInitrd } from '../ignition/initrd.ts';
import { findEmbedArea } from '../iso/coreos/embed-area.ts';
import type { IsoImage } from '../iso/read/open.ts';
import { BOOTSTRAP_IGNITION_PATH } from '../openshift/node/bootstrap.ts';
import { BOOTSTRAP_IMAGE_PATH } from './index/media-paths.ts';

const BOOTSTRAP_LIMIT = 64 * 1024 * 1024;

/**
 * The config in the embed area, as text; undefined when the area is empty.
 *
 * @throws IntegrityError where the image has no embed area, or what is in it is not an initrd
 */
export async function readEmbeddedIgnition(iso: IsoImage): Promise<string | undefined> {
  const { offset, size } = await findEmbedArea(iso);
  const bytes = await iso.readBytes(offset, size);
  if (bytes.every((byte) => byte === 0)) return undefined;
  return toText((await decodeInitrd(bytes)).get('config.ign'));
}

/** The bootstrap config of a medium of ours, as text; undefined on other images. */
export async function readBootstrapIgnition(iso: IsoImage): Promise<string | undefined> {
  const node = await iso.find(BOOTSTRAP_IMAGE_PATH);
  if (node?.kind !== 'file') return undefined;
  const members = await decodeInitrd(await iso.readFile(node, BOOTSTRAP_LIMIT));
  return toText(
    members.get(BOOTSTRAP_IGNITION_PATH) ?? members.get(BOOTSTRAP_IGNITION_PATH.slice(1)),
  );
}

const toText = (bytes: Uint8Array | undefined): string | undefined =>
  bytes && Buffer.from(bytes).toString('utf8');
