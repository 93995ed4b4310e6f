import { formatValidIgnition } from '../ignition/format-valid.ts';
import {
  renderBootstrapIgnition,
  type BootstrapInput,
} from '../openshift/node/bootstrap-ignition.ts';

/**
 * The system configuration of the medium, as JSON text. Holds the hash of core's password when there
 * is one, and no other secret.
 *
 * @throws IntegrityError `ignition.invalid` when what we rendered breaks a rule of the format
 */
export function renderBootstrap(input: BootstrapInput): string {
  return formatValidIgnition(renderBootstrapIgnition(input), 'bootstrap configuration');
}
