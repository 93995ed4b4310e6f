import { ConfigError } from '../../base/errors.ts';
import { objectOrEmpty, withoutUndefined } from '../../base/lists.ts';
import {
  decodeFileContent,
  type File,
  formatValidIgnition,
  IGNITION_VERSION,
  type IgnitionConfig,
  isSameConfig,
  mergeConfigs,
  parseIgnition,
  parseResolved,
  resolveConfig,
  textFile,
} from '../../ignition/index.ts';
import { formatCanonicalJson } from '../../base/text/json.ts';
import { parse } from '../../shape/parse-text.ts';
import { formatManifest } from '../node/manifests.ts';
import { renderEnabledUnit } from '../node/registry.ts';
import {
  type CustomValues,
  HOST_NETWORKS,
  planHostNetworks,
  renderRendezvousHost,
} from './values.ts';

type Members = Readonly<Record<string, unknown>>;

type Files = ReadonlyMap<string, File>;

/** File in which the agent services read what they register. */
export const INFRA_ENV = '/etc/assisted/manifests/infraenv.yaml';
export const PULL_SECRET_MANIFEST = '/etc/assisted/manifests/pull-secret.yaml';

export const CHRONY_CONFIG = '/etc/chrony.conf';
export const DOCKER_CONFIG = '/root/.docker/config.json';
export const PROXY_CONFIG = '/etc/systemd/system.conf.d/10-default-env.conf';
export const RENDEZVOUS = '/etc/assisted/rendezvous-host.env';
export const TRUST_ANCHOR = '/etc/pki/ca-trust/source/anchors/domain.crt';
/** Paths of folders. */
export const EXTRA_MANIFESTS = '/etc/assisted/extra-manifests/';
export const HOSTNAMES = '/etc/assisted/hostnames/';
export const NETWORK_UNIT = 'pre-network-manager-config.service';

const EMPTY = '{"ignition":{"version":"3.2.0"}}';

/**
 * The Ignition config of a medium with a site's values: the only way by which the values get
 * there, both when the medium is built with them and when it gets them later. If the config
 * belongs to the agent-based installer, the result is the text that the installer writes when it
 * is given the values itself, plus the values that it has no place for.
 *
 * Same inputs, same text. No value means the config as it was. A value replaces the config's
 * value: a list, such as keys, servers or networks, as a whole; files that other values made stay.
 * Configs that the current one merges count as parts of it. They stay as they are written, unless they would
 * win over a value: then all of them become one config.
 *
 * @param current JSON text; undefined if the medium has no config
 * @param pristine as the medium has it without values of a site; default: the same
 * @throws ConfigError `customize.no-effect` for a value that no program on the medium reads,
 * `customize.rendezvous-ip`, `nmstate.unsupported`, `nmstate.malformed`, `nmstate.interfaces`;
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
  const same = new Set(present.map((file) => formatCanonicalJson(file)));
  const changed = planFiles(files, values).filter((file) => !same.has(formatCanonicalJson(file)));
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
    text === undefined ? undefined : parseIgnition(text, 'the Ignition override', IGNITION_VERSION);
  return (config) => {
    const changed = changeFiles(dropNetworks(config, values), files);
    const own = addUnits(addSshKeys(changed, values), values);
    return override ? mergeConfigs(own, override) : own;
  };
}

const listFiles = ({ storage }: IgnitionConfig): readonly File[] => storage?.files ?? [];

/**
 * True if a config has the services of the agent-based installer, which read the files that they
 * are given.
 */
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
  const members = Object.keys(values.infraEnv?.spec ?? {}).filter((name) => !isOfHub(name));
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

/**
 * True for a member of an InfraEnv that addresses the hub which makes images; it has no meaning on
 * an image that already exists.
 */
const isOfHub = (member: string): boolean =>
  ['cpuArchitecture', 'ipxeScriptType', 'osImageVersion'].includes(member);

const explain = (names: readonly string[], lacking: string): string =>
  `${names.join(' and ')} ${names.length === 1 ? 'has' : 'have'} no effect on this ISO: it lacks ${lacking}`;

const isRendezvous = (path: string): boolean =>
  [RENDEZVOUS, `${RENDEZVOUS}.template`].includes(path);

const findRendezvousTemplate = (files: Files): File | undefined =>
  files.get(`${RENDEZVOUS}.template`) ?? files.get(RENDEZVOUS);

