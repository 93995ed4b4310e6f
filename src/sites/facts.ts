import type { FilePlace, Problem } from '../base/errors.ts';
import { contains, formatAddress, type Cidr } from '../base/ip-address.ts';
import { toPrintable } from '../base/text/words.ts';
import { listAllAddresses, readInterfaces } from '../nmstate/index.ts';
import type { Plain } from '../shape/shape.ts';
import type { SiteDocument, IMAGE_BASED_CONFIG, INSTALL_CONFIG } from './documents.ts';

/* Owns the comparison of sites with each other: the facts that must not occur twice. */

export type FactKind = 'cluster' | 'hostname' | 'address' | 'mac' | 'cluster id';

/** A fact that no two sites may share, and its place in the site's files. */
export type SiteFact = {
  readonly kind: FactKind;
  /** In its canonical form. */
  readonly value: string;
  readonly file: string;
  /** From 1. */
  readonly line: number;
};

/** The facts of a site that are remembered to compare it with others: a few hundred bytes. */
export type SiteFacts = { readonly name: string; readonly facts: readonly SiteFact[] };

type Install = SiteDocument<typeof INSTALL_CONFIG>;
type ImageBased = SiteDocument<typeof IMAGE_BASED_CONFIG>;

export type FactWriter = (kind: FactKind, value: string, path: string) => readonly SiteFact[];

/** A fact that a site must not share with another site, which the finding names with file and line. */
export type AcrossFinding = Problem<FilePlace> & {
  /** The site that gets the finding; the other site gets its own. */
  readonly name: string;
};

type Holder = { readonly name: string; readonly fact: SiteFact };

type Told = Omit<AcrossFinding, 'severity'> & { readonly kind: FactKind };

/** Lists the facts that no other site may share; `machine` is empty if no machine network is written. */
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
  const network = { path: 'networkConfig', value: imageBased.value.networkConfig };
  return [
    ...ofInstall('cluster', name === '' ? '' : `${name}.${domain}`, 'metadata.name'),
    ...ofImageBased('hostname', hostname, 'hostname'),
    ...ofImageBased('cluster id', clusterId, 'cluster_id'),
    ...listNetworkFacts(ofImageBased, network, machine),
  ];
}

/**
 * Finds facts that occur in more than one site: names and domains of clusters, hostnames, addresses of nodes,
 * MAC addresses, cluster ids. Takes time and memory in proportion to the facts. Facts that sites may share
 * are only warnings: behind address translation, for example, every site may have the same addresses.
 */
export function checkAcrossSites(
  sites: Iterable<SiteFacts>,
  shared: ReadonlySet<FactKind> = new Set(),
): readonly AcrossFinding[] {
  const holders = new Map<string, Holder[]>();
  for (const { name, facts } of sites) {
    for (const fact of facts) {
      const key = `${fact.kind} ${fact.value}`;
      const known = holders.get(key);
      if (!known) holders.set(key, [{ name, fact }]);
      else if (known.at(-1)?.name !== name) known.push({ name, fact });
    }
  }
  return [...holders.values()]
    .filter((all) => all.length > 1)
    .flatMap(tell)
    .map(({ kind, ...finding }) =>
      shared.has(kind)
        ? { ...finding, severity: 'warning' }
        : { ...finding, severity: 'error', ...hintAt(kind) },
    );
}

/** Characters; no valid value is longer. */
const LONGEST_FACT = 1000;

export const createWriter =
  ({ file, fileOf, lineOf }: Pick<Install, 'file' | 'fileOf' | 'lineOf'>): FactWriter =>
  (kind, value, path) =>
    value === ''
      ? []
      : [
          {
            kind,
            value: toPrintable(value.toLowerCase().slice(0, LONGEST_FACT)),
            file: fileOf?.(path) ?? file,
            line: lineOf(path),
          },
        ];

/** The MAC addresses and addresses of a host, whose network is at a path of its document. */
export function listNetworkFacts(
  write: FactWriter,
  { path: at, value }: { readonly path: string; readonly value: Plain | undefined },
  machine: readonly Cidr[],
): readonly SiteFact[] {
  const interfaces = readInterfaces(value).filter(({ state }) => state === 'up');
  // A VLAN or a bond may have the address of the interface below it.
  const macs = new Map(interfaces.map(({ 'mac-address': mac = '', path }) => [mac, path]));
  const addresses = interfaces
    .flatMap(listAllAddresses)
    // Addresses that are not the node's may be equal on every site.
    .filter(({ subnet }) => machine.length === 0 || machine.some((cidr) => contains(cidr, subnet)));
  return [
    ...[...macs]
      .filter(([mac]) => mac !== '')
      .flatMap(([mac, path]) => write('mac', mac, `${at}.${path}.mac-address`)),
    ...addresses.flatMap(({ subnet, path }) =>
      write('address', formatAddress(subnet), `${at}.${path}`),
    ),
  ];
}

const hintAt = (kind: FactKind): { readonly hint?: string } =>
  kind === 'address' || kind === 'hostname'
    ? { hint: `if that is intended, add --allow-shared ${kind}` }
    : {};

/** The first site's finding names the second, every other finding names the first: one line for each site. */
const tell = (holders: readonly Holder[]): readonly Told[] =>
  holders.flatMap((holder, index) => {
    const other = holders[index === 0 ? 1 : 0];
    return other ? [createFinding(holder, other, holders.length)] : [];
  });

const WORDS: Readonly<Record<FactKind, string>> = {
  'cluster': 'cluster name and domain',
  'hostname': 'hostname',
  'address': 'node address',
  'mac': 'MAC address',
  'cluster id': 'cluster id',
};

function createFinding({ name, fact }: Holder, other: Holder, count: number): Told {
  const { kind, value, file, line } = fact;
  const more = count > 2 ? `, and ${count - 2} more` : '';
  const where = `${other.name} (${other.fact.file}:${other.fact.line}${more})`;
  const problem = `${WORDS[kind]} ${value} of ${name} is also used by ${where}`;
  return { name, kind, code: 'sites.shared', file, line, problem };
}
