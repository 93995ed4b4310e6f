import { decodeUserText } from '../base/text/utf8.ts';
import { resolve, dirname, join } from 'node:path';
import { digestFromHex } from '../base/digest.ts';
import { readInputFile } from '../base/disk/files.ts';
import { variableOf } from '../base/environment.ts';
import { ConfigError } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import type { ApplianceConfig } from '../config/appliance-config.ts';
import {
  type ConfigInput,
  listNamedPaths,
  loadConfig,
  readConfigFiles,
  type ConfigNames,
} from '../config/load.ts';
import { LAST_EPOCH } from '../iso/index.ts';
import { parseResources, readHostNetworks } from '../openshift/agent/resources.ts';
import type { HostNetwork } from '../nmstate/index.ts';
import { readOverrides } from '../openshift/installer/overrides.ts';
import { readUserManifests } from '../openshift/node/manifests.ts';
import type { GivenBaseIso } from '../openshift/release/base-iso.ts';
import { IMAGE_POLICY_VARIABLE } from '../openshift/release/image-policy.ts';
import { parseGraphUrl } from '../openshift/release/update-graph.ts';
import { parseOutput } from '../outputs/output.ts';
import { type IsoPlace, type IsoReuse } from '../outputs/place.ts';
import { isElsewhere } from '../outputs/read/open.ts';
import { listAuthFiles } from '../registry/index.ts';
import type { LiveIsoRequest } from '../stages/request.ts';
import { readSavedPlan, type SavedPlan } from '../stages/resolved/saved-plan.ts';
import { LIVE_ISO_RULES } from '../stages/rules.ts';
import type { CliHost } from './host.ts';
import { planNetworks } from './networks.ts';
import { readSignatureGate, type SignatureOptions } from './request-signatures.ts';
import { listLockInputs, readLockUse, type LockOptions } from './lock-options.ts';

/*
 * This file owns how options, configuration and environment become the request of a live ISO, and what the
 * requests of all ISOs share.
 */

/** Options that all commands that plan or build an ISO share. */
export type BuildOptions = SignatureOptions & {
  readonly output?: string;
  readonly workDir?: string;
  readonly force?: boolean;
  readonly freshLayout?: boolean;
  readonly rehash?: boolean;
  readonly checksum?: boolean;
  readonly cache?: string;
  /** Values of `--seed`; false: `--no-seed`. */
  readonly seed?: readonly string[] | boolean;
  /** File with a saved plan, or the report of an earlier build. */
  readonly plan?: string;
  /** Settings `PATH=VALUE`, which win over the configuration. */
  readonly set?: readonly string[];
  readonly concurrency?: number;
  /** In milliseconds. */
  readonly retryFor?: number;
};

export const readSaved = (
  { plan }: BuildOptions,
  product: string,
  { cwd }: CliHost,
): SavedPlan | undefined =>
  plan === undefined ? undefined : readSavedPlan(resolve(cwd, plan), product);

type ReuseOptions = Pick<BuildOptions, 'freshLayout' | 'rehash' | 'cache' | 'seed'>;

function readReuse(
  { freshLayout = false, rehash = false, cache, seed = true }: ReuseOptions,
  output: string,
  cwd: string,
): IsoReuse {
  const named = typeof seed === 'boolean' ? [] : seed;
  return {
    seeds: named.map((path) => (isElsewhere(path) ? path : resolve(cwd, path))),
    replaced: output,
    takesBlobs: seed !== false,
    ...(cache !== undefined && { cache: resolve(cwd, cache) }),
    keepsPlaces: !freshLayout,
    trustsRecords: !rehash,
  };
}

/**
 * The place of an ISO, and the files that must survive it.
 *
 * @param inputs of the command line, besides the configuration and the files that it names;
 * undefined entries are ignored
 * @throws the errors of `parseOutput`
 */
