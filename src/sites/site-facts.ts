import { contains, formatAddress, type Cidr } from '../base/ip-address.ts';
import { readInterfaces } from '../nmstate/rules.ts';
import { toPrintable } from '../base/text/words.ts';
import type { SiteDocument } from './document/site-document.ts';
import type { IMAGE_BASED_CONFIG, INSTALL_CONFIG } from './document/site-shapes.ts';

/** What may occur in one site only. */
export type FactKind = 'cluster' | 'hostname' | 'address' | 'mac' | 'cluster id';

/** Something that no two sites may share, and where the site says it. */
export type SiteFact = {
  readonly kind: FactKind;
  /** In its canonical form. */
  readonly value: string;
  readonly file: string;
  /** From 1. */
  readonly line: number;
};

/** What is kept of a site to compare it with others: some hundred bytes. */
export type SiteFacts = { readonly name: string; readonly facts: readonly SiteFact[] };

type Install = SiteDocument<typeof INSTALL_CONFIG>;
type ImageBased = SiteDocument<typeof IMAGE_BASED_CONFIG>;

/** @param machine empty where no machine network is written */
export function listFacts(
  install: Install,
  imageBased: ImageBased,
  machine: readonly Cidr[],
): readonly SiteFact[] {
  const name = install.value.metadata?.name ?? '';
  const domain = (install.value.baseDomain ?? '').replace(/\.$/, '');
  const { hostname = '', cluster_id: clusterId = '' } = imageBased.value;
  const ofInstall = createWriter(install);
  const ofImageBased = createWriter(imageBased);
  return [
    ...ofInstall('cluster', name === '' ? '' : `${name}.${domain}`, 'metadata.name'),
    ...ofImageBased('hostname', hostname, 'hostname'),
    ...ofImageBased('cluster id', clusterId, 'cluster_id'),
    ...listNetworkFacts(ofImageBased, imageBased.value.networkConfig, machine),
  ];
}

/** Longer values are no facts of a site that passes. */
const LONGEST_FACT = 1000;

type Writer = (kind: FactKind, value: string, path: string) => readonly SiteFact[];

const createWriter =
  ({ file, lineOf }: Pick<Install, 'file' | 'lineOf'>): Writer =>
  (kind, value, path) =>
    value === ''
      ? []
      : [
          {
            kind,
            value: toPrintable(value.toLowerCase().slice(0, LONGEST_FACT)),
            file,
            line: lineOf(path),
          },
        ];

function listNetworkFacts(
  write: Writer,
  network: ImageBased['value']['networkConfig'],
  machine: readonly Cidr[],
): readonly SiteFact[] {
  const interfaces = readInterfaces(network).filter(({ isUp }) => isUp);
  // A VLAN or a bond may have the address of the interface below it.
  const macs = new Map(interfaces.map(({ mac = '', path }) => [mac, path]));
  const addresses = interfaces
    .flatMap((each) => each.addresses)
    // Other addresses than the node's may well be the same on every site.
    .filter(({ subnet }) => machine.length === 0 || machine.some((cidr) => contains(cidr, subnet)));
  return [
    ...[...macs]
      .filter(([mac]) => !isPlaceholder(mac))
      .flatMap(([mac, path]) => write('mac', mac, `${path}.mac-address`)),
    ...addresses.flatMap(({ subnet, path }) => write('address', formatAddress(subnet), path)),
  ];
}

/** Templates hold the zero address in place of one. */
const isPlaceholder = (mac: string): boolean => /^(?:00:)*0*$/.test(mac);
