/** Networks of hosts: NMState documents read and judged, NetworkManager profiles written. */

export { compareHosts, type ComparedHost } from './compare-hosts.ts';
export {
  formatFindings,
  type HostNetwork,
  hostOfFile,
  judgeNetwork,
  planHosts,
  planNetwork,
  profilesOf,
} from './plan.ts';
export { FAMILIES, isDynamic, listAllAddresses } from './addresses.ts';
export { readNetworkText, type TextPlace } from './document.ts';
export { formatNetworkConfig } from './format.ts';
export type { Keyfile } from './keyfile.ts';
export type { InterfaceAddress } from './members.ts';
export { readInterfaces } from './read.ts';
export type { NetworkInterface } from './state.ts';
export { findNetworkTool, type NetworkTool } from './tool.ts';
export { type NetworkFinding, formatFinding } from './values.ts';
export { lacksDefaultRoute } from './warnings.ts';
