import { IntegrityError } from '../base/errors.ts';
import { checkIgnition } from './check.ts';
import { formatIgnition, type IgnitionConfig } from './config.ts';

/**
 * The JSON text of a config that breaks no rule of the format.
 *
 * @throws IntegrityError `ignition.invalid` with every problem
 */
export function formatValidIgnition(config: IgnitionConfig, name: string): string {
  const problems = checkIgnition(config);
  if (problems.length === 0) return formatIgnition(config);
  const list = problems.map(({ path, problem }) => `${path}: ${problem}`).join('; ');
  throw new IntegrityError('ignition.invalid', `${name}: ${list}`);
}
