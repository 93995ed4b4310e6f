import { ConfigError } from '../../../base/errors.ts';
import type { HostNetwork } from '../../../openshift/customisation/custom-values.ts';
import { renderKeyfiles } from '../../../openshift/customisation/keyfiles.ts';
import { findNmstate } from './ask-nmstate.ts';

/**
 * Hosts with the profiles that only nmstate itself makes: of networks with a type or a member that is not translated
 * here. All others are made here, so that the same values give the same bytes on every machine.
 *
 * @throws ConfigError `nmstate.unsupported` where nmstatectl is not installed, `nmstate.malformed`
 */
export async function addProfiles(
  hosts: readonly HostNetwork[],
  host: Parameters<typeof findNmstate>[0],
): Promise<readonly HostNetwork[]> {
  const added: HostNetwork[] = [];
  for (const each of hosts) {
    const unsupported = explainUnsupported(each);
    if (!unsupported) {
      added.push(each);
      continue;
    }
    const nmstate = await findNmstate(host);
    if (!nmstate) throw unsupported;
    const keyfiles = await nmstate.makeProfiles(each.networkConfig, host.signal);
    added.push({ ...each, keyfiles });
  }
  return added;
}

function explainUnsupported({ networkConfig }: HostNetwork): ConfigError | undefined {
  try {
    renderKeyfiles(networkConfig);
    return undefined;
  } catch (error) {
    if (error instanceof ConfigError && error.code === 'nmstate.unsupported') return error;
    throw error;
  }
}
