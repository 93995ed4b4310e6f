import { ConfigError } from '../../base/errors.ts';
import {
  decodeFileContent,
  type File,
  formatValidIgnition,
  IGNITION_VERSION,
  type IgnitionConfig,
  isSameConfig,
  mergeConfigs,
  parseIgnition,
  readGivenIgnition,
  parseResolved,
  resolveConfig,
  textFile,
} from '../../ignition/index.ts';
import { formatCanonicalJson } from '../../base/text/json.ts';
import { renderEnabledUnit } from '../node/registry.ts';
import {
  configureInfraEnv,
  configurePullSecret,
  formatProxy,
  formatPullSecret,
  formatSshKeys,
  WITHOUT_EFFECT,
} from './agent-manifests.ts';
import { CHRONY_SETTINGS, formatTimeServers } from './chrony.ts';
import { configureInstall } from './install-overrides.ts';
import { AGENT_CLUSTER_INSTALL, INFRA_ENV, PULL_SECRET_MANIFEST } from './live-manifest.ts';
import {
  chooseRendezvous,
  findRendezvousTemplate,
  isRendezvous,
  renderRendezvousHost,
  RENDEZVOUS,
} from './rendezvous.ts';
import { type CustomValues, HOST_NETWORKS, planHostNetworks } from './values.ts';

type Files = ReadonlyMap<string, File>;

export const CHRONY_CONFIG = '/etc/chrony.conf';
export const DOCKER_CONFIG = '/root/.docker/config.json';
export const PROXY_CONFIG = '/etc/systemd/system.conf.d/10-default-env.conf';
export const TRUST_ANCHOR = '/etc/pki/ca-trust/source/anchors/domain.crt';
export const EXTRA_MANIFESTS = '/etc/assisted/extra-manifests/';
export const HOSTNAMES = '/etc/assisted/hostnames/';
export const NETWORK_UNIT = 'pre-network-manager-config.service';

const EMPTY = '{"ignition":{"version":"3.2.0"}}';

/**
 * The Ignition config of a medium with a site's values: the only way by which the values get there, when the
 * medium is built and later. If the config belongs to the agent-based installer, the result is the text that
 * the installer writes for these values, plus the values that it has no place for.
 *
 * Same inputs, same text. No value means the config as it was. A value replaces the config's value: a list,
 * such as keys, servers or networks, as a whole; files that other values made stay. Configs that the current
 * one merges stay as they are written, unless they would win over a value: then all of them become one
 * config.
 *
 * @param current JSON text; undefined if the medium has no config
 * @param pristine as the medium has it without values of a site; default: the same
 * @throws ConfigError `customize.no-effect` for a value that no program on the medium reads,
 * `customize.architecture`, `customize.rendezvous-ip`, `nmstate.unsupported`, `nmstate.malformed`, `nmstate.interfaces`;
 * IntegrityError `ignition.malformed`, `ignition.version`, `ignition.invalid`
 */
export function configure(
  current: string | undefined,
  values: CustomValues,
  pristine = current,
): string {
  const config = parseIgnition(current ?? EMPTY, OF_MEDIUM);
  const merged = resolveConfig(config).config;
  const templates = listFiles(parseResolved(pristine ?? EMPTY, OF_MEDIUM)).filter(({ path }) =>
    isRendezvous(path),
  );
  const present = listFiles(dropNetworks(merged, values));
  const files = new Map([...present, ...templates].map((file) => [file.path, file]));
  requireEffect(files, values);
  const rendezvousIp = chooseRendezvous(listFiles(merged), values);
  const same = new Set(present.map((file) => formatCanonicalJson(file)));
  const changed = planFiles(files, { ...values, ...rendezvousIp }).filter(
    (file) => !same.has(formatCanonicalJson(file)),
  );
  const change = createChange(changed, values);
  const whole = change(merged);
  const kept = config === merged ? whole : change(config);
  const isKept = isSameConfig(resolveConfig(kept).config, whole);
  return formatValidIgnition(isKept ? kept : whole, 'the configured Ignition config');
}

const OF_MEDIUM = 'the Ignition config of the medium';

