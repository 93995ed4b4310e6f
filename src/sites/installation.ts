import { basename, dirname, resolve, join } from 'node:path';
import { readFileIfPresent } from '../base/disk/files.ts';
import { ConfigError, ConfigProblems, type DocumentProblem } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import { Secret } from '../base/secret.ts';
import { rememberSecret } from '../base/text/redact.ts';
import { readConfigText } from '../config/load.ts';
import { formatNetworkConfig } from '../nmstate/index.ts';
import type { DigestSource, InstallationProxy } from '../openshift/installation/mirrors.ts';
import {
  readAlongSchema,
  listKeys,
  readSchema,
  SCHEMA,
  checkSchema,
} from '../shape/json-schema.ts';
import type { Report } from '../shape/report.ts';
import type { Plain } from '../shape/shape.ts';
import { resolveReferences, type ReferenceSource, PUBLIC_KEYS } from './documents.ts';
import {
  type InstallationConfig,
  checkInstallationRules,
  warnOfInstallation,
} from './installation-rules.ts';
import { checkNetworkConfig, warnOfNetworkConfig } from './rules/network-config.ts';

/*
 * Owns the reading of image-based-installation-config.yaml: its references, defaults and checks,
 * and post.sh next to it.
 */

export type ReadOptions = {
  /** The file's name in problems. */
  readonly shownAs?: string;
  /**
   * Environment in which `env:NAME` is looked up; `file:PATH` begins at the folder of the
   * configuration.
   */
  readonly env?: NodeJS.ProcessEnv;
  /** Describes the fault of a network configuration in its normal form, if there is one. */
  readonly judgeNetwork?: (text: string) => Promise<string | undefined>;
  /** Receives warnings of values that are allowed but rarely intended. */
  readonly warn?: (warning: DocumentProblem) => void;
};

/** File name that openshift-install uses. */
export const INSTALLATION_CONFIG_NAME = 'image-based-installation-config.yaml';

/**
 * Decides by the `kind` of the text, else by the file's name: openshift-install does not require
 * `kind`.
 */
