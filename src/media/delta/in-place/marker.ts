import { isBroken } from '../../../base/disk/disk-errors.ts';
import { IntegrityError } from '../../../base/errors.ts';
import type { RandomAccess } from '../../../base/random-access.ts';
import { SECTOR_SIZE } from '../../../iso/index.ts';

const MARKER = 'sealift: not whole yet, apply the delta ';

export type Marked = { readonly delta: string; readonly run: string };

/** Fits in one sector. */
export const formatMarker = ({ delta, run }: Marked): Buffer =>
  Buffer.from(`${MARKER}${delta} again (run ${run})\n`);

export function parseMarker(start: Buffer): Marked | undefined {
  const text = start.toString('latin1');
  if (!text.startsWith(MARKER)) return undefined;
  const [delta = '', , , run = ''] = text.slice(MARKER.length).split(/[ )\n]/);
  return { delta, run };
}

/** Refuses an ISO that is partly changed to another one. */
export async function refuseHalfApplied({ path, size, read }: RandomAccess): Promise<void> {
  const start = await read(0, Math.min(size, SECTOR_SIZE)).catch((error: unknown) => {
    if (isBroken(error)) return Buffer.alloc(0);
    throw error;
  });
  const marked = parseMarker(start);
  if (!marked) return;
  throw halfApplied(path, {
    expected: 'a whole ISO',
    found: `the start of applying the delta ${marked.delta}`,
  });
}

export const halfApplied = (
  path: string,
  values: { readonly expected: string; readonly found: string },
): IntegrityError =>
  new IntegrityError('delta.half-applied', `${path} is partly changed to another ISO`, {
    ...values,
    hint: 'apply the delta that was begun, with the journal of that run',
  });
