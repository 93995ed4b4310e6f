import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { open, readFile } from 'node:fs/promises';
import { openIso, type IsoImage } from '../../src/iso/read/open.ts';

/**
 * Writes a recipe of version 1 into the room that an ISO has for it.
 *
 * @param fullPath what is written to
 * @param minimalPath what the recipe makes of it
 */
export async function writeMinimalRecipe(fullPath: string, minimalPath: string): Promise<void> {
  const [full, minimal] = [await openIso(fullPath), await openIso(minimalPath)];
  const runs = await listShared(full, minimal);
  const bytes = await readFile(minimalPath);
  const rest: Buffer[] = [];
  let end = 0;
  for (const run of runs) {
    rest.push(bytes.subarray(end, run.minimal));
    end = run.minimal + run.size;
  }
  rest.push(bytes.subarray(end));
  const packed = execFileSync('xz', ['-c', '--check=crc32'], {
    input: Buffer.concat(rest),
    maxBuffer: 1 << 26,
  });
  const recipe = Buffer.concat([
    Buffer.from('MINISO\0\0'),
    ...[1, 4].map(number),
    Buffer.from('test'),
    number(runs.length),
    ...runs.flatMap((run) => [run.minimal / 2048, run.full / 2048, run.size].map(number)),
    createHash('sha256').update(bytes).digest(),
    number(packed.length),
    packed,
  ]);
  const node = await full.find('/coreos/miniso.dat');
  if (node?.kind !== 'file' || recipe.length > node.size)
    throw new Error(`no room for ${recipe.length} bytes`);
  const file = await open(fullPath, 'r+');
  await file.write(recipe, 0, recipe.length, node.extents[0]?.offset);
  await file.close();
  await full.close();
  await minimal.close();
}

type Run = { readonly minimal: number; readonly full: number; readonly size: number };

/** The files that are the same in both, by their place in the minimal one. */
async function listShared(full: IsoImage, minimal: IsoImage): Promise<readonly Run[]> {
  const runs: Run[] = [];
  for await (const { path, node } of minimal.walk()) {
    const from = await full.find(path);
    if (from?.kind !== 'file' || node.kind !== 'file' || node.size === 0) continue;
    if (from.size !== node.size) continue;
    const limit = node.size;
    const bytes = await minimal.readFile(node, limit);
    if (Buffer.compare(bytes, await full.readFile(from, limit)) !== 0) continue;
    const [at, before] = [node.extents[0]?.offset ?? 0, from.extents[0]?.offset ?? 0];
    runs.push({ minimal: at, full: before, size: node.size });
  }
  return runs.toSorted((a, b) => a.minimal - b.minimal);
}

/** As bincode writes it. */
function number(value: number): Buffer {
  if (value < 251) return Buffer.from([value]);
  const bytes = Buffer.alloc(5, 252);
  bytes.writeUInt32LE(value, 1);
  return bytes;
}
