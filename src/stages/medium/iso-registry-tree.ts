import { Readable } from 'node:stream';
import { IntegrityError } from '../../base/errors.ts';
import type { IsoFile } from '../../iso/iso-node.ts';
import type { IsoImage } from '../../iso/open-iso.ts';
import type { RegistryTree } from '../../registry/store.ts';

/** A registry's small files: links of 71 bytes and manifests of 4 MiB at most. */
const SMALL_FILE = 8 * 1024 * 1024;

/** The registry on a medium, read straight out of the ISO file. */
export function isoRegistryTree(iso: IsoImage, root = '/registry'): RegistryTree {
  const findFile = async (path: string): Promise<IsoFile | undefined> => {
    const node = await iso.find(`${root}${path}`);
    return node?.kind === 'file' ? node : undefined;
  };
  return {
    async list(path) {
      const node = await iso.find(`${root}${path}`);
      if (node?.kind !== 'directory') return undefined;
      return (await iso.children(node)).map(({ name }) => name);
    },
    size: async (path) => (await findFile(path))?.size,
    async read(path) {
      const file = await findFile(path);
      return file && iso.readFile(file, SMALL_FILE);
    },
    stream: (path, range) =>
      Readable.from(
        (async function* () {
          const file = await findFile(path);
          if (!file) throw new IntegrityError('iso.no-file', `${root}${path} left the image`);
          const wanted = range && { offset: range.start, size: range.end - range.start + 1 };
          yield* iso.stream(file, wanted);
        })(),
        { objectMode: false, highWaterMark: 1 << 20 },
      ),
  };
}
