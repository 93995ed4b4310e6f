import { IntegrityError } from '../../base/errors.ts';
import { TOO_MUCH_STRUCTURE } from '../structure-source.ts';
import type { ByteRange } from '../random-access.ts';
import { formatCauses } from '../reading-context.ts';

/** Something about an image that is not as its standard says. */
export type StructureProblem = {
  /** An oddity breaks no reader that we know; damage does. */
  readonly severity: 'damage' | 'oddity';
  /** A sentence with both values. */
  readonly problem: string;
  /** The file or directory it is about. */
  readonly path?: string;
  /** Bytes of the image it is about. */
  readonly range?: ByteRange;
};

export type Where = { readonly path?: string; readonly range?: ByteRange };

export const damage = (problem: string, where: Where = {}): StructureProblem => ({
  severity: 'damage',
  problem,
  ...where,
});

export const oddity = (problem: string, where: Where = {}): StructureProblem => ({
  severity: 'oddity',
  problem,
  ...where,
});

/**
 * What an error in the bytes says, as damage; any other error is thrown on, and so is the end of the
 * budget, behind which there is nothing to check.
 */
export function damageOf(error: unknown, where: Where): StructureProblem {
  if (!(error instanceof IntegrityError) || error.code === TOO_MUCH_STRUCTURE) throw error;
  return damage(formatCauses(error), where);
}
