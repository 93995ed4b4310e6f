import { append } from '../../base/lists.ts';
import { parseMacAddress } from '../../base/mac-address.ts';
import { sleep } from '../../base/wait.ts';
import {
  compareHosts,
  type ComparedHost,
  type NetworkFinding,
  formatFindings,
  type NetworkTool,
  planNetwork,
  readNetworkText,
} from '../../nmstate/index.ts';
import { ApiFailure } from '../openapi.ts';
import type { StaticNetwork } from './infra-env.ts';

/* Owns the rules of the hosts of an InfraEnv and of their networks. */

/**
 * Largest number of values in an InfraEnv, which is planned in one go: about a second. A host has some 15
 * values.
 */
const MOST_VALUES = 25_000;

const MOST_INTERFACES = 4096;

/**
 * Refuses networks that no profiles can be made from, and too many of them. The reason may end up in logs,
 * so it does not quote a text that is not YAML, which may hold passwords.
 *
 * @returns warnings, each with its field
 * @throws ApiFailure 400 that names the field
 */
export async function checkNetworks(
  networks: readonly StaticNetwork[] = [],
  tool?: NetworkTool,
): Promise<readonly string[]> {
  const interfaces = networks.flatMap(({ mac_interface_map: map = [] }) => map).length;
  if (interfaces > MOST_INTERFACES) {
    throw refuse('static_network_config', `has more than ${MOST_INTERFACES} interfaces`);
  }
  let values = 0;
  const warnings: string[] = [];
  const hosts: CheckedHost[] = [];
  for (const [index, network] of networks.entries()) {
    const { count, host, warnings: own } = await checkNetwork(network, index, tool);
    values += count;
    append(warnings, own);
    hosts.push(host);
    if (values > MOST_VALUES) {
      throw refuse('static_network_config', `has more than ${MOST_VALUES} values`);
    }
    await sleep(0, new AbortController().signal); // other requests are answered in between
  }
  return [...warnings, ...checkShared(hosts)];
}

/** Refuses hosts that cannot be told apart. @returns warnings */
function checkShared(hosts: readonly CheckedHost[]): readonly string[] {
  return compareHosts(hosts).flatMap(({ problems: [problem], warnings }, index) => {
    const host = hosts[index];
    if (!host) return [];
    if (problem?.path === '') throw bad(problem.problem);
    if (problem) throw unusable(fieldOf(index), host.lineOf, [problem]);
    return formatFindings(warnings, host.placeOf);
  });
}

/** Refuses hosts without a map that names each interface once. */
export function checkMaps(hosts: readonly StaticNetwork[]): void {
  for (const [index, host] of hosts.entries()) checkMap(host, index);
}

/** Another form of a MAC address is the same address. */
const foldMac = (text: string): string => parseMacAddress(text) ?? text.toLowerCase();

function checkMap({ mac_interface_map: map = [] }: StaticNetwork, host: number): void {
  if (map.length === 0) throw bad(`at least one interface for host ${host} must be provided`);
  for (const [at, entry] of map.entries()) {
    for (const member of ['mac_address', 'logical_nic_name'] as const) {
      if ((entry[member] ?? '') !== '') continue;
      const place = `static_network_config.${host}.mac_interface_map.${at}.${member}`;
      throw bad(`${place} in body is required`);
    }
  }
  const macs = new Set(map.map(({ mac_address: mac = '' }) => foldMac(mac)));
  const names = new Set(map.map(({ logical_nic_name: name = '' }) => name));
  if (macs.size < map.length || names.size < map.length) {
    throw bad(`MACs and Interfaces for host ${host} must be unique`);
  }
}

const bad = (reason: string): ApiFailure => new ApiFailure(400, reason);

const refuse = (field: string, problem: string): ApiFailure => bad(`${field} ${problem}`);

const fieldOf = (index: number): string => `static_network_config[${index}].network_yaml`;

type CheckedHost = ComparedHost & {
  /** `line 3`; empty if a value is in no line of the document. */
  readonly lineOf: (path: string) => string;
};

/** Refuses a document by its problems, each with line and interface. */
const unusable = (
  field: string,
  lineOf: CheckedHost['lineOf'],
  problems: readonly NetworkFinding[],
): ApiFailure => {
  const hint = problems[0]?.hint === undefined ? '' : `; ${problems[0].hint}`;
  return refuse(field, `cannot be used: ${formatFindings(problems, lineOf).join('; ')}${hint}`);
};

/** Checks the network of one host, and counts its values. */
async function checkNetwork(
  { network_yaml: networkConfig = '', mac_interface_map: map = [] }: StaticNetwork,
  index: number,
  tool: NetworkTool | undefined,
): Promise<{
  readonly count: number;
  readonly warnings: readonly string[];
  readonly host: CheckedHost;
}> {
  const field = fieldOf(index);
  if (networkConfig.trim() === '') throw refuse(field, 'is empty');
  const count = { values: 0, most: MOST_VALUES_OF_HOST };
  const text = readNetworkText(networkConfig, count);
  if (text.problem !== undefined) throw refuse(field, text.problem);
  const interfaces = map.map(({ mac_address: macAddress = '', logical_nic_name: name = '' }) => ({
    macAddress,
    name,
  }));
  const { signal } = new AbortController();
  const { verdict, state } = await planNetwork({ networkConfig, interfaces }, { tool, signal });
  const lineOf = (path: string): string => {
    const line = text.lineOf(path);
    return line === undefined ? '' : `line ${line}`;
  };
  const placeOf = (path: string): string =>
    [field, lineOf(path)].filter((part) => part !== '').join(': ');
  if (verdict.problems.length > 0) throw unusable(field, lineOf, verdict.problems);
  const warnings = formatFindings(verdict.warnings, placeOf);
  return { count: count.values, warnings, host: { interfaces, state, placeOf, lineOf } };
}

const MOST_VALUES_OF_HOST = 5000;