/** Files that are new or replace one, in the installer's order. */
function planFiles(files: Files, values: CustomValues): readonly File[] {
  const { pullSecret, rendezvousIp, hosts = [], hostnames = [], manifests = [] } = values;
  const proxy = formatProxy(values);
  const { trustBundle } = values;
  return [
    ...(rendezvousIp === undefined ? [] : planRendezvous(files, rendezvousIp)),
    ...planHostNetworks(hosts),
    ...(proxy ? [textFile(PROXY_CONFIG, renderProxy(proxy), 0o600)] : []),
    ...(pullSecret === undefined
      ? []
      : [textFile(DOCKER_CONFIG, formatPullSecret(pullSecret), 0o600)]),
    ...rewrite(files.get(INFRA_ENV), (text) => configureInfraEnv(text, values)),
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

/**
 * If the agent services exist, they read the time servers in the InfraEnv; elsewhere, chrony does.
 */
function planTimeServers(files: Files, { ntpSources = [] }: CustomValues): readonly File[] {
  if (files.has(INFRA_ENV) || ntpSources.length === 0) return [];
  const lines = [
    ...ntpSources.map((source) => `server ${source} iburst`),
    'driftfile /var/lib/chrony/drift',
    'makestep 1.0 3',
    'rtcsync',
    'logdir /var/log/chrony',
    '',
  ];
  return [textFile(CHRONY_CONFIG, lines.join('\n'), 0o644)];
}

function rewrite(file: File | undefined, change: (text: string) => string): readonly File[] {
  const text = file && decodeFileContent(file)?.toString('utf8');
  return file === undefined || text === undefined
    ? []
    : [textFile(file.path, change(text), file.mode ?? 0o600)];
}

/** systemd reads `%` as the start of a specifier; the installer doubles it in addresses alone. */
function renderProxy(proxy: Readonly<Record<string, unknown>>): string {
  const names = { httpProxy: 'HTTP_PROXY', httpsProxy: 'HTTPS_PROXY', noProxy: 'NO_PROXY' };
  const lines = Object.entries(names).flatMap(([member, name]) => {
    const value = proxy[member];
    if (typeof value !== 'string') return [];
    const text = member === 'noProxy' ? value : value.replaceAll('%', '%%');
    return [`DefaultEnvironment=${name}="${text}"\n`];
  });
  return ['[Manager]\n', ...lines].join('');
}

/**
 * Hosts are numbered: the files of earlier hosts would remain next to a smaller number of new
 * ones.
 */
function dropNetworks(config: IgnitionConfig, { hosts = [] }: CustomValues): IgnitionConfig {
  const files = listFiles(config).filter(({ path }) => !path.startsWith(HOST_NETWORKS));
  const isSame = hosts.length === 0 || files.length === listFiles(config).length;
  return isSame ? config : { ...config, storage: { ...config.storage, files } };
}

/**
 * A file replaces the file of the same path in its place; new files are put in front, as the
 * installer does for the files of a site.
 */
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

/** The installer enables the service that places the profiles only if there are some. */
function addUnits(config: IgnitionConfig, { hosts = [] }: CustomValues): IgnitionConfig {
  if (hosts.length === 0) return config;
  const units = config.systemd?.units ?? [];
  const unit = renderEnabledUnit(NETWORK_UNIT);
  const others = units.filter(({ name }) => name !== unit.name);
  return {
    ...config,
    ...withoutUndefined({ systemd: { ...config.systemd, units: [...others, unit] } }),
  };
}

/**
 * The label that leads from an InfraEnv to its NMStateConfigs; only this label distinguishes them.
 */
const NETWORK_LABELS = { 'agent-install.openshift.io/infraenv': 'appliance' };

/** The InfraEnv of the medium with the values, in the form that the installer writes. */
function configureInfraEnv(text: string, values: CustomValues): string {
  const infraEnv = objectOrEmpty(parse(text));
  const given = values.infraEnv ?? {};
  const { pullSecretRef, ...spec } = objectOrEmpty(infraEnv['spec']);
  const selector = hasHosts(values) ? { matchLabels: NETWORK_LABELS } : undefined;
  return formatManifest({
    ...infraEnv,
    metadata: { ...objectOrEmpty(infraEnv['metadata']), ...given.metadata },
    spec: {
      ...spec,
      ...withoutUndefined({
        pullSecretRef,
        sshAuthorizedKey: formatSshKeys(values),
        additionalNTPSources: values.ntpSources?.length ? values.ntpSources : undefined,
        additionalTrustBundle: values.trustBundle,
        proxy: formatProxy(values),
        nmStateConfigLabelSelector: selector,
      }),
      ...given.spec,
    },
  });
}

const hasHosts = ({ hosts = [] }: CustomValues): boolean => hosts.length > 0;

/** The keys as one text: the installer gives core one entry, regardless of its number of lines. */
const formatSshKeys = ({ sshKeys = [] }: CustomValues): string | undefined => {
  const lines = sshKeys.map((key) => key.trim()).filter((key) => key !== '');
  return lines.length === 0 ? undefined : lines.join('\n');
};

/** Present if there is a proxy: exceptions without a proxy have no meaning. */
function formatProxy({ proxy = {} }: CustomValues): Members | undefined {
  const { httpProxy = '', httpsProxy = '', noProxy = '' } = proxy;
  if (httpProxy === '' && httpsProxy === '') return undefined;
  const members = Object.entries({ httpProxy, httpsProxy, noProxy });
  return Object.fromEntries(members.filter(([, value]) => value !== ''));
}

/** The Secret of the medium with another pull secret, and the name that the InfraEnv has for it. */
function configurePullSecret(text: string, values: CustomValues): string {
  const secret = objectOrEmpty(parse(text));
  const { name } = objectOrEmpty(values.infraEnv?.spec?.['pullSecretRef']);
  const { pullSecret } = values;
  return formatManifest({
    ...secret,
    metadata: { ...objectOrEmpty(secret['metadata']), ...withoutUndefined({ name }) },
    ...(pullSecret !== undefined && {
      stringData: { '.dockerconfigjson': formatPullSecret(pullSecret) },
    }),
  });
}

/**
 * Go's encoding of the text that it read: keys sorted, two spaces, and no character that HTML
 * gives a meaning.
 */
const formatPullSecret = (text: string): string =>
  JSON.stringify(sortKeys(JSON.parse(text)), null, 2).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, member]) => [key, sortKeys(member)]));
}
