import { append } from '../../base/lists.ts';
import { formatFinding, type NetworkTool, planNetwork } from '../../nmstate/index.ts';
import { parseMacAddress } from '../../base/mac-address.ts';
import { isIP } from 'node:net';
import { SealiftError } from '../../base/errors.ts';
import { sleep } from '../../base/wait.ts';
import { IGNITION_VERSION, readGivenIgnition } from '../../ignition/index.ts';
import { readTrustBundle, warnOfBundle } from '../../keys/index.ts';
import { joinProblem } from '../../base/text/words.ts';
import { explainUnusable } from '../../openshift/agent/unusable.ts';
import { explainPullSecretFault, readPullSecret, type AuthFault } from '../../registry/index.ts';
import {
  explainUnparsed,
  parseDocument,
  readYamlTokens,
  YamlExcess,
} from '../../shape/parse-text.ts';
import { ApiFailure } from '../openapi.ts';
import type {
  InfraEnv,
  InfraEnvParams,
  InfraEnvSettings,
  KernelArgument,
  StaticNetwork,
} from './infra-env.ts';

/* Owns the rules of an InfraEnv's settings. */

type PullSecretRules = {
  /** Start of messages about the pull secret. */
  readonly prefix?: string;
  /** Registries that each pull secret must name. */
  readonly registries: readonly string[];
};

/** The only type of image that this service has. */
export const IMAGE_TYPE = 'disconnected-iso';

/**
 * Refuses settings that no image can be made from.
 *
 * @returns warnings of settings that were probably not intended, each with its field
 * @throws ApiFailure 400
 */
export function checkSettings(params: InfraEnvParams, rules: PullSecretRules): readonly string[] {
  const { image_type: type = IMAGE_TYPE, pull_secret: secret } = params;
  checkRendezvous(type, params.rendezvous_ip ?? '');
  if (type !== IMAGE_TYPE) {
    throw bad(`image type ${type} is not supported: this service has only ${IMAGE_TYPE}`);
  }
  if (secret !== undefined) checkPullSecret(secret, rules);
  checkKeys(params.ssh_authorized_key);
  checkNtp(params);
  for (const argument of params.kernel_arguments ?? []) checkKernelArgument(argument);
  checkHosts(params.static_network_config ?? []);
  checkProxy(params.proxy);
  return [
    ...checkTrustBundle(params.additional_trust_bundle),
    ...checkOverride(params.ignition_config_override),
  ];
}

/** Largest stored InfraEnv in bytes: the networks of some hundred hosts. */
const SIZE_LIMIT = 512 << 10;

/** Limits the sum of successive changes. @throws ApiFailure 413 */
export function checkSize(infraEnv: InfraEnv): void {
  const size = Buffer.byteLength(JSON.stringify(infraEnv) + infraEnv.pull_secret.reveal());
  if (size <= SIZE_LIMIT) return;
  throw new ApiFailure(413, `the InfraEnv has ${size} bytes, but may have at most ${SIZE_LIMIT}`);
}

/** Lists the servers of `ntp_sources`, or the additional ones if it is empty. */
export function listNtpSources({
  ntp_sources: sources,
  additional_ntp_sources: additional,
}: {
  readonly ntp_sources?: string | null | undefined;
  readonly additional_ntp_sources?: string | null | undefined;
}): readonly string[] {
  const text = isGiven(sources) ? sources : (additional ?? '');
  return text
    .split(',')
    .map((source) => source.trim())
    .filter((source) => source !== '');
}

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
  for (const [index, network] of networks.entries()) {
    const checked = await checkNetwork(network, index, tool);
    values += checked.count;
    append(warnings, checked.warnings);
    if (values > MOST_VALUES) {
      throw refuse('static_network_config', `has more than ${MOST_VALUES} values`);
    }
    await sleep(0, new AbortController().signal); // other requests are answered in between
  }
  return warnings;
}

function checkRendezvous(type: string, address: string): void {
  if (address === '') return;
  if (type !== IMAGE_TYPE) {
    throw bad('RendezvousIP is only supported for disconnected ISO infra-envs');
  }
  if (isIP(address) !== 0) return;
  throw bad(`Invalid rendezvous IP: ${address} (must be a valid IPv4 or IPv6 address)`);
}

