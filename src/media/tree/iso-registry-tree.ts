import { Readable } from 'node:stream';
import { IntegrityError } from '../../base/errors.ts';
import { REGISTRY_ROOT, UPGRADE_REGISTRY_ROOT } from '../index/media-paths.ts';
import type { IsoFile } from '../../iso/read/node.ts';
import type { IsoImage } from '../../iso/read/open.ts';
import type { RegistryTree } from '../../registry/layout/tree.ts';

/** A registry's small files: links of 71 bytes and manifests of 4 MiB at most. */
const SMALL_FILE = 8 * 1024 * 1024;

/** Bytes: hundreds of clients of a server may each be slow to take them. */
const PIECE = 128 * 1024;

/** Where a medium of any product has its registry; undefined where it has none. */
export async function findRegistryRoot(iso: Pick<IsoImage, 'find'>): Promise<string | undefined> {
  for (const root of REGISTRY_ROOTS) {
    if ((await iso.find(`${root}/docker/registry/v2`))?.kind === 'directory') return root;
  }
  return undefined;
}

const REGISTRY_ROOTS = [REGISTRY_ROOT, UPGRADE_REGISTRY_ROOT];

/** The registry on a medium, read straight out of the ISO file. */
export function isoRegistryTree(iso: IsoImage, root: string): RegistryTree {
  const findFile = async (path: string): Promise<IsoFile | undefined> => {
    const node = await iso.find(`${root}${path}`);
    return node?.kind === 'file' ? node : undefined;
  };
  const requireFile = async (path: string): Promise<IsoFile> => {
    const file = await findFile(path);
    if (file) return file;
    throw new IntegrityError('iso.no-file', `${root}${path} left the image`);
  };
  return {
    begin: iso.structure.budget.reset,
    async list(path) {
      const node = await iso.find(`${root}${path}`);
      if (node?.kind !== 'directory') return undefined;
      // Two entries of one name would be listed as two directories of the same content.
      return [...new Set((await iso.children(node)).map(({ name }) => name))];
    },
    size: async (path) => (await findFile(path))?.size,
    async read(path) {
      const file = await findFile(path);
      return file && iso.readFile(file, SMALL_FILE);
    },
    stream: (path, range) =>
      Readable.from(
        (async function* () {
          const wanted = range && { offset: range.start, size: range.end - range.start + 1 };
          yield* iso.stream(await requireFile(path), wanted);
        })(),
        { objectMode: false, highWaterMark: 1 << 20 },
      ),
    async *pieces(path, range) {
      const file = await requireFile(path);
      const { start, end } = range ?? { start: 0, end: file.size - 1 };
      const buffer = Buffer.allocUnsafeSlow(Math.min(PIECE, Math.max(0, end - start + 1)));
      let before = 0; // bytes of the file in the extents before this one
      for (const { offset, size } of file.extents) {
        const last = Math.min(end + 1 - before, size);
        for (let at = Math.max(0, start - before); at < last; at += PIECE) {
          yield await iso.readBytes(offset + at, Math.min(PIECE, last - at), buffer);
        }
        before += size;
      }
    },
  };
}
