import type { DocumentProblem } from '../../base/errors.ts';
import { parseAddress, parseCidr, type Family } from '../../base/ip-address.ts';
import type { SeedCluster } from '../../openshift/installation/seed.ts';
import { type ReportProblem, required } from '../../shape/report.ts';
import type { WrittenInstallConfig } from '../documents.ts';
import { readProxy } from './install-config.ts';
import { listMachineNetworks, readsOneNetwork } from './networks.ts';

/*
 * Owns what a node compares with the cluster of its seed before it becomes the cluster of its site (lifecycle-agent:
 * `lca-cli post-pivot`). It stops at the first difference.
 */

/** @param seed absent if it is not known */
export function checkSeed(
  report: ReportProblem,
  written: WrittenInstallConfig,
  seed: SeedCluster | undefined,
): readonly DocumentProblem[] {
  if (!seed) return [];
  return [...compareProxy(report, written, seed), ...compareNetworks(report, written, seed)];
}

function compareProxy(
  report: ReportProblem,
  written: WrittenInstallConfig,
  seed: SeedCluster,
): readonly DocumentProblem[] {
  const hasProxy = readProxy(written.proxy) !== undefined;
  if (hasProxy === seed.hasProxy) return [];
  const problem = hasProxy
    ? 'the seed was made without a proxy, so the node stops if its site has one'
    : required('the seed was made with a proxy, so the node stops if its site has none');
  return [report('proxy', problem, { hint: 'correct the proxy, or use another seed' })];
}

/**
 * The node finds as many addresses as it has machine networks. Both must be those of the seed: as many, and at
 * each place of the same family. Nodes before 4.20 do not compare them.
 */
function compareNetworks(
  report: ReportProblem,
  { networking }: WrittenInstallConfig,
  { version, nodeAddresses, machineNetworks }: SeedCluster,
): readonly DocumentProblem[] {
  if (readsOneNetwork({ seedVersion: version })) return [];
  const own = listMachineNetworks(networking);
  const [first] = own;
  const families = own.map(({ cidr }) => cidr?.family);
  // A network that cannot be read is another problem, and one that is missing as well.
  if (!first || families.includes(undefined)) return [];
  const wanted = [
    ['address', 'addresses', nodeAddresses.map((text) => parseAddress(text)?.family)],
    ['machine network', 'machine networks', machineNetworks.map((text) => parseCidr(text)?.family)],
  ] as const;
  const differs = wanted.find(
    ([, , of]) => of.length > 0 && of.join() !== families.join() && !of.includes(undefined),
  );
  if (!differs) return [];
  const [one, many, of] = differs;
  const count = `${of.length} ${of.length === 1 ? one : many} (${nameAll(of)})`;
  const problem = `the seed has ${count}, so the node stops if its site has ${own.length} (${nameAll(families)})`;
  return [
    report(first.path, problem, { hint: 'write as many networks, in the same order of families' }),
  ];
}

const nameAll = (families: readonly (Family | undefined)[]): string =>
  families.map((family) => `IPv${family ?? 4}`).join(', ');
