import type { DocumentProblem } from '../../base/errors.ts';
import {
  contains,
  formatAddress,
  isHostAddress,
  parseAddress,
  type Cidr,
} from '../../base/ip-address.ts';
import type { AgentRole } from '../../openshift/agent/agent-cluster.ts';
import { type ReportProblem, invalid } from '../../shape/report.ts';
import type { WrittenAgentConfig, WrittenAgentHost } from './documents.ts';
import { listHostAddresses } from './across-hosts.ts';

/*
 * Owns the host that installs the cluster, and the number of hosts of each role (installer:
 * pkg/asset/agent/manifests/nmstateconfig.go).
 */

type Hosts = readonly (WrittenAgentHost | undefined)[];

/**
 * The address that is written, else the first static one of a master or an arbiter, else of a host that may
 * become one; undefined without one.
 */
export function chooseRendezvousIp({
  rendezvousIP = '',
  hosts = [],
}: WrittenAgentConfig): string | undefined {
  if (rendezvousIP !== '') return rendezvousIP;
  const addresses = listHostAddresses(hosts);
  const [first] = [['master', 'arbiter'], ['']].flatMap((roles) =>
    hosts.flatMap((host, at) => (roles.includes(host?.role ?? '') ? (addresses[at] ?? []) : [])),
  );
  return first;
}

export type RendezvousRules = {
  readonly machine: readonly Cidr[];
  readonly vips: readonly string[];
};

export function checkRendezvousIp(
  report: ReportProblem,
  written: WrittenAgentConfig,
  { machine, vips }: RendezvousRules,
): readonly DocumentProblem[] {
  const { hosts = [], rendezvousIP = '' } = written;
  const text = chooseRendezvousIp(written);
  const path = 'rendezvousIP';
  if (text === undefined) {
    return [
      report(
        path,
        'missing rendezvousIP, and no host that can install the cluster has a static address',
      ),
    ];
  }
  const address = parseAddress(text);
  if (!address) return [report(path, invalid(text, `${JSON.stringify(text)} is not a valid IP`))];
  if (!isHostAddress(text)) return [report(path, invalid(text, 'is the address of no host'))];
  const why = explainRendezvous(formatAddress(address), { machine, vips });
  const owners = findOwners(hosts, formatAddress(address));
  return [
    ...why.map((each) => report(path, invalid(text, each))),
    ...(rendezvousIP === '' ? [] : checkOwners(report, { hosts, owners, text })),
  ];
}

function explainRendezvous(text: string, { machine, vips }: RendezvousRules): readonly string[] {
  const address = parseAddress(text);
  if (!address) return [];
  const own = machine.find((cidr) => contains(cidr, address));
  const isEdge =
    own?.family === 4 && own.prefix < 31 && [own.first, own.last].includes(address.value);
  return [
    ...(own || machine.length === 0
      ? []
      : [`no machine network contains it: ${machine.map((cidr) => cidr.text).join(', ')}`]),
    ...(isEdge ? [`is the network or broadcast address of ${own.text}`] : []),
    ...(vips.includes(text) ? ['is also a virtual address of the cluster'] : []),
  ];
}

const findOwners = (hosts: Hosts, text: string): readonly number[] =>
  listHostAddresses(hosts).flatMap((addresses, at) => (addresses.includes(text) ? [at] : []));

type Owners = { readonly hosts: Hosts; readonly owners: readonly number[]; readonly text: string };

/** Only if every host of the list has static addresses is it known that none of them has this one. */
function checkOwners(
  report: ReportProblem,
  { hosts, owners, text }: Owners,
): readonly DocumentProblem[] {
  const isStatic = listHostAddresses(hosts).every((addresses) => addresses.length > 0);
  const worker = owners.find((at) => hosts[at]?.role === 'worker');
  if (worker !== undefined) {
    const why =
      `Forbidden: Host ${hosts[worker]?.hostname ?? ''} has role 'worker' and has the rendezvousIP assigned to ` +
      'it. The rendezvousIP must be assigned to a control plane host.';
    return [report(`hosts[${worker}].role`, why)];
  }
  if (owners.length > 0 || hosts.length === 0 || !isStatic) return [];
  return [
    report('rendezvousIP', invalid(text, 'no host has it, and every host has static addresses')),
  ];
}

const ROLES = ['master', 'arbiter', 'worker'] as const;

/** A host of a role, and its pool in install-config, in the words of openshift-install. */
const WORDS = {
  master: { host: 'master', pool: 'ControlPlane' },
  arbiter: { host: 'arbiter', pool: 'Arbiter' },
  worker: { host: 'worker', pool: 'Compute' },
} as const;

type Counts = Readonly<Record<AgentRole, number>>;

/** Hosts without a role become masters, then arbiters, then workers. */
function countHosts(hosts: Hosts, wanted: Counts): Counts {
  const found: Record<AgentRole, number> = { master: 0, arbiter: 0, worker: 0 };
  const roles = hosts.map((host) => host?.role ?? '');
  for (const role of roles) if (role in found) found[role as AgentRole]++;
  for (let unset = roles.filter((each) => each === '').length; unset > 0; unset--) {
    const free = (['master', 'arbiter'] as const).find((each) => found[each] < wanted[each]);
    found[free ?? 'worker']++;
  }
  return found;
}

/** Installation starts when exactly as many hosts are ready as the cluster has nodes. */
export function checkCounts(
  report: ReportProblem,
  hosts: Hosts,
  wanted: Counts,
): readonly DocumentProblem[] {
  const found = countHosts(hosts, wanted);
  const code = 'validation.sufficient-masters-count';
  return ROLES.filter((role) => found[role] > wanted[role]).map((role) => {
    const { host, pool } = WORDS[role];
    const why =
      `the number of ${host} hosts defined (${found[role]}) exceeds the configured ${pool} replicas ` +
      `(${wanted[role]})`;
    return report('hosts', why, { code });
  });
}

/** Hosts that are not listed have to come by DHCP; a list that lacks some rarely means it. */
export function warnOfCounts(
  report: ReportProblem,
  hosts: Hosts,
  wanted: Counts,
): readonly DocumentProblem[] {
  if (hosts.length === 0) return [];
  const found = countHosts(hosts, wanted);
  return ROLES.filter((role) => found[role] < wanted[role]).map((role) => {
    const { host, pool } = WORDS[role];
    if (found[role] === 0) {
      return report('hosts', `no ${host} hosts are defined: ${wanted[role]} must come by DHCP`);
    }
    return report(
      'hosts',
      `not enough ${host} hosts defined (${found[role]}) to support all the configured ${pool} replicas ` +
        `(${wanted[role]})`,
    );
  });
}