function createChange(
  files: readonly File[],
  values: CustomValues,
): (config: IgnitionConfig) => IgnitionConfig {
  const { ignitionOverride: text } = values;
  const override =
    text === undefined
      ? undefined
      : readGivenIgnition(text, 'the Ignition override', IGNITION_VERSION).config;
  return (config) => {
    const changed = changeFiles(dropNetworks(config, values), files);
    const own = addUnits(addSshKeys(changed, values), values);
    return override ? mergeConfigs(own, override) : own;
  };
}

const listFiles = ({ storage }: IgnitionConfig): readonly File[] => storage?.files ?? [];

/** True if a config has the services of the agent-based installer. */
export const isForAgents = (config: IgnitionConfig): boolean =>
  listFiles(config).some(({ path }) => path === INFRA_ENV);

/** A value that no program reads would look as if it had been accepted. */
function requireEffect(files: Files, values: CustomValues): void {
  const isWaiting = values.rendezvousIp === undefined || findRendezvousTemplate(files);
  const reasons = [
    ...(isWaiting
      ? []
      : [explain(['a rendezvous IP'], 'a rendezvous-host.env that waits for one')]),
    ...(files.has(INFRA_ENV) ? [] : listUnread(values)),
  ];
  if (reasons.length === 0) return;
  throw new ConfigError('customize.no-effect', reasons.join('; '), {
    hint: 'leave the value out, or use an ISO of the agent-based installer',
  });
}

function listUnread(values: CustomValues): readonly string[] {
  const { hostnames = [], manifests = [], hosts = [], releaseImage } = values;
  const members = Object.keys(values.infraEnv?.spec ?? {}).filter(
    (name) => !NOT_MISSED.includes(name),
  );
  const unread: readonly (readonly [boolean, string])[] = [
    [hostnames.length > 0, 'a host name'],
    [manifests.length > 0, 'a manifest'],
    [hosts.length > 0, 'the network of a host'],
    [releaseImage !== undefined, 'a ClusterImageSet'],
    [members.length > 0, `${members.join(', ')} of an InfraEnv`],
  ];
  const found = unread.filter(([isGiven]) => isGiven).map(([, name]) => name);
  return found.length === 0 ? [] : [explain(found, 'the services of the agent-based installer')];
}

/** Members of an InfraEnv that are not missed if no service reads them: the hub's, and those that are values too. */
const NOT_MISSED: readonly string[] = [
  ...WITHOUT_EFFECT,
  'cpuArchitecture',
  'kernelArguments',
  'nmStateConfigLabelSelector',
  'pullSecretRef',
];

const explain = (names: readonly string[], lacking: string): string =>
  `${names.join(' and ')} ${names.length === 1 ? 'has' : 'have'} no effect on this ISO: it lacks ${lacking}`;

/** In the installer's order. */
function planFiles(files: Files, values: CustomValues): readonly File[] {
  const { pullSecret, hosts = [], hostnames = [], manifests = [] } = values;
  const proxy = formatProxy(values);
  const { trustBundle, installOverrides } = values;
  return [
    ...(values.rendezvousIp === undefined ? [] : planRendezvous(files, values.rendezvousIp)),
    ...planHostNetworks(hosts),
    ...(proxy ? [textFile(PROXY_CONFIG, renderProxy(proxy), 0o600)] : []),
    ...(pullSecret === undefined
      ? []
      : [textFile(DOCKER_CONFIG, formatPullSecret(pullSecret), 0o600)]),
    ...rewrite(files.get(INFRA_ENV), (text) => configureInfraEnv(text, values)),
    ...(installOverrides === undefined
      ? []
      : rewrite(files.get(AGENT_CLUSTER_INSTALL), (text) =>
          configureInstall(text, installOverrides),
        )),
    ...rewrite(files.get(PULL_SECRET_MANIFEST), (text) => configurePullSecret(text, values)),
    ...(trustBundle === undefined ? [] : [textFile(TRUST_ANCHOR, trustBundle, 0o600)]),
    ...planTimeServers(files, values),
    ...hostnames.map(({ macAddress, name }) =>
      textFile(`${HOSTNAMES}${macAddress.toLowerCase()}`, name, 0o600),
    ),
    ...manifests.map(({ name, text }) => textFile(`${EXTRA_MANIFESTS}${name}`, text, 0o644)),
  ];
}