const bad = (reason: string): ApiFailure => new ApiFailure(400, reason);

/** Checks a pull secret, in assisted-service's words. Messages quote only the names of registries. */
function checkPullSecret(text: string, { prefix = '', registries }: PullSecretRules): void {
  const read = readPullSecret(text);
  const why = explainPullSecretFault(read, FAULTS);
  if (why !== undefined) throw bad(`${prefix}pull secret ${why}`);
  const { entries } = read;
  for (const { registry, fault } of entries) {
    if (fault !== undefined) throw bad(`${prefix}invalid pull secret: ${AUTH[fault](registry)}`);
  }
  const missing = registries.find((each) =>
    namesOf(each).every((name) => entries.every(({ registry }) => registry !== name)),
  );
  if (missing === undefined) return;
  throw bad(`${prefix}pull secret must contain auth for "${missing}"`);
}

const FAULTS = {
  'empty': 'must be a well-formed JSON',
  'not-json': 'must be a well-formed JSON',
  'not-an-object': 'must be a well-formed JSON',
  'no-auths': "must contain 'auths' JSON-object field",
  'no-entries': "must contain 'auths' JSON-object field",
  'auths-not-an-object': "must contain 'auths' JSON-object field",
} as const;

const AUTH: Readonly<Record<AuthFault, (registry: string) => string>> = {
  'absent': (registry) => `'auth' field of "${registry}" is absent but should be a string`,
  'empty': (registry) => `'auth' for ${registry} is not in 'user:password' format`,
  'not-a-text': (registry) => `'auth' field of "${registry}" is not a text but should be a string`,
  'not-base64': (registry) => `'auth' field of "${registry}" is not base64-encoded`,
  'not-a-pair': (registry) => `'auth' for ${registry} is not in 'user:password' format`,
};

/** Names of a registry: Docker's clients use their own name for Docker Hub. */
const namesOf = (registry: string): readonly string[] =>
  registry === 'docker.io' ? [registry, 'https://index.docker.io/v1/'] : [registry];

function checkKeys(keys: string | null | undefined): void {
  if ((keys ?? '').trim() === '') return;
  const why = explainUnusable.sshKeys(keys ?? '');
  if (why !== undefined) throw bad(`SSH key is not valid: ${why}`);
}

function checkNtp({
  ntp_sources: sources,
  additional_ntp_sources: additional,
}: InfraEnvSettings): void {
  if (isGiven(sources) && isGiven(additional)) {
    throw bad('ntp_sources and additional_ntp_sources are mutually exclusive');
  }
  const wrong = listNtpSources({ ntp_sources: sources, additional_ntp_sources: additional }).find(
    (source) => explainUnusable.timeServer(source) !== undefined,
  );
  if (wrong !== undefined) throw bad(`Invalid NTP source: ${wrong}`);
}

const isGiven = (text: string | null | undefined): text is string =>
  text !== undefined && text !== null && text !== '';

function checkKernelArgument({ operation, value }: KernelArgument): void {
  if (operation !== 'append') {
    throw bad(`Only kernel argument operation append is supported.  Got ${operation}`);
  }
  if (value === '' || /[\0\n\r]/.test(value))
    throw bad('kernel argument is empty or has line breaks');
}

function checkHosts(hosts: readonly StaticNetwork[]): void {
  const macs = new Set<string>();
  for (const [index, host] of hosts.entries()) {
    checkHost(host, index);
    for (const { mac_address = '' } of host.mac_interface_map ?? []) {
      const mac = foldMac(mac_address);
      if (macs.has(mac)) throw bad(`MAC ${mac} belongs to two hosts`);
      macs.add(mac);
    }
  }
}

/** Another form of a MAC address is the same address. */
const foldMac = (text: string): string => parseMacAddress(text) ?? text.toLowerCase();

