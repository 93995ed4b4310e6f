import { formatReadableJson } from '../../base/canonical-json.ts';
import { IntegrityError } from '../../base/errors.ts';
import type { BasePatch } from '../base/base-extents.ts';
import type { TreeFile } from '../extent.ts';
import type { IsoImage } from '../open-iso.ts';
import { parseJsonObject } from './coreos-json.ts';
import type { EmbedArea } from './embed-area.ts';

/** Bytes of the base that change where they are, or files that take the place of some of its. */
export type EmbedPlan = {
  readonly files: readonly TreeFile[];
  readonly patches: readonly BasePatch[];
};

/**
 * The archive at the start of the embed area and zeros behind it. One that is too large goes to a larger file in the
 * area's place, where the area is a whole file.
 *
 * @throws IntegrityError `base-iso.fixed-embed-area`
 */
export async function planEmbed(
  iso: IsoImage,
  area: EmbedArea,
  archive: Uint8Array,
): Promise<EmbedPlan> {
  if (archive.length <= area.size) {
    const bytes = new Uint8Array(area.size);
    bytes.set(archive);
    return { files: [], patches: [{ offset: area.offset, bytes }] };
  }
  const path = `/${area.file.replace(/^\//, '')}`;
  const node = await iso.find(path);
  if (node?.kind !== 'file' || node.size !== area.size) {
    throw new IntegrityError(
      'base-iso.fixed-embed-area',
      `content length (${archive.length}) exceeds embed area size (${area.size})`,
      { expected: `at most ${area.size}`, found: String(archive.length) },
    );
  }
  const bytes = new Uint8Array(sizeOfGrownArea(area.size, archive.length));
  bytes.set(archive);
  return { files: [fileOf(path, bytes), ...(await growInfo(iso, bytes.length))], patches: [] };
}

/** Grows by quarters, as the image service does, with one quarter free for what it adds. */
function sizeOfGrownArea(size: number, needed: number): number {
  const quarter = Math.ceil(size / 4);
  return (1 + Math.ceil(needed / quarter)) * quarter;
}

async function growInfo(iso: IsoImage, length: number): Promise<readonly TreeFile[]> {
  const info = await iso.find('/coreos/igninfo.json');
  if (!info) return [];
  const json = parseJsonObject(await iso.readFile(info, 65_536), 'coreos/igninfo.json');
  return [fileOf('/coreos/igninfo.json', Buffer.from(formatReadableJson({ ...json, length })))];
}

const fileOf = (path: string, bytes: Uint8Array): TreeFile => ({
  path,
  content: { kind: 'bytes', bytes },
});