export const isInstallationConfig = (path: string, text: string): boolean =>
  /^kind:[ \t]*["']?ImageBasedInstallationConfig\b/m.test(text) ||
  (basename(path) === INSTALLATION_CONFIG_NAME &&
    !/^kind:[ \t]*["']?ApplianceConfig\b/m.test(text));

/**
 * Reads, checks and completes an image-based-installation-config.yaml.
 *
 * @throws ConfigProblems `config.problems` with all of them; ConfigError `config.missing`,
 * `config.unreadable`, `config.too-large`
 */
export async function readInstallationConfig(
  path: string,
  { shownAs = path, env = {}, judgeNetwork, warn }: ReadOptions = {},
): Promise<InstallationConfig> {
  const text = readConfigText(path);
  const source = { directory: dirname(resolve(path)), env };
  const { networkConfig } = checkInstallationConfig(text, shownAs, { source }).config;
  const verdict = networkConfig === undefined ? undefined : await judgeNetwork?.(networkConfig);
  const { config, problems, warnings } = checkInstallationConfig(text, shownAs, {
    source,
    ...withoutUndefined({ verdict }),
  });
  if (problems.length > 0) throw new ConfigProblems(shownAs, problems);
  for (const warning of warnings) warn?.(warning);
  return config;
}

type Circumstances = {
  /** Absent if references are not followed. */
  readonly source?: ReferenceSource;
  /** Fault that `judgeNetwork` found in the network configuration. */
  readonly verdict?: string;
};

/** Checks a text; if there are problems, the configuration is only a guess. */
export function checkInstallationConfig(
  text: string,
  file: string,
  { source, verdict }: Circumstances = {},
): {
  readonly config: InstallationConfig;
  readonly problems: readonly DocumentProblem[];
  readonly warnings: readonly DocumentProblem[];
} {
  const schema = readSchema(SCHEMA.installation);
  const publicKeys = new Set([...listKeys(schema), ...PUBLIC_KEYS]);
  const written = readAlongSchema({ text, file, publicKeys }, schema);
  const { report, isBroken } = written;
  const document = source ? resolveReferences(written, source).document : written;
  const network = isBroken ? {} : judgeNetworkConfig(report, document.value);
  const config = applyDefaults(isBroken ? {} : document.value, network.text);
  const rest = isBroken
    ? []
    : [
        ...(network.problems ?? []),
        ...(verdict === undefined ? [] : [report('networkConfig', `Invalid value: ${verdict}`)]),
        ...checkSchema(written, schema, { mayLack: true }),
      ];
  const problems = [...document.problems, ...rest];
  // Rules do not judge a value that could not be read.
  const unread = new Set(problems.map(({ path }) => path));
  const judged = isBroken
    ? []
    : checkInstallationRules(config, report).filter(({ path }) => !unread.has(path));
  return {
    config,
    problems: [...problems, ...judged].toSorted((a, b) => a.line - b.line || a.column - b.column),
    warnings: [
      ...warnOfInstallation(config, report),
      ...(isBroken ? [] : warnOfNetworkConfig(report, networkOf(document.value))),
    ],
  };
}

/**
 * Reads post.sh next to a configuration, byte for byte; undefined if it does not exist.
 *
 * @throws ConfigError `installation.post-script` when it cannot be read
 */
export async function readPostScript(config: string): Promise<Uint8Array | undefined> {
  const path = join(dirname(config), 'post.sh');
  try {
    return await readFileIfPresent(path);
  } catch (cause) {
    throw new ConfigError('installation.post-script', `failed to load the post.sh file: ${path}`, {
      cause,
    });
  }
}

/** An absent value gets its default; any written value counts, including an empty text. */
function applyDefaults(value: Plain, networkConfig?: string): InstallationConfig {
  const { members, text: string, flag } = createReader(value);
  const override = string('ignitionConfigOverride', '');
  const proxy = readProxy(members['proxy']);
  const number = members['extraPartitionNumber'];
  return {
    additionalTrustBundle: string('additionalTrustBundle', ''),
    architecture: string('architecture', 'amd64') as InstallationConfig['architecture'],
    coreosInstallerArgs: texts(members['coreosInstallerArgs']),
    extraPartitionLabel: string('extraPartitionLabel', 'var-lib-containers'),
    extraPartitionNumber: typeof number === 'number' ? number : 5,
    extraPartitionStart: string('extraPartitionStart', '-40G'),
    ...(override !== '' && { ignitionConfigOverride: new Secret(override) }),
    imageDigestSources: list(members['imageDigestSources']).map(readDigestSource),
    installationDisk: string('installationDisk', ''),
    ...withoutUndefined({ networkConfig }),
    ...(proxy && { proxy }),
    pullSecret: readPullSecret(string('pullSecret', '')),
    releaseRegistry: string('releaseRegistry', ''),
    seedImage: string('seedImage', ''),
    seedVersion: string('seedVersion', ''),
    shutdown: flag('shutdown'),
    skipDiskCleanup: flag('skipDiskCleanup'),
    sshKey: string('sshKey', ''),
  };
}

const networkOf = (value: Plain): Plain | undefined =>
  isObject(value) ? value['networkConfig'] : undefined;

function judgeNetworkConfig(
  report: Report,
  value: Plain,
): { readonly text?: string; readonly problems?: readonly DocumentProblem[] } {
  const network = networkOf(value);
  if (!isObject(network)) return {};
  return { text: formatNetworkConfig(network), problems: checkNetworkConfig(report, network) };
}

function readProxy(value: Plain | undefined): InstallationProxy | undefined {
  if (!isObject(value)) return undefined;
  const { text } = createReader(value);
  const entries = (['httpProxy', 'httpsProxy', 'noProxy'] as const)
    .map((name) => [name, text(name, '')] as const)
    .filter(([, member]) => member !== '');
  return Object.fromEntries(entries);
}

function readDigestSource(value: Plain): DigestSource {
  const { members, text } = createReader(value);
  const sourcePolicy = text('sourcePolicy', '');
  return {
    source: text('source', ''),
    mirrors: texts(members['mirrors']),
    ...(sourcePolicy !== '' && { sourcePolicy }),
  };
}

/** Reads a value as absent if its type is not the key's: the schema has already reported it. */
function createReader(value: Plain): {
  readonly members: Readonly<Record<string, Plain>>;
  readonly text: (name: string, otherwise: string) => string;
  readonly flag: (name: string) => boolean;
} {
  const members: Readonly<Record<string, Plain>> = isObject(value) ? value : {};
  return {
    members,
    text(name, otherwise) {
      const member = members[name];
      return typeof member === 'string' ? member : otherwise;
    },
    flag: (name) => members[name] === true,
  };
}

const list = (value: Plain | undefined): readonly Plain[] =>
  Array.isArray(value) ? (value as readonly Plain[]) : [];

/** Items of other types stay as empty texts, so that the others keep their places. */
const texts = (value: Plain | undefined): readonly string[] =>
  list(value).map((item) => (typeof item === 'string' ? item : ''));

const isObject = (value: Plain | undefined): value is Readonly<Record<string, Plain>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function readPullSecret(text: string): Secret {
  rememberSecret(text);
  return new Secret(text);
}
