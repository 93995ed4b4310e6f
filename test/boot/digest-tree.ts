import { digestOf, hexOf } from '../../src/base/digest.ts';
import { openIso } from '../../src/iso/read/open.ts';

/**
 * What our reader sees of an ISO, in the words of the guest's proof: number of files, and one digest
 * over their sorted paths and sizes.
 */
export async function digestTree(path: string): Promise<[number, string]> {
  const image = await openIso(path);
  try {
    const lines: string[] = [];
    for await (const { path: name, node } of image.walk()) {
      if (node.kind === 'file') lines.push(`${name.replace(/^\//, '')} ${node.size}\n`);
    }
    return [lines.length, hexOf(digestOf(lines.sort().join('')))];
  } finally {
    await image.close();
  }
}
