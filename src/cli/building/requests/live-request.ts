import { dirname, join, resolve } from 'node:path';
import { readInputFile } from '../../../base/disk/files.ts';
import { digestFromHex } from '../../../base/digest.ts';
import { withoutUndefined } from '../../../base/lists.ts';
import type { ApplianceConfig } from '../../../config/appliance-config.ts';
import { loadConfig, readConfigFiles, type ConfigNames } from '../../../config/load.ts';
import { LIVE_ISO_RULES } from '../../../stages/rules.ts';
import type { LiveIsoRequest } from '../../../stages/request.ts';
import { readOverrides } from '../../../openshift/installer/overrides.ts';
import { IMAGE_POLICY_VARIABLE } from '../../../openshift/release/image-policy.ts';
import { readUserManifests } from '../../../openshift/node/manifests.ts';
import type { GivenBaseIso } from '../../../openshift/release/base-iso.ts';
import type { HostNetwork } from '../../../openshift/agent/values.ts';
import { parseResources, readHostNetworks } from '../../../openshift/agent/resources.ts';
import { addProfiles } from '../../../nmstate/tool.ts';
import type { CliHost } from '../../host.ts';
import { readGraphUrl, readEpoch } from '../../environment.ts';
import {
  identifyConfig,
  readIsoPlace,
  readSignatureGate,
  readSaved,
  type BuildOptions,
} from './build-options.ts';
import { listLockInputs, readLockUse, type LockOptions } from './lock-options.ts';

export type LiveIsoOptions = BuildOptions &
  LockOptions & {
    readonly ignition?: 'installer' | 'embedded';
    /** Bytes. */
    readonly ignitionArea?: number;
    readonly baseIso?: string;
  };

const DEFAULT_OUTPUT = 'appliance.iso';

/** Everything a live ISO is made from, out of the command line, the configuration and its folder. */
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
  const ignition = options.ignition ?? config.build.ignition ?? 'installer';
  const hosts = ignition === 'installer' ? await readHosts(config, host) : undefined;
  const saved = readSaved(options, 'live-iso', host);
  const locking = readLockUse(options, { product: 'live-iso', config: input }, host);
  const signatures = readSignatureGate(options, host, config.build);
  return {
    config: withBuild(config, options),
    manifests,
    overrides: readOverrides(dirname(file)),
    signatures,
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

/** Beside the configuration, what is read without being named in it. */
const listFolders = (directory: string): readonly string[] =>
  ['openshift', 'mirror', 'cluster-manifests'].map((name) => join(directory, name));

/**
 * What a build reads beside its configuration file, and refuses before it asks the network.
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

/** Optional members are absent, never undefined. */
export function withoutEmpty<T extends object>(object: T): { [K in keyof T]?: NonNullable<T[K]> } {
  const entries = Object.entries(object).filter(([, value]) => value !== undefined && value !== '');
  return Object.fromEntries(entries) as { [K in keyof T]?: NonNullable<T[K]> };
}

/** The configuration wins over the environment. Any text in the variable counts, as for the installer. */
function wishOfImagePolicy({ build }: ApplianceConfig, { env }: CliHost): boolean | undefined {
  const variable = env[IMAGE_POLICY_VARIABLE] ?? '';
  return build.disableImagePolicy ?? (variable === '' ? undefined : true);
}

/** Of NMStateConfigs, with the profiles that only nmstate makes. */
async function readHosts(
  { build }: ApplianceConfig,
  host: CliHost,
): Promise<readonly HostNetwork[] | undefined> {
  if (build.nmstate === undefined) return undefined;
  const text = readInputFile(build.nmstate, { domain: 'nmstate' }).toString('utf8');
  if (text.trim() === '') return undefined;
  return addProfiles(readHostNetworks(parseResources(text, 'build.nmstate')), host);
}

/** What the command line says wins. */
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
