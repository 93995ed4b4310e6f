import { append } from '../../base/lists.ts';
import { parseMacAddress } from '../../base/mac-address.ts';
import { sleep } from '../../base/wait.ts';
import {
  compareHosts,
  type ComparedHost,
  type NetworkFinding,
  formatFinding,
  formatFindings,
  type NetworkTool,
  planNetwork,
  readNetworkText,
  type TextPlace,
} from '../../nmstate/index.ts';
import { ApiFailure, type FieldProblem } from '../openapi.ts';
import type { StaticNetwork } from './infra-env.ts';

/* Owns the rules of the hosts of an InfraEnv and of their networks. */

/** Most values in an InfraEnv, which is planned in one go: about a second. A host has some 15 values. */
const MOST_VALUES = 25_000;

const MOST_INTERFACES = 4096;

/** The reason why a host is refused, as an answer has it, and its problems one by one, for a form. */
export type NetworkRefusal = {
  readonly reason: string;
  readonly problems: readonly FieldProblem[];
};

export type NetworksVerdict = {
  /** In the order of the hosts. */
  readonly refusals: readonly NetworkRefusal[];
  /** Warnings, each with its field. */
  readonly warnings: readonly string[];
};

/**
 * Refuses networks that no profiles can be made from, and too many of them; returns warnings, each with its
 * field. The reason may end up in logs, so it does not quote a text that is not YAML, which may hold
 * passwords.
 */
export async function checkNetworks(
  networks?: readonly StaticNetwork[],
  tool?: NetworkTool,
): Promise<readonly string[]> {
  const { refusals, warnings } = await judgeNetworks(networks, tool);
  const reasons = [...judgeMaps(networks ?? []), ...refusals].map(({ reason }) => reason);
  if (reasons.length > 0) throw refuseAll([...new Set(reasons)]);
  return warnings;
}

/** Judges networks by the same rules, and names the problems of all hosts. */
export async function judgeNetworks(
  networks: readonly StaticNetwork[] = [],
  tool?: NetworkTool,
): Promise<NetworksVerdict> {
  const interfaces = networks.flatMap(({ mac_interface_map: map = [] }) => map).length;
  if (interfaces > MOST_INTERFACES) return tooMany(`${MOST_INTERFACES} interfaces`);
  let values = 0;
  const warnings: string[] = [];
  const hosts: (CheckedHost | NetworkRefusal)[] = [];
  for (const [index, network] of networks.entries()) {
    const judged = await judgeNetwork(network, index, tool);
    values += judged.count;
    append(warnings, judged.warnings);
    hosts.push(judged.host);
    if (values > MOST_VALUES) return tooMany(`${MOST_VALUES} values`);
    await sleep(0, new AbortController().signal); // other requests are answered in between
  }
  const refusals = hosts.filter((host) => 'reason' in host);
  return refusals.length > 0
    ? { refusals, warnings }
    : compareAll(
        hosts.filter((host) => 'state' in host),
        warnings,
      );
}

function tooMany(what: string): NetworksVerdict {
  const field = 'static_network_config';
  return { refusals: [refuse(field, { problem: `has more than ${what}` })], warnings: [] };
}

/** Refuses hosts that cannot be told apart. */
function compareAll(hosts: readonly CheckedHost[], own: readonly string[]): NetworksVerdict {
  const refusals: NetworkRefusal[] = [];
  const warnings = [...own];
  for (const [index, { problems, warnings: more }] of compareHosts(hosts).entries()) {
    const host = hosts[index];
    const [problem] = problems;
    if (!host) continue;
    append(warnings, formatFindings(more, host.placeOf));
    if (problem) refusals.push(refuseShared(host, problem));
  }
  return { refusals, warnings };
}

function refuseShared(
  { index, textPlaceOf }: CheckedHost,
  problem: NetworkFinding,
): NetworkRefusal {
  if (problem.path !== '') return unusable(index, textPlaceOf, [problem]);
  const field = `static_network_config[${index}].mac_interface_map`;
  return { reason: problem.problem, problems: [{ field, message: problem.problem }] };
}

/** Judges whether the map of each host names each interface once. */
export const judgeMaps = (hosts: readonly StaticNetwork[]): readonly NetworkRefusal[] =>
  hosts.flatMap(({ mac_interface_map: map = [] }, host) => judgeMap(map, host));

type MacMap = NonNullable<StaticNetwork['mac_interface_map']>;

