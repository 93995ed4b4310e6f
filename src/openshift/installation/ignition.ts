import { ConfigError, SealiftError } from '../../base/errors.ts';
import { formatCanonicalJson } from '../../base/text/json.ts';
import {
  decodeFileContent,
  type File,
  IGNITION_VERSION,
  type IgnitionConfig,
  mergeConfigs,
  readGivenIgnition,
  textFile,
  type Unit,
} from '../../ignition/index.ts';
import { decodeJson, GO_RULES, ifFaultless } from '../../shape/decode.ts';
import { LEFT_OUT, partial, TEXT } from '../../shape/shape.ts';
import { NODE_REGISTRY_PORT, renderNodeRegistry, renderText } from '../node/registry.ts';
import {
  formatInstallationRegistriesConf,
  formatLocalRegistriesConf,
  type LocalRegistry,
  type InstallationSettings,
} from './mirrors.ts';

export type InstallationInput = {
  readonly settings: InstallationSettings;
  /** JSON text; it is on the medium. */
  readonly pullSecret: string;
  /** Ignition JSON of specification 3.0 to 3.2. */
  readonly ignitionConfigOverride?: string;
  /** Script that runs once on the live system when the seed is in place. */
  readonly postScript?: Uint8Array;
  /** Present if the medium carries images. */
  readonly localRegistry?: LocalRegistry;
};

const INSTALL = 'install-rhcos-and-restore-seed';

const OVERRIDE = 'ignitionConfigOverride';

/** Variables of the install unit name these two files. */
const IBI_CONFIGURATION = '/var/tmp/ibi-configuration.json';
const PULL_SECRET = '/var/tmp/pull-secret.json';

/** True if a config installs a seed image: it has the configuration that `lca-cli ibi` reads. */
export const hasInstallation = ({ storage, systemd }: IgnitionConfig): boolean =>
  storage?.files?.some(({ path }) => path === IBI_CONFIGURATION) === true &&
  systemd?.units?.some(({ name }) => name === `${INSTALL}.service`) === true;

/** False if a part that installs is empty, masked or disabled. */
export function canInstall(config: IgnitionConfig): boolean {
  const files = (config.storage?.files ?? []).filter(({ path }) => OWN_FILES.includes(path));
  const units = (config.systemd?.units ?? []).filter(({ name }) => OWN_UNITS.includes(name));
  const isFilled = files.every((file) => decodeFileContent(file)?.length !== 0);
  return hasInstallation(config) && isFilled && units.every(isActive);
}

const isActive = ({ contents, enabled, mask }: Unit): boolean =>
  contents !== undefined && contents !== '' && enabled !== false && mask !== true;

/** The path of a part that installs, or the name of a unit. */
export function findChangedPart(before: IgnitionConfig, after: IgnitionConfig): string | undefined {
  const [old, now] = [before, after].map(listParts);
  return [...(old ?? [])].find(([name, text]) => now?.get(name) !== text)?.[0];
}

const listParts = ({ storage, systemd }: IgnitionConfig): ReadonlyMap<string, string> =>
  new Map([
    ...(storage?.files ?? [])
      .filter(({ path }) => OWN_FILES.includes(path))
      .map((file) => [file.path, formatCanonicalJson(file)] as const),
    ...(systemd?.units ?? [])
      .filter(({ name }) => OWN_UNITS.includes(name))
      .map((unit) => [unit.name, formatCanonicalJson(unit)] as const),
  ]);

const NETWORK_CONFIG = '/var/tmp/network-config.yaml';
const NETWORK_SERVICE = 'network-config.service';
const OWN_FILES: readonly string[] = [
  `/usr/local/bin/${INSTALL}.sh`,
  IBI_CONFIGURATION,
  NETWORK_CONFIG,
  PULL_SECRET,
];
const OWN_UNITS: readonly string[] = [`${INSTALL}.service`, NETWORK_SERVICE];

