import { findNetworkTool, type HostNetwork, planHosts } from '../nmstate/index.ts';
import type { CliHost } from './host.ts';
import { writeMessage } from './terminal/output.ts';

/** Plans the networks of hosts for the commands that write profiles; warnings go to standard error. */
export async function planNetworks(
  hosts: readonly HostNetwork[],
  host: CliHost,
): Promise<readonly HostNetwork[]> {
  const tool = await findNetworkTool(host);
  const warn = (warning: string): void => {
    writeMessage(host, `warning: ${warning}\n`);
  };
  return planHosts(hosts, { tool, signal: host.signal, warn });
}
