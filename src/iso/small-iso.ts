import { withoutUndefined } from '../base/lists.ts';
import { createEmptyImage, type EmptyVolume } from './empty-image.ts';
import { SECTOR_SIZE } from './extent.ts';
import { layOutIso } from './lay-out.ts';

export type SmallIso = EmptyVolume & {
  readonly files: readonly {
    /** Absolute. */
    readonly path: string;
    readonly bytes: Uint8Array;
    /** Permission bits; default 0o644. */
    readonly mode?: number;
  }[];
};

/** busybox takes a medium that ends before 68 KiB for an empty drive, and looks for no label on it. */
const MIN_SIZE = 64 * SECTOR_SIZE;

/**
 * A whole ISO 9660 image with Rock Ridge, without Joliet, El Torito or partitions: same input, same
 * bytes. Takes about 40 KiB beyond the files, each of which ends at a sector.
 *
 * @throws IntegrityError `layout.conflict`; ConfigError `layout.name-too-long`
 */
export function encodeSmallIso({ files, ...volume }: SmallIso): Uint8Array {
  const { size, extents } = layOutIso({
    base: createEmptyImage(volume),
    files: files.map(({ path, bytes, mode }) => ({
      path,
      content: { kind: 'bytes', bytes } as const,
      ...withoutUndefined({ mode }),
    })),
    remove: [],
    patches: [],
    epoch: volume.epoch,
    minSize: MIN_SIZE,
  });
  const image = new Uint8Array(size);
  for (const { source, offset } of extents) {
    if (source.kind === 'bytes') image.set(source.bytes, offset);
  }
  return image;
}
