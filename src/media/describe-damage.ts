import { IntegrityError, isErrno } from '../base/errors.ts';
import { formatCauses } from '../iso/reading-context.ts';

/**
 * What an error says about the bytes of an image: wrong ones, or sectors that a worn disc or stick does
 * not give any more. undefined for any other error.
 */
export function describeDamage(error: unknown): string | undefined {
  if (error instanceof IntegrityError) return formatCauses(error);
  return isErrno(error, 'EIO') ? 'the device answers with an error' : undefined;
}
