import { IntegrityError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { ImageProblem } from '../../base/errors.ts';
import { TOO_MUCH_STRUCTURE } from '../structure-source.ts';
import type { ByteRange } from '../../base/random-access.ts';
import { formatCauses } from '../reading-context.ts';

/** Something about an image that is not as its standard says: an error unless no reader is known to break. */
export type StructureProblem = ImageProblem;

export type Where = { readonly path?: string; readonly range?: ByteRange };

export const damage = (problem: string, where: Where = {}): StructureProblem =>
  describe('error', problem, where);

export const oddity = (problem: string, where: Where = {}): StructureProblem =>
  describe('warning', problem, where);

const describe = (
  severity: StructureProblem['severity'],
  problem: string,
  { path, range }: Where,
): StructureProblem => ({
  severity,
  code: 'verify.structure',
  kind: 'structure',
  problem,
  ...withoutUndefined({ path }),
  ...range,
});

/**
 * What an error in the bytes says, as damage; any other error is thrown on, and so is the end of the
 * budget, behind which there is nothing to check.
 */
export function damageOf(error: unknown, where: Where): StructureProblem {
  if (!(error instanceof IntegrityError) || error.code === TOO_MUCH_STRUCTURE) throw error;
  return damage(formatCauses(error), where);
}