export function readIsoPlace(
  {
    output: given,
    workDir,
    force = false,
    checksum = false,
    ...reuse
  }: Pick<BuildOptions, 'workDir' | 'force' | 'checksum'> &
    ReuseOptions & { readonly output: string },
  from: { readonly config: ConfigInput; readonly inputs: readonly (string | undefined)[] },
  { cwd, env }: CliHost,
): IsoPlace {
  const place = parseOutput(given, { cwd, workDir });
  const { output } = place;
  const { config, inputs } = from;
  const reuses = readReuse(reuse, output, cwd);
  return {
    ...place,
    force,
    checksum,
    reuses,
    inputs: [
      ...config.files.map(({ path }) => path),
      ...reuses.seeds.filter((path) => path !== output && !isElsewhere(path)),
      ...inputs.flatMap((path) => (path === undefined ? [] : [resolve(cwd, path)])),
      ...config.files.flatMap(({ path, text }) => listNamedPaths(text, dirname(path))),
      ...config.settings.flatMap((text) => listNamedPaths(text.replace(/^[^=]*=/, ''), cwd)),
      ...listAuthFiles(env).map((path) => resolve(cwd, path)),
    ],
  };
}

/** Identifies the configuration under which the digests of its tags are stored. */
export const identifyConfig = ({ files }: ConfigInput): string =>
  files.map(({ path }) => path).join('\n');

/**
 * Reads SOURCE_DATE_EPOCH, seconds since 1970; undefined if it is not set.
 * reproducible-builds.org/specs/source-date-epoch: whole seconds, in decimal.
 *
 * @throws ConfigError `env.source-date-epoch`
 */
export function readEpoch(env: NodeJS.ProcessEnv): number | undefined {
  const text = variableOf(env, 'SOURCE_DATE_EPOCH');
  if (text === undefined) return undefined;
  if (/^\d{1,10}$/.test(text) && Number(text) <= LAST_EPOCH) return Number(text);
  throw new ConfigError(
    'env.source-date-epoch',
    `SOURCE_DATE_EPOCH is "${text}", not whole seconds that an ISO can hold`,
    { expected: `0 to ${LAST_EPOCH}, the end of the year 2155 (ECMA-119 9.1.5)`, found: text },
  );
}

/**
 * Reads UPDATE_URL_OVERRIDE, a variable of openshift-install; undefined if it is not set.
 *
 * @throws ConfigError `graph.url-malformed`
 */
export function readGraphUrl(env: NodeJS.ProcessEnv): string | undefined {
  const text = variableOf(env, 'UPDATE_URL_OVERRIDE');
  if (text !== undefined) parseGraphUrl(text);
  return text;
}

export type LiveIsoOptions = BuildOptions &
  LockOptions & {
    readonly ignition?: 'installer' | 'embedded';
    /** In bytes. */
    readonly ignitionArea?: number;
    readonly baseIso?: string;
    readonly allowIncomplete?: boolean;
  };

const DEFAULT_OUTPUT = 'appliance.iso';

/** Reads all inputs of a live ISO from the command line, the configuration and its folder. */
export async function readLiveIsoRequest(
  names: ConfigNames,
  options: LiveIsoOptions,
  host: CliHost,
): Promise<LiveIsoRequest> {
  const input = readConfigFiles(names, options, host);
  const file = input.files[0].path;
  const config = loadConfig(input, { env: host.env, rules: LIVE_ISO_RULES });
  const { mirrorPath } = config;
  const { epoch, graphUrl, manifests } = readSurroundings(file, host);
  const disableImagePolicy = wishOfImagePolicy(config, host);
  const baseIso = findBaseIso(config, options, host);
  const ignition = options.ignition ?? config.build.ignition;
  const hosts = ignition === 'installer' ? await readHosts(config, host) : undefined;
  const saved = readSaved(options, 'live-iso', host);
  const locking = readLockUse(options, { product: 'live-iso', config: input }, host);
  const signatures = readSignatureGate(options, host, config.build);
  return {
    config: withBuild(config, options),
    manifests,
    overrides: readOverrides(dirname(file)),
    signatures,
    allowIncomplete: options.allowIncomplete ?? false,
    ...readIsoPlace(
      { ...options, output: options.output ?? DEFAULT_OUTPUT },
      {
        config: input,
        inputs: [
          options.baseIso,
          options.plan,
          ...listFolders(dirname(file)),
          mirrorPath,
          signatures.files,
          signatures.keys,
          ...listLockInputs(locking),
        ],
      },
      host,
    ),
    configuration: identifyConfig(input),
    ignition,
    ...withoutEmpty({ hosts, baseIso, graphUrl, epoch, saved, disableImagePolicy }),
    ...locking,
  };
}

