import { LONGEST_HOST_NAME } from '../../base/host-name.ts';
import { MAC_FORM, parseMacAddress } from '../../base/mac-address.ts';
import { decodeUserText } from '../../base/text/utf8.ts';
import { Option, type Command } from 'commander';
import { UsageError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { isReference, readSecretSource } from '../../config/secrets.ts';
import { explainBundle, readSshKeys } from '../../keys/index.ts';
import { OF_PAYLOADS } from '../../openshift/agent/payload-definitions.ts';
import type { GivenImage } from '../../media/customize/config-image.ts';
import { type HostNetwork, hostOfFile } from '../../nmstate/index.ts';
import { readResourceValues } from '../../openshift/agent/read-resources.ts';
import type { Definitions } from '../../openshift/agent/resource-members.ts';
import {
  parseResources,
  readHostNetworks,
  refuseResource,
} from '../../openshift/agent/resources.ts';
import type { CustomValues } from '../../openshift/agent/values.ts';
import type { CliHost } from '../host.ts';
import { addTo } from '../options.ts';
import { writeMessage } from '../terminal/output.ts';
import { checkValues, listDoubts, refuseGiven } from './customize-judge.ts';
import {
  addInstallerOptions,
  INSTALLER_FLAGS,
  type InstallerOptions,
  readFile,
  readInstallerValues,
} from './customize-installer.ts';

/* This file owns the values that `customize` writes: their options, and how they are read. */

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
  readonly site?: string;
};

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
    )
    .option(
      '--site <image>',
      'configuration image of the site (agentconfig.noarch.iso), for hosts with one drive',
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
  site: '--site',
  ...INSTALLER_FLAGS,
};

const NAMES = Object.keys(FLAGS) as readonly (keyof ValueOptions)[];

/** Lists the options that are given, as on the command line: `--ssh-key`. */
export const listGiven = (options: ValueOptions): readonly string[] =>
  NAMES.flatMap((name) => (options[name] === undefined ? [] : [FLAGS[name]]));

/** Finds the definitions of kinds in the payload of the ISO that gets the values. */
type FindDefinitions = (kinds: readonly string[]) => Promise<Definitions>;

/** Reads the values that the options mean; values of single options win over those of custom resources. */
export async function readCustomizeValues(
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
  checkValues(given, host.redaction);
  for (const doubt of listDoubts(given)) writeMessage(host, `warning: ${doubt}\n`);
  return given;
}

/** Reads the configuration image of `--site`. */
export const readConfigImage = ({ site }: ValueOptions, host: CliHost): GivenImage | undefined =>
  site === undefined ? undefined : { name: site, bytes: readFile(site, host) };

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

/** The words of a command are not secret: other users see them in the list of processes. */
function readPullSecret(text: string, host: CliHost): string {
  if (isReference(text)) return readSecret('usage.pull-secret', text, host);
  throw new UsageError('usage.pull-secret', '--pull-secret is neither file:PATH nor env:NAME', {
    hint: 'put the pull secret into a file, and name it as file:PATH',
  });
}

function readKeys(text: string, host: CliHost): readonly string[] {
  const { keys, problem } = readSshKeys(readSecret('usage.ssh-key', text, host));
  refuseGiven('usage.ssh-key', 'SSH key', problem);
  return keys.map(({ line }) => line);
}

/** Judges the bytes first: a file in DER is not a text. */
function readBundle(path: string, host: CliHost): string {
  const bytes = readFile(path, host);
  refuseGiven('usage.trust-bundle', path, explainBundle(bytes));
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