function planRendezvous(files: Files, address: string): readonly File[] {
  const template = findRendezvousTemplate(files);
  const text = template && decodeFileContent(template)?.toString('utf8');
  if (text === undefined) return [];
  return [textFile(RENDEZVOUS, renderRendezvousHost(text, address), template?.mode ?? 0o644)];
}

/** Agent services read the time servers in the InfraEnv; elsewhere, chrony does. Added servers come last. */
function planTimeServers(files: Files, values: CustomValues): readonly File[] {
  const { ntpSources = [], exclusiveNtpSources = [] } = values;
  if (files.has(INFRA_ENV)) return [];
  if (exclusiveNtpSources.length > 0) {
    const lines = [...formatTimeServers(exclusiveNtpSources), ...CHRONY_SETTINGS, ''];
    return [textFile(CHRONY_CONFIG, lines.join('\n'), 0o644)];
  }
  if (ntpSources.length === 0) return [];
  const { contents, ...file } = textFile(
    CHRONY_CONFIG,
    `${formatTimeServers(ntpSources).join('\n')}\n`,
    0o644,
  );
  return [{ ...file, overwrite: false, ...(contents && { append: [contents] }) }];
}

function rewrite(file: File | undefined, change: (text: string) => string): readonly File[] {
  const text = file && decodeFileContent(file)?.toString('utf8');
  return file === undefined || text === undefined
    ? []
    : [textFile(file.path, change(text), file.mode ?? 0o600)];
}

/** systemd reads `%` as the start of a specifier; the installer doubles it in addresses alone. */
export function renderProxy(proxy: Readonly<Record<string, unknown>>): string {
  const names = { httpProxy: 'HTTP_PROXY', httpsProxy: 'HTTPS_PROXY', noProxy: 'NO_PROXY' };
  const lines = Object.entries(names).flatMap(([member, name]) => {
    const value = proxy[member];
    if (typeof value !== 'string') return [];
    const text = member === 'noProxy' ? value : value.replaceAll('%', '%%');
    return [`DefaultEnvironment=${name}="${text}"\n`];
  });
  return ['[Manager]\n', ...lines].join('');
}

/** Hosts are numbered: files of earlier hosts would remain if there are fewer new ones. */
function dropNetworks(config: IgnitionConfig, { hosts = [] }: CustomValues): IgnitionConfig {
  const files = listFiles(config).filter(({ path }) => !path.startsWith(HOST_NETWORKS));
  const isSame = hosts.length === 0 || files.length === listFiles(config).length;
  return isSame ? config : { ...config, storage: { ...config.storage, files } };
}

/** New files are put in front, as the installer does for the files of a site. */
function changeFiles(config: IgnitionConfig, changed: readonly File[]): IgnitionConfig {
  if (changed.length === 0) return config;
  const files = listFiles(config);
  const known = new Set(files.map(({ path }) => path));
  const byPath = new Map(changed.map((file) => [file.path, file]));
  const added = [...byPath.values()].filter(({ path }) => !known.has(path));
  const all = [...added, ...files.map((file) => byPath.get(file.path) ?? file)];
  return { ...config, storage: { ...config.storage, files: all } };
}

function addSshKeys(config: IgnitionConfig, values: CustomValues): IgnitionConfig {
  const key = formatSshKeys(values);
  if (key === undefined) return config;
  const { users = [], ...others } = config.passwd ?? {};
  const core = users.find(({ name }) => name === 'core') ?? { name: 'core' };
  const changed = { ...core, sshAuthorizedKeys: [key] };
  const rest = users.filter(({ name }) => name !== 'core');
  return { ...config, passwd: { ...others, users: [changed, ...rest] } };
}

/** As in the installer, enabled only for profiles. Media of other makers lack the service. */
function addUnits(config: IgnitionConfig, { hosts = [] }: CustomValues): IgnitionConfig {
  if (hosts.length === 0) return config;
  const units = config.systemd?.units ?? [];
  const hasOwn = units.some(
    ({ name, contents }) => name === NETWORK_UNIT && contents !== undefined,
  );
  const all = hasOwn
    ? units.map((unit) => (unit.name === NETWORK_UNIT ? { ...unit, enabled: true } : unit))
    : [...units.filter(({ name }) => name !== NETWORK_UNIT), renderEnabledUnit(NETWORK_UNIT)];
  return { ...config, systemd: { ...config.systemd, units: all } };
}
