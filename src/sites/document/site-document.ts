import { readAlongShape, type ConfigDocument } from '../../shape/document.ts';
import type { Shape, ValueOf } from '../../shape/shape.ts';
import type { SiteFile } from '../site.ts';
import { IMAGE_BASED_CONFIG, INSTALL_CONFIG } from './site-shapes.ts';

/** A file of a site, read along its shape. */
export type SiteDocument<S> = ConfigDocument<ValueOf<S>>;

/** Strictly: unknown and duplicate keys are problems. */
export const readSiteDocument = <S extends Shape>(
  { bytes, shownAs }: SiteFile,
  shape: S,
): SiteDocument<S> =>
  readAlongShape({ text: bytes, file: shownAs, publicKeys: PUBLIC_KEYS }, shape);

/** Keys of the network configuration whose values may be shown beside a problem. */
const NETWORK_KEYS = [
  'interfaces name type state mtu mac-address identifier ipv4 ipv6 address ip prefix-length enabled',
  'dhcp autoconf routes config destination next-hop-address next-hop-interface metric table-id',
  'dns-resolver server search link-aggregation mode options port ports vlan base-iface id bridge',
  'controller cidr hostprefix none route-rules ip-from ip-to route-table priority fwmark fwmask family',
  'action iif source weight cwnd route-type auto-dns auto-gateway auto-routes auto-route-table-id',
  'auto-route-metric profile-name min-mtu max-mtu wait-ip copy-mac-from accept-all-mac-addresses lldp',
  'ethernet speed duplex auto-negotiation veth peer protocol vrf route-table-id vxlan remote local',
  'destination-port mac-vlan mac-vtap promiscuous infiniband miimon primary running hostname',
]
  .join(' ')
  .split(' ');

/** In lower case: what may be shown. A key that is not among them may be a misspelt secret. */
export const PUBLIC_KEYS: ReadonlySet<string> = new Set([
  ...listNames(INSTALL_CONFIG),
  ...listNames(IMAGE_BASED_CONFIG),
  ...NETWORK_KEYS,
]);

function listNames(shape: Shape): readonly string[] {
  if (shape.kind === 'list' || shape.kind === 'map') return listNames(shape.of);
  if (shape.kind !== 'record') return [];
  return Object.entries(shape.members).flatMap(([name, child]) => [
    name.toLowerCase(),
    ...listNames(child),
  ]);
}