function judgeMap(map: MacMap, host: number): readonly NetworkRefusal[] {
  const field = `static_network_config[${host}].mac_interface_map`;
  if (map.length === 0) {
    const reason = `at least one interface for host ${host} must be provided`;
    return [{ reason, problems: [{ field, message: 'the host needs an interface' }] }];
  }
  const repeated = `MACs and Interfaces for host ${host} must be unique`;
  const macs = new Set<string>();
  const names = new Set<string>();
  return map.flatMap(({ mac_address: mac = '', logical_nic_name: name = '' }, at) => {
    const place = `static_network_config.${host}.mac_interface_map.${at}`;
    const refuseEntry = (member: string, reason: string, message: string): NetworkRefusal => ({
      reason,
      problems: [{ field: `${field}[${at}].${member}`, message }],
    });
    const judge = (member: string, value: string, seen: Set<string>): readonly NetworkRefusal[] => {
      if (value === '')
        return [refuseEntry(member, `${place}.${member} in body is required`, 'it is empty')];
      if (!seen.has(value)) return (seen.add(value), []);
      return [refuseEntry(member, repeated, 'the host has it twice')];
    };
    return [...judge('mac_address', foldMac(mac), macs), ...judge('logical_nic_name', name, names)];
  });
}

/** Another form of a MAC address is the same address. */
const foldMac = (text: string): string => parseMacAddress(text) ?? text.toLowerCase();

/** Refuses with several reasons, as assisted-service lists them. */
const refuseAll = (reasons: readonly string[]): ApiFailure => {
  const count = reasons.length === 1 ? '1 error' : `${reasons.length} errors`;
  return new ApiFailure(
    400,
    `${count} occurred:\n${reasons.map((each) => `\t* ${each}\n`).join('')}\n`,
  );
};

type Fault = Partial<TextPlace> & { readonly problem: string };

const refuse = (field: string, fault: Fault, reason = fault.problem): NetworkRefusal => {
  const { problem: message, ...place } = fault;
  return { reason: `${field} ${reason}`, problems: [{ field, ...place, message }] };
};

const fieldOf = (index: number): string => `static_network_config[${index}].network_yaml`;

type PlaceInText = (path: string) => TextPlace | undefined;

type CheckedHost = ComparedHost & { readonly index: number; readonly textPlaceOf: PlaceInText };

/** Refuses a document by its problems, each with line and interface. */
function unusable(
  index: number,
  placeOf: PlaceInText,
  problems: readonly NetworkFinding[],
): NetworkRefusal {
  const field = fieldOf(index);
  const hint = problems[0]?.hint === undefined ? '' : `; ${problems[0].hint}`;
  const told = formatFindings(problems, (path) => formatLine(placeOf(path)));
  return {
    reason: `${beginOf(index, problems)}${field} cannot be used: ${told.join('; ')}${hint}`,
    problems: problems.map((problem) => ({
      field,
      ...placeOf(problem.path),
      path: problem.path,
      message: formatFinding(problem) + (problem.hint === undefined ? '' : `; ${problem.hint}`),
    })),
  };
}

/** The beginning of a reason about the document of a host, in assisted-service's words. */
function beginOf(index: number, problems: readonly NetworkFinding[] = []): string {
  const [unmapped] = problems;
  return unmapped?.isUnmapped
    ? `mac-interface mapping for interface ${unmapped.owner ?? ''} is missing and not a physical interface: `
    : `failed to validate network yaml for host ${index}, `;
}

/** `line 3`; empty if a value is in no line of the document. */
const formatLine = (place: TextPlace | undefined): string =>
  place === undefined ? '' : `line ${place.line}`;

type JudgedHost = {
  readonly count: number;
  readonly warnings: readonly string[];
  readonly host: CheckedHost | NetworkRefusal;
};

/** Judges the network of one host, and counts its values. */
async function judgeNetwork(
  { network_yaml: networkConfig = '', mac_interface_map: map = [] }: StaticNetwork,
  index: number,
  tool: NetworkTool | undefined,
): Promise<JudgedHost> {
  const field = fieldOf(index);
  const count = { values: 0, most: MOST_VALUES_OF_HOST };
  const refused = (host: NetworkRefusal): JudgedHost => ({
    count: count.values,
    warnings: [],
    host,
  });
  const refuseText = (given: Fault, why?: string): JudgedHost => {
    const { reason, problems } = refuse(field, given, why);
    return refused({ reason: beginOf(index) + reason, problems });
  };
  if (networkConfig.trim() === '') return refuseText({ problem: 'is empty' });
  const { problem, fault, placeOf: textPlaceOf } = readNetworkText(networkConfig, count);
  if (fault) return refuseText(fault, problem);
  const interfaces = map.map(({ mac_address: macAddress = '', logical_nic_name: name = '' }) => ({
    macAddress,
    name,
  }));
  const { signal } = new AbortController();
  const { verdict, state } = await planNetwork({ networkConfig, interfaces }, { tool, signal });
  const { problems } = verdict;
  if (problems.length > 0) return refused(unusable(index, textPlaceOf, problems));
  const placeOf = (path: string): string =>
    [field, formatLine(textPlaceOf(path))].filter((part) => part !== '').join(': ');
  const warnings = formatFindings(verdict.warnings, placeOf);
  return {
    count: count.values,
    warnings,
    host: { index, interfaces, state, placeOf, textPlaceOf },
  };
}

const MOST_VALUES_OF_HOST = 5000;