const REGISTRIES_CONF = '/etc/containers/registries.conf';
const LOCAL_REGISTRIES_CONF = `${REGISTRIES_CONF}.d/50-local-registry.conf`;

/**
 * The user's override is merged onto registries, trusted certificates, post.sh and core's key; the parts that
 * install are added afterwards, so that no override changes them.
 *
 * @throws ConfigError `installation.override` if the override is not an Ignition config
 */
export function renderInstallationIgnition(input: InstallationInput): IgnitionConfig {
  const { settings, ignitionConfigOverride } = input;
  const base: IgnitionConfig = {
    ignition: { version: IGNITION_VERSION },
    passwd: { users: [{ name: 'core', sshAuthorizedKeys: [settings.sshKey] }] },
    storage: { files: renderFirstFiles(input) },
  };
  const merged =
    ignitionConfigOverride === undefined
      ? base
      : mergeConfigs(base, parseOverride(ignitionConfigOverride));
  const registry = renderRegistry(input);
  return replaceParts(
    merged,
    [...renderFixedFiles(input), ...registry.files],
    [...renderUnits(input), ...registry.units],
  );
}

/** Checked separately, so that an error is reported at its place in the user's document. */
function parseOverride(text: string): IgnitionConfig {
  try {
    return readGivenIgnition(text, OVERRIDE, IGNITION_VERSION).config;
  } catch (cause) {
    if (!(cause instanceof SealiftError)) throw cause;
    throw new ConfigError(
      'installation.override',
      'failed to override ignition config: failed to parse ignition config override',
      { cause },
    );
  }
}

function renderFirstFiles(input: InstallationInput): readonly File[] {
  const { settings, postScript, localRegistry } = input;
  const { additionalTrustBundle, imageDigestSources } = settings;
  const registries = formatInstallationRegistriesConf(imageDigestSources);
  return [
    ...(registries === undefined ? [] : [textFile(REGISTRIES_CONF, registries, 0o644)]),
    ...(localRegistry === undefined
      ? []
      : [
          textFile(
            LOCAL_REGISTRIES_CONF,
            formatLocalRegistriesConf(imageDigestSources, localRegistry.mirrors),
            0o644,
          ),
        ]),
    ...(additionalTrustBundle === ''
      ? []
      : [
          textFile(
            '/etc/pki/ca-trust/source/anchors/additional-trust-bundle.pem',
            additionalTrustBundle,
            0o600,
          ),
        ]),
    ...(postScript === undefined ? [] : [textFile('/var/tmp/post.sh', postScript, 0o755)]),
  ];
}

function renderFixedFiles({ settings, pullSecret }: InstallationInput): readonly File[] {
  return [
    textFile(`/usr/local/bin/${INSTALL}.sh`, renderText(`ibi/${INSTALL}.sh`), 0o555),
    textFile(IBI_CONFIGURATION, `${formatIbiConfiguration(settings)}\n`, 0o600),
    textFile(NETWORK_CONFIG, `${settings.networkConfig ?? ''}\n`, 0o600),
    textFile(PULL_SECRET, `${pullSecret}\n`, 0o600),
  ];
}

/** The registry on the medium is run like the registry of a live ISO. */
const renderRegistry = ({
  localRegistry,
}: InstallationInput): { readonly files: readonly File[]; readonly units: readonly Unit[] } =>
  localRegistry === undefined
    ? { files: [], units: [] }
    : renderNodeRegistry({ image: localRegistry.image, interactive: true, stage: 'live' });

