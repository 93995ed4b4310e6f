import { IntegrityError } from '../../base/errors.ts';
import type { BaseNode } from './base-tree.ts';
import { SECTOR_SIZE } from '../extent.ts';

/** A run of bytes of the base ISO that belongs to the same files all along. */
export type BaseRange = {
  readonly offset: number;
  readonly size: number;
  /** Sorted; empty for what no file owns. */
  readonly paths: readonly string[];
};

type FileRange = { readonly start: number; readonly end: number; readonly path: string };

/**
 * Cuts an image of `size` bytes where files begin and end, and at `cuts`. Files may share bytes.
 *
 * @throws IntegrityError `iso.truncated` when a file ends behind the image
 */
export function rangesOfBase(
  root: BaseNode,
  { size, cuts }: { size: number; cuts: readonly number[] },
): BaseRange[] {
  const files = [...fileRanges(root, '')].sort((a, b) => a.start - b.start);
  const outside = files.find((file) => file.end > size);
  if (outside) {
    throw new IntegrityError(
      'iso.truncated',
      `file ${outside.path} should end at byte ${outside.end}, but the image has ${size} bytes`,
      { expected: String(outside.end), found: String(size) },
    );
  }
  const boundaries = new Set([0, size, ...cuts]);
  for (const { start, end } of files) boundaries.add(start).add(end);
  const sorted = [...boundaries].sort((a, b) => a - b);
  const ranges: BaseRange[] = [];
  let active: FileRange[] = [];
  let next = 0;
  for (const [index, offset] of sorted.slice(0, -1).entries()) {
    active = active.filter((file) => file.end > offset);
    for (; (files[next]?.start ?? Infinity) <= offset; next += 1) {
      const file = files[next];
      if (file) active.push(file);
    }
    const paths = [...new Set(active.map((file) => file.path))].sort();
    ranges.push({ offset, size: (sorted[index + 1] ?? size) - offset, paths });
  }
  return ranges;
}

function* fileRanges(node: BaseNode, path: string): Generator<FileRange> {
  if (node.kind === 'directory') {
    for (const child of node.children) yield* fileRanges(child, `${path}/${child.name}`);
    return;
  }
  for (const { sector, size } of node.sections) {
    const start = sector * SECTOR_SIZE;
    if (size > 0) yield { start, end: start + size, path };
  }
}