function checkHost({ mac_interface_map: map = [] }: StaticNetwork, host: number): void {
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

function checkProxy(proxy: InfraEnvSettings['proxy']): void {
  for (const name of ['http_proxy', 'https_proxy'] as const) {
    const text = proxy?.[name] ?? '';
    const why = text === '' ? undefined : explainUnusable.proxy(text);
    if (why !== undefined) throw bad(joinProblem(name, why));
  }
  const why = explainUnusable.noProxy(proxy?.no_proxy ?? '');
  if (why !== undefined) throw bad(joinProblem('no_proxy', why));
}

function checkTrustBundle(bundle: string | null | undefined): readonly string[] {
  if (!isGiven(bundle)) return [];
  const why = explainUnusable.trustBundle(bundle);
  if (why !== undefined) throw bad(joinProblem('additional_trust_bundle', why));
  return warnOfBundle(readTrustBundle(bundle)).map((each) => `additional_trust_bundle: ${each}`);
}

/** Checks an override against Ignition 3.1 and 3.2, the versions that assisted-service accepts. */
function checkOverride(override: string | null | undefined): readonly string[] {
  if (!isGiven(override)) return [];
  try {
    return readGivenIgnition(override, 'ignition_config_override', IGNITION_VERSION).warnings;
  } catch (error) {
    if (!(error instanceof SealiftError)) throw error;
    const problem =
      error.code === 'ignition.version' ? 'unsupported config version' : 'config is not valid';
    throw bad(`error parsing ignition: ${problem}`);
  }
}

const refuse = (field: string, problem: string): ApiFailure =>
  new ApiFailure(400, `${field} ${problem}`);

/** Checks the network of one host, and counts its values. */
async function checkNetwork(
  { network_yaml: networkConfig = '', mac_interface_map: map = [] }: StaticNetwork,
  index: number,
  tool: NetworkTool | undefined,
): Promise<{ readonly count: number; readonly warnings: readonly string[] }> {
  const field = `static_network_config[${index}].network_yaml`;
  if (networkConfig.trim() === '') throw refuse(field, 'is empty');
  const count = countValues(parseNetwork(networkConfig, field), field);
  const interfaces = map.map(({ mac_address: macAddress = '', logical_nic_name: name = '' }) => ({
    macAddress,
    name,
  }));
  const { signal } = new AbortController();
  const { verdict } = await planNetwork({ networkConfig, interfaces }, { tool, signal });
  const [problem] = verdict.problems;
  if (problem) {
    const hint = problem.hint === undefined ? '' : `; ${problem.hint}`;
    throw refuse(field, `cannot be used: ${formatFinding(problem)}${hint}`);
  }
  return { count, warnings: verdict.warnings.map((each) => formatFinding(each, field)) };
}

const MOST_LEXEMES = 30_000;

function parseNetwork(text: string, field: string): unknown {
  try {
    const tokens = readYamlTokens(text, { most: MOST_LEXEMES });
    while (tokens.next().done !== true);
  } catch (error) {
    if (!(error instanceof YamlExcess)) throw error;
    throw refuse(field, `is too large: ${error.message}`);
  }
  const document = parseDocument(text, { prettyErrors: false });
  const [error] = document.errors;
  if (error) throw refuse(field, `is not YAML: ${explainUnparsed(text, error)}`);
  try {
    return document.toJS() as unknown;
  } catch (cause) {
    // The library finds some errors only now; they have no code, and may quote a name.
    if (!(cause instanceof Error)) throw cause;
    throw refuse(field, 'has aliases or merge keys that cannot be resolved');
  }
}

const MOST_VALUES_OF_HOST = 5000;

/** Deepest nesting; nmstate uses ten levels. */
const MOST_NESTED = 32;

/** Counts values; an alias counts as the values that it refers to. */
function countValues(value: unknown, field: string): number {
  let count = 0;
  const visit = (each: unknown, depth: number): void => {
    if (++count > MOST_VALUES_OF_HOST) {
      throw refuse(field, `has more than ${MOST_VALUES_OF_HOST} values`);
    }
    if (typeof each !== 'object' || each === null) return;
    if (depth === MOST_NESTED)
      throw refuse(field, `is nested more than ${MOST_NESTED} levels deep`);
    for (const member of Object.values(each)) visit(member, depth + 1);
  };
  visit(value, 0);
  return count;
}