/** Lists the folders next to the configuration that are read although it does not name them. */
const listFolders = (directory: string): readonly string[] =>
  ['openshift', 'mirror', 'cluster-manifests'].map((name) => join(directory, name));

/**
 * Reads the inputs next to the configuration file, and refuses bad ones before any request to the
 * network.
 *
 * @throws ConfigError `env.source-date-epoch`, `graph.url-malformed`, `manifest.malformed`,
 * `manifest.duplicate`, `manifest.unreadable`, `manifest.too-large`
 */
export function readSurroundings(
  file: string,
  { env }: CliHost,
): Pick<LiveIsoRequest, 'epoch' | 'graphUrl' | 'manifests'> {
  const graphUrl = readGraphUrl(env);
  const epoch = readEpoch(env);
  const manifests = readUserManifests(dirname(file));
  return { manifests, ...withoutEmpty({ epoch, graphUrl }) };
}

/** Removes empty members: optional ones are absent, never undefined. */
export function withoutEmpty<T extends object>(object: T): { [K in keyof T]?: NonNullable<T[K]> } {
  const entries = Object.entries(object).filter(([, value]) => value !== undefined && value !== '');
  return Object.fromEntries(entries) as { [K in keyof T]?: NonNullable<T[K]> };
}

/**
 * True if image policies are to be disabled; undefined if neither the configuration, which wins, nor
 * the environment decides. The variable counts with any text, as for the installer.
 */
function wishOfImagePolicy({ build }: ApplianceConfig, { env }: CliHost): boolean | undefined {
  const isSet = variableOf(env, IMAGE_POLICY_VARIABLE) !== undefined;
  return build.disableImagePolicy ?? (isSet ? true : undefined);
}

/** Reads the hosts of NMStateConfigs, with their profiles. */
async function readHosts(
  { build }: ApplianceConfig,
  host: CliHost,
): Promise<readonly HostNetwork[] | undefined> {
  if (build.nmstate === undefined) return undefined;
  const text = decodeUserText(readInputFile(build.nmstate, { domain: 'nmstate' }), build.nmstate);
  if (text.trim() === '') return undefined;
  return planNetworks(readHostNetworks(parseResources(text, 'build.nmstate')), host);
}

/** Merges the command line into the configuration; the command line wins. */
export function withBuild(
  config: ApplianceConfig,
  options: Pick<LiveIsoOptions, 'concurrency' | 'retryFor' | 'ignitionArea'>,
): ApplianceConfig {
  const { concurrency, retryFor, ignitionArea } = options;
  const given = withoutUndefined({ concurrency, retryFor, ignitionArea });
  return { ...config, build: { ...config.build, ...given } };
}

function findBaseIso(
  { build }: ApplianceConfig,
  options: LiveIsoOptions,
  host: CliHost,
): GivenBaseIso | undefined {
  if (options.baseIso !== undefined) return { file: resolve(host.cwd, options.baseIso) };
  if (build.baseIso === undefined) return undefined;
  if (!/^https?:/.test(build.baseIso)) return { file: build.baseIso };
  const { baseIsoSha256 } = build;
  return {
    url: build.baseIso,
    ...(baseIsoSha256 !== undefined && { sha256: digestFromHex(baseIsoSha256) }),
  };
}
