import { LONGEST_HOST_NAME } from '../../base/host-name.ts';
import { MAC_FORM, parseMacAddress } from '../../base/mac-address.ts';
import { decodeUserText } from '../../base/text/utf8.ts';
import { Option, type Command } from 'commander';
import { UsageError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { rememberSecret } from '../../base/text/redact.ts';
import { joinProblem } from '../../base/text/words.ts';
import { checkPullSecret, isReference, readSecretSource } from '../../config/secrets.ts';
import { IGNITION_VERSION, readGivenIgnition } from '../../ignition/index.ts';
import { explainBundle, readSshKeys, readTrustBundle, warnOfBundle } from '../../keys/index.ts';
import { OF_PAYLOADS } from '../../openshift/agent/payload-definitions.ts';
import { type HostNetwork, hostOfFile } from '../../nmstate/index.ts';
import { readResourceValues } from '../../openshift/agent/read-resources.ts';
import type { Definitions } from '../../openshift/agent/resource-members.ts';
import {
  parseResources,
  readHostNetworks,
  refuseResource,
} from '../../openshift/agent/resources.ts';
import { explainUnusable } from '../../openshift/agent/unusable.ts';
import type { CustomValues, ProxyValues } from '../../openshift/agent/values.ts';
import type { CliHost } from '../host.ts';
import { addTo } from '../options.ts';
import { writeMessage } from '../terminal/output.ts';
import {
  addInstallerOptions,
  INSTALLER_FLAGS,
  type InstallerOptions,
  readFile,
  readInstallerValues,
} from './customize-installer.ts';

/* This file owns the values that `customize` writes: their options, and how they are read and refused. */

export type ValueOptions = InstallerOptions & {
  readonly sshKey?: readonly string[];
  readonly pullSecret?: string;
  readonly infraenv?: readonly string[];
  readonly nmstate?: readonly string[];
  readonly rendezvousIp?: string;
  readonly proxy?: string;
  readonly noProxy?: string;
  readonly ntp?: readonly string[];
  readonly ignitionOverride?: string;
  readonly trustBundle?: string;
  readonly hostname?: readonly string[];
};

/** Adds an option for each value. */
export const addValueOptions = (command: Command): Command =>
  addInstallerOptions(addSiteOptions(command));

const addSiteOptions = (command: Command): Command =>
  command
    .option(
      '--ssh-key <key>',
      'SSH key of the user core: a key, file:PATH or env:NAME; may be repeated',
      addTo,
    )
    .option('--pull-secret <secret>', 'pull secret of the hosts: file:PATH or env:NAME')
    .option(
      '--infraenv <file>',
      'InfraEnv, NMStateConfigs, Secret, ClusterImageSet and ConfigMaps; may be repeated',
      addTo,
    )
    .option('--nmstate <file>', 'NMStateConfigs, or one nmstate document; may be repeated', addTo)
    .option('--rendezvous-ip <address>', 'IP address of the host that installs the cluster')
    .option('--proxy <url>', 'proxy for http and https')
    .addOption(createNoProxyOption())
    .option('--ntp <host>', 'time server; may be repeated', addTo)
    .option('--ignition-override <file>', 'Ignition config that is merged over the others')
    .option('--trust-bundle <file>', 'PEM certificates that the hosts trust')
    .option(
      '--hostname <mac=name>',
      'name of the host with this MAC address; may be repeated',
      addTo,
    );

/** Creates `--no-proxy`, which commander would take for the absence of `--proxy`. */
function createNoProxyOption(): Option {
  const option = new Option(
    '--no-proxy <list>',
    'hosts and networks to reach without the proxy, separated by commas',
  );
  option.negate = false;
  return option;
}

const FLAGS: Readonly<Record<keyof ValueOptions, string>> = {
  sshKey: '--ssh-key',
  pullSecret: '--pull-secret',
  infraenv: '--infraenv',
  nmstate: '--nmstate',
  rendezvousIp: '--rendezvous-ip',
  proxy: '--proxy',
  noProxy: '--no-proxy',
  ntp: '--ntp',
  ignitionOverride: '--ignition-override',
  trustBundle: '--trust-bundle',
  hostname: '--hostname',
  ...INSTALLER_FLAGS,
};

const NAMES = Object.keys(FLAGS) as readonly (keyof ValueOptions)[];

/** Lists the options that are given, as on the command line: `--ssh-key`. */
export const listGiven = (options: ValueOptions): readonly string[] =>
  NAMES.flatMap((name) => (options[name] === undefined ? [] : [FLAGS[name]]));

/** Finds the definitions of kinds in the payload of the ISO that gets the values. */
type FindDefinitions = (kinds: readonly string[]) => Promise<Definitions>;

/**
 * Reads the values that the options mean; values of single options win over those of custom
 * resources.
 *
 * @throws UsageError `usage.ssh-key`, `usage.pull-secret` and the like; errors of reading the
 * files
 */
export async function readValues(
  options: ValueOptions,
  host: CliHost,
  findDefinitions: FindDefinitions,
): Promise<CustomValues> {
  refuseEmpty(options);
  const files = (options.infraenv ?? []).map((path) => ({ path, text: readText(path, host) }));
  const kinds = OF_PAYLOADS.filter((kind) => files.some(({ text }) => text.includes(kind)));
  const ofPayload = kinds.length === 0 ? {} : await findDefinitions(kinds);
  const { values, warnings } = readResourceValues(
    files.flatMap(({ path, text }) => parseResources(text, path, ofPayload)),
    { hasPullSecret: options.pullSecret !== undefined },
  );
  for (const warning of warnings) writeMessage(host, `warning: ${warning}\n`);
  const given = {
    ...values,
    ...readAccess(options, host),
    ...readNetwork(options, values, host),
    ...readInstallerValues(options, values, host),
  };
  checkValues(given);
  for (const doubt of listDoubts(given)) writeMessage(host, `warning: ${doubt}\n`);
  return given;
}

/** Lists what hosts accept, and was probably not intended. */
function listDoubts(values: CustomValues): readonly string[] {
  const { trustBundle = '', ignitionOverride, installer = {} } = values;
  const { liveIgnition = [], destIgnition = [] } = installer;
  return [
    ...warnOfBundle(readTrustBundle(trustBundle)).map((doubt) => `trust bundle: ${doubt}`),
    ...(ignitionOverride === undefined
      ? []
      : readGivenIgnition(ignitionOverride, 'the Ignition override', IGNITION_VERSION).warnings),
    ...[...liveIgnition, ...destIgnition].flatMap(
      ({ name, bytes }) => readGivenIgnition(decodeUserText(bytes, name), name).warnings,
    ),
  ];
}

/** Refuses empty values: an unset variable of a script would leave the ISO without the value. */
function refuseEmpty(options: ValueOptions): void {
  const empty = NAMES.find((name) =>
    [options[name] ?? []].flat().some((text) => text.trim() === ''),
  );
  if (empty === undefined) return;
  throw new UsageError('usage.empty-value', `${FLAGS[empty]} is empty`, {
    hint: 'leave the option out, or check the variable that its value comes from',
  });
}

const readAccess = (
  { sshKey, pullSecret, ignitionOverride, trustBundle }: ValueOptions,
  host: CliHost,
): CustomValues =>
  withoutUndefined({
    sshKeys: sshKey?.flatMap((text) => readKeys(text, host)),
    pullSecret: pullSecret && readPullSecret(pullSecret, host),
    ignitionOverride: ignitionOverride && readText(ignitionOverride, host),
    trustBundle: trustBundle && readBundle(trustBundle, host),
  });

function readNetwork(options: ValueOptions, values: CustomValues, host: CliHost): CustomValues {
  const { nmstate = [], rendezvousIp, ntp, hostname } = options;
  const hosts = nmstate.flatMap((path) => readNetworks(readText(path, host), path));
  return {
    ...withoutUndefined({
      rendezvousIp,
      proxy: readProxy(options, values),
      ntpSources: ntp,
      exclusiveNtpSources: ntp && [],
      hostnames: hostname?.map(parseHostname),
    }),
    ...(hosts.length > 0 && { hosts: [...(values.hosts ?? []), ...hosts] }),
  };
}

const readText = (path: string, host: CliHost): string =>
  decodeUserText(readFile(path, host), path);

/**
 * Reads networks: NMStateConfigs, which have the MAC address of each interface, or one document of
 * nmstate, which may have them.
 */
function readNetworks(text: string, path: string): readonly HostNetwork[] {
  if (/^kind:/m.test(text)) {
    const hosts = readHostNetworks(parseResources(text, path));
    if (hosts.length > 0) return hosts;
    throw refuseResource(`${path} has no NMStateConfig`, 'give other resources with --infraenv');
  }
  return [hostOfFile(text, path)];
}

function readSecret(code: string, text: string, { cwd, env }: CliHost): string {
  const reading = readSecretSource(text, { directory: cwd, env });
  if (reading.kind === 'value') return reading.value;
  const hint = reading.kind === 'absent' ? { hint: reading.hint } : {};
  throw new UsageError(code, reading.problem, hint);
}

/**
 * Reads a pull secret. The words of a command are not secret: other users see them in the list of
 * processes.
 */
function readPullSecret(text: string, host: CliHost): string {
  if (isReference(text)) return readSecret('usage.pull-secret', text, host);
  throw new UsageError('usage.pull-secret', '--pull-secret is neither file:PATH nor env:NAME', {
    hint: 'put the pull secret into a file, and name it as file:PATH',
  });
}

function readKeys(text: string, host: CliHost): readonly string[] {
  const { keys, problem } = readSshKeys(readSecret('usage.ssh-key', text, host));
  refuse('usage.ssh-key', 'SSH key', problem);
  return keys.map(({ line }) => line);
}

/** Judges the bytes first: a file in DER is not a text. */
function readBundle(path: string, host: CliHost): string {
  const bytes = readFile(path, host);
  refuse('usage.trust-bundle', path, explainBundle(bytes));
  return decodeUserText(bytes, path);
}

function readProxy({ proxy, noProxy }: ValueOptions, values: CustomValues): CustomValues['proxy'] {
  if (proxy === undefined && noProxy === undefined) return undefined;
  const addresses = withoutUndefined({ httpProxy: proxy, httpsProxy: proxy, noProxy });
  return { ...values.proxy, ...addresses };
}

function parseHostname(text: string): { readonly macAddress: string; readonly name: string } {
  const [, mac = '', name = ''] = /^([^=]*)=(.*)$/.exec(text) ?? [];
  const macAddress = parseMacAddress(mac);
  if (macAddress !== undefined) return { macAddress, name };
  throw new UsageError('usage.hostname', `--hostname is "${text}"`, {
    expected: `MAC=NAME: the MAC as ${MAC_FORM}; the name in lower case, at most ${LONGEST_HOST_NAME} characters`,
    found: text,
  });
}

/**
 * Refuses values that no host can use.
 *
 * @throws UsageError `usage.ssh-key`, `usage.pull-secret`, `usage.proxy`, `usage.hostname`, `usage.ntp`
 */
function checkValues(values: CustomValues): void {
  checkAccess(values);
  checkNetwork(values);
}

function checkAccess({ sshKeys = [], pullSecret }: CustomValues): void {
  // One reading of all lines: comment lines of an InfraEnv stay, as the installer keeps them.
  if (sshKeys.length > 0)
    refuse('usage.ssh-key', 'SSH key', explainUnusable.sshKeys(sshKeys.join('\n')));
  if (pullSecret !== undefined) {
    rememberSecret(pullSecret);
    refuse(
      'usage.pull-secret',
      'pull secret',
      checkPullSecret(pullSecret, { isForHosts: true })[0],
    );
  }
}

function checkNetwork({ proxy = {}, hostnames = [], ...values }: CustomValues): void {
  const { ntpSources = [], exclusiveNtpSources = [] } = values;
  checkProxy(proxy);
  checkHostnames(hostnames);
  for (const source of [...ntpSources, ...exclusiveNtpSources])
    refuse('usage.ntp', 'time server', explainUnusable.timeServer(source));
}

/** Checks that each host has one name, and each name one host. */
function checkHostnames(hostnames: NonNullable<CustomValues['hostnames']>): void {
  const macs = hostnames.map(({ macAddress }) => macAddress.toLowerCase());
  const twice = macs.find((mac, at) => macs.indexOf(mac) !== at);
  if (twice !== undefined) throw hostname(`${twice} has two names`, 'give each host one name');
  const names = hostnames.map(({ name }) => name);
  const shared = names.find((name, at) => names.indexOf(name) !== at);
  if (shared !== undefined)
    throw hostname(`"${shared}" is the name of two hosts`, 'give each host its own name');
  for (const name of names)
    refuse('usage.hostname', `--hostname "${name}"`, explainUnusable.hostname(name));
}

const hostname = (problem: string, hint: string): UsageError =>
  new UsageError('usage.hostname', `--hostname: ${problem}`, { hint });

function checkProxy({ noProxy = '', httpProxy = '', httpsProxy = '' }: ProxyValues): void {
  for (const address of [httpProxy, httpsProxy])
    if (address !== '') refuse('usage.proxy', 'proxy', explainUnusable.proxy(address));
  refuse('usage.proxy', 'hosts without proxy', explainUnusable.noProxy(noProxy));
  if (noProxy !== '' && httpProxy + httpsProxy === '')
    refuse('usage.proxy', 'proxy', 'there are hosts without proxy, but there is no proxy');
}

function refuse(code: string, what: string, why: string | undefined): void {
  if (why !== undefined) throw new UsageError(code, joinProblem(what, why));
}
