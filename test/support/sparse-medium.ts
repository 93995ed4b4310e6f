import { createHash } from 'node:crypto';
import type { Digest } from '../../src/base/digest.ts';
import type { TreeFile } from '../../src/iso/extent.ts';
import { layOutIso } from '../../src/iso/lay-out/lay-out.ts';
import { scanBaseIso } from '../../src/iso/lay-out/scan.ts';
import { listIndexExtents } from '../../src/media/describe.ts';
import { formatMediaIndex, type MediaIndex } from '../../src/media/media-index.ts';
import { INDEX_PATH } from '../../src/media/media-index.ts';
import { blobPath } from './medium.ts';
import { writeLayout } from './write-layout.ts';

type SparseBlob = { readonly digest: Digest; readonly size: number };

export type SparseMedium = Pick<MediaIndex, 'release' | 'images'> &
  Partial<Omit<MediaIndex, 'extents' | 'areas'>> & { readonly blobs: readonly SparseBlob[] };

/** The digest of nothing but a name. */
export const fakeDigest = (name: string): Digest =>
  `sha256:${createHash('sha256').update(name).digest('hex')}`;

/** An image of one manifest whose content is named by `version`. */
export const fakeImage = (
  name: string,
  { set = 'release', version = '1', source = `quay.io/test/${name}` } = {},
): MediaIndex['images'][number] => ({
  name,
  set,
  source: `${source}@${fakeDigest(`${name} ${version}`)}`,
  repository: `test/${name}`,
  tags: [name],
  manifests: [fakeDigest(`${name} ${version}`)],
});

/** A medium of any size over a base, with its directories and index: its blobs are holes. */
export async function writeSparseMedium(
  path: string,
  basePath: string,
  { blobs, ...medium }: SparseMedium,
): Promise<void> {
  const base = await scanBaseIso(basePath);
  const layout = layOutIso({
    base,
    files: blobs.map((blob): TreeFile => ({
      path: blobPath(blob.digest),
      content: { kind: 'blob', ...blob },
    })),
    remove: [],
    patches: [],
    epoch: 1_767_323_045,
    index: {
      path: INDEX_PATH,
      render: (extents, areas) =>
        Buffer.from(
          formatMediaIndex({
            format: 2,
            product: 'live-iso',
            base: { digest: base.digest, size: base.size },
            ...medium,
            ...(medium.format !== 1 && { areas }),
            extents: listIndexExtents(extents),
          }),
        ),
    },
  });
  await writeLayout(path, layout, { basePath });
}
