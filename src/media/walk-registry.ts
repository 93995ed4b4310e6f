import { sumSizes } from '../base/lists.ts';
import type { ByteRange } from '../base/random-access.ts';
import type { IsoImage } from '../iso/index.ts';
import type { RegistryTree } from '../registry/index.ts';
import { isoRegistryTree, SMALL_FILE } from './tree.ts';

/**
 * All directories are in memory: a program that looks up tens of thousands of paths reads each once, in
 * order. 60,000 files take some 30 MiB.
 */
export async function walkRegistryTree(iso: IsoImage, root: string): Promise<RegistryTree> {
  const files = new Map<string, readonly ByteRange[]>();
  const directories = new Map<string, string[]>([['', []]]);
  for await (const { path, node } of iso.walk()) {
    if (!path.startsWith(`${root}/`)) continue;
    const own = path.slice(root.length);
    if (files.has(own) || directories.has(own)) continue; // the first entry of a name counts
    const end = own.lastIndexOf('/');
    directories.get(own.slice(0, end))?.push(own.slice(end + 1));
    if (node.kind === 'file') files.set(own, node.extents); // the node itself holds much more
    if (node.kind === 'directory') directories.set(own, []);
  }
  const plain = isoRegistryTree(iso, root);
  return {
    ...plain,
    list: (path) => Promise.resolve(directories.get(path)),
    size: (path) => {
      const extents = files.get(path);
      return Promise.resolve(extents && sumSizes(extents));
    },
    async read(path) {
      const extents = files.get(path) ?? [];
      if (sumSizes(extents) > SMALL_FILE) return plain.read(path); // which refuses it
      const pieces = extents.map(({ offset, size }) => iso.readBytes(offset, size));
      return files.has(path) ? Buffer.concat(await Promise.all(pieces)) : undefined;
    },
  };
}
