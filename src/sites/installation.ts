import { basename, dirname, resolve, join } from 'node:path';
import { readFileIfPresent } from '../base/disk/files.ts';
import { ConfigError, ConfigProblems, type DocumentProblem } from '../base/errors.ts';
import { objectOrEmpty, withoutUndefined } from '../base/lists.ts';
import { Secret } from '../base/secret.ts';
import type { Redaction } from '../base/text/redact.ts';
import { readConfigText } from '../config/load.ts';
import { formatNetworkConfig } from '../nmstate/index.ts';
import { checkConfiguration, listKeys, readConfiguration } from '../shape/configuration.ts';
import { decode, YAML_RULES } from '../shape/decode.ts';
import type { ReportProblem } from '../shape/report.ts';
import type { Plain } from '../shape/shape.ts';
import { resolveReferences, type ReferenceSource, PUBLIC_KEYS } from './documents.ts';
import {
  type InstallationConfig,
  checkInstallationRules,
  warnOfInstallation,
} from './installation-rules.ts';
import { INSTALLATION } from './installation-shape.ts';
import { checkNetworkConfig, warnOfNetworkConfig } from './rules/network-config.ts';

/* Owns the reading of image-based-installation-config.yaml and of post.sh next to it. */

export type InstallationOptions = {
  readonly shownAs?: string;
  /**
   * Environment in which `env:NAME` is looked up; `file:PATH` begins at the folder of the
   * configuration.
   */
  readonly env?: NodeJS.ProcessEnv;
  /** Masks the pull secret. */
  readonly redaction: Redaction;
  /** Describes the fault of a network configuration in its normal form, if there is one. */
  readonly judgeNetwork?: (text: string) => Promise<string | undefined>;
  readonly warn?: (warning: DocumentProblem) => void;
};

/** File name that openshift-install uses. */
export const INSTALLATION_CONFIG_NAME = 'image-based-installation-config.yaml';

/** Decides by the `kind` of the text, else by the file's name: openshift-install does not require `kind`. */
export const isInstallationConfig = (path: string, text: string): boolean =>
  /^kind:[ \t]*["']?ImageBasedInstallationConfig\b/m.test(text) ||
  (basename(path) === INSTALLATION_CONFIG_NAME &&
    !/^kind:[ \t]*["']?ApplianceConfig\b/m.test(text));

/**
 * @throws ConfigProblems `config.problems` with all problems; ConfigError `config.missing`,
 * `config.unreadable`, `config.too-large`
 */
export async function readInstallationConfig(
  path: string,
  { shownAs = path, env = {}, redaction, judgeNetwork, warn }: InstallationOptions,
): Promise<InstallationConfig> {
  const text = readConfigText(path);
  const source = { directory: dirname(resolve(path)), env, redaction };
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
  const publicKeys = new Set([...listKeys(INSTALLATION), ...PUBLIC_KEYS]);
  const written = readConfiguration({ text, file, publicKeys }, INSTALLATION);
  const { report, isBroken } = written;
  const document = source ? resolveReferences(written, source).document : written;
  const network = isBroken ? {} : judgeNetworkConfig(report, document.value);
  const config = applyDefaults(isBroken ? {} : document.value, network.text);
  const rest = isBroken
    ? []
    : [
        ...(network.problems ?? []),
        ...(verdict === undefined ? [] : [report('networkConfig', `Invalid value: ${verdict}`)]),
        ...checkConfiguration(written, INSTALLATION),
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

/** An absent or wrong value gets its default; any written text counts, also an empty one. */
function applyDefaults(written: Plain, networkConfig?: string): InstallationConfig {
  const { value } = decode(INSTALLATION, objectOrEmpty(written), YAML_RULES);
  if (value === undefined) throw new Error('a member without a default was refused');
  const { ignitionConfigOverride: override = '', proxy } = value;
  return {
    additionalTrustBundle: value.additionalTrustBundle ?? '',
    architecture: value.architecture as InstallationConfig['architecture'],
    coreosInstallerArgs: value.coreosInstallerArgs ?? [],
    extraPartitionLabel: value.extraPartitionLabel,
    extraPartitionNumber: value.extraPartitionNumber,
    extraPartitionStart: value.extraPartitionStart,
    ...(override !== '' && { ignitionConfigOverride: new Secret(override) }),
    imageDigestSources: (value.imageDigestSources ?? []).map(
      ({ source = '', mirrors = [], sourcePolicy = '' }) => ({
        source,
        mirrors,
        ...(sourcePolicy !== '' && { sourcePolicy }),
      }),
    ),
    installationDisk: value.installationDisk,
    ...withoutUndefined({ networkConfig }),
    ...(proxy && {
      proxy: Object.fromEntries(Object.entries(proxy).filter(([, text]) => text !== '')),
    }),
    pullSecret: new Secret(value.pullSecret),
    releaseRegistry: value.releaseRegistry ?? '',
    seedImage: value.seedImage,
    seedVersion: value.seedVersion,
    shutdown: value.shutdown,
    skipDiskCleanup: value.skipDiskCleanup,
    sshKey: value.sshKey ?? '',
  };
}

const networkOf = (value: Plain): Plain | undefined =>
  isObject(value) ? value['networkConfig'] : undefined;

function judgeNetworkConfig(
  report: ReportProblem,
  value: Plain,
): { readonly text?: string; readonly problems?: readonly DocumentProblem[] } {
  const network = networkOf(value);
  if (!isObject(network)) return {};
  return { text: formatNetworkConfig(network), problems: checkNetworkConfig(report, network) };
}

const isObject = (value: Plain | undefined): value is Readonly<Record<string, Plain>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