function renderUnits({ settings, localRegistry }: InstallationInput): readonly Unit[] {
  const environment = formatEnvironment({
    SEED_IMAGE: settings.seedImage,
    IBI_CONFIGURATION_FILE: IBI_CONFIGURATION,
    PULL_SECRET_FILE: PULL_SECRET,
    ...bothSpellings('HTTP_PROXY', settings.proxy?.httpProxy),
    ...bothSpellings('HTTPS_PROXY', settings.proxy?.httpsProxy),
    ...bothSpellings('NO_PROXY', settings.proxy?.noProxy),
  });
  return [
    {
      name: `${INSTALL}.service`,
      contents: renderText(`ibi/${INSTALL}.service`, { environment }),
      enabled: true,
      ...(localRegistry && {
        dropins: [
          {
            name: 'local-registry.conf',
            contents: renderText('ibi/local-registry.conf', { port: String(NODE_REGISTRY_PORT) }),
          },
        ],
      }),
    },
    {
      name: NETWORK_SERVICE,
      contents: renderText(`ibi/${NETWORK_SERVICE}`),
      ...(settings.networkConfig !== undefined && { enabled: true }),
    },
  ];
}

function bothSpellings(name: string, value: string | undefined): Readonly<Record<string, string>> {
  if (value === undefined || value === '') return {};
  return { [name]: value, [name.toLowerCase()]: value };
}

/** systemd.exec(5) Environment=: quoted, C escapes inside, `%` doubled: it begins specifiers. */
function formatEnvironment(variables: Readonly<Record<string, string>>): string {
  return Object.entries(variables)
    .map(([name, value]) => `Environment="${name}=${escape(value)}"`)
    .join('\n');
}

const escape = (value: string): string =>
  value
    .replaceAll(/["\\]/g, '\\$&')
    .replaceAll('%', '%%')
    .replaceAll(
      // eslint-disable-next-line no-control-regex -- a line break would end the assignment
      /[\0-\x1f\x7f]/g,
      (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`,
    );

/** Removes the parts of an override at our paths or under the names of our units. */
function replaceParts(
  config: IgnitionConfig,
  files: readonly File[],
  units: readonly Unit[],
): IgnitionConfig {
  const paths = new Set(files.map(({ path }) => path));
  const names = new Set(units.map(({ name }) => name));
  const { storage = {}, systemd } = config;
  const isOther = ({ path }: { readonly path: string }): boolean => !paths.has(path);
  return {
    ...config,
    storage: {
      ...storage,
      ...(storage.directories && { directories: storage.directories.filter(isOther) }),
      ...(storage.links && { links: storage.links.filter(isOther) }),
      files: [...(storage.files ?? []).filter(isOther), ...files],
    },
    systemd: {
      ...systemd,
      units: [...(systemd?.units ?? []).filter(({ name }) => !names.has(name)), ...units],
    },
  };
}

/** Finds the reference of the seed in the config of an installation ISO. */
export function findSeedImage({ storage }: IgnitionConfig): string | undefined {
  const file = storage?.files?.find(({ path }) => path === IBI_CONFIGURATION);
  const text = file && decodeFileContent(file)?.toString('utf8');
  return text === undefined
    ? undefined
    : ifFaultless(decodeJson(IBI_SETTINGS, text, GO_RULES))?.seedImage;
}

const IBI_SETTINGS = partial({ seedImage: TEXT }, LEFT_OUT);

/** Read by `lca-cli ibi`: compact JSON, members in its order, none that is empty, 0 or false. */
function formatIbiConfiguration(settings: InstallationSettings): string {
  const { installationDisk, seedImage, seedVersion, coreosInstallerArgs } = settings;
  return JSON.stringify({
    extraPartitionLabel: settings.extraPartitionLabel || undefined,
    extraPartitionNumber: settings.extraPartitionNumber || undefined,
    extraPartitionStart: settings.extraPartitionStart || undefined,
    installationDisk,
    releaseRegistry: settings.releaseRegistry || undefined,
    seedImage,
    seedVersion,
    shutdown: settings.shutdown || undefined,
    skipDiskCleanup: settings.skipDiskCleanup || undefined,
    coreosInstallerArgs: coreosInstallerArgs.length > 0 ? coreosInstallerArgs : undefined,
  });
}
