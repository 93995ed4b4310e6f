import { decodeUserText } from '../base/text/utf8.ts';
import { resolve, dirname, join } from 'node:path';
import { digestFromHex } from '../base/digest.ts';
import { readInputFile } from '../base/disk/files.ts';
import { variableOf } from '../base/environment.ts';
import { withoutUndefined } from '../base/lists.ts';
import type { ApplianceConfig } from '../config/appliance-config.ts';
import { loadConfig, readConfigFiles, type ConfigNames } from '../config/load.ts';
import type { HostNetwork } from '../nmstate/index.ts';
import { parseResources, readHostNetworks } from '../openshift/agent/resources.ts';
import { readOverrides } from '../openshift/installer/overrides.ts';
import { readUserManifests } from '../openshift/node/manifests.ts';
import type { GivenBaseIso } from '../openshift/release/base-iso.ts';
import { isVersion } from '../openshift/release/version.ts';
import { IMAGE_POLICY_VARIABLE } from '../openshift/release/image-policy.ts';
import { outputKindOf } from '../outputs/place.ts';
import {
  type LiveIsoRequest,
  type UpgradeIsoRequest,
  UPGRADE_ISO_RULES,
} from '../stages/request.ts';
import { LIVE_ISO_RULES } from '../stages/rules.ts';
import { askIso, readEpoch, readGraphUrl, type BuildOptions } from './ask-iso.ts';
import type { CliHost } from './host.ts';
import { planNetworks } from './networks.ts';
import { refuseOption } from './options.ts';

/* This file owns how options, configuration and environment become the requests of the media of an appliance. */

export type LiveIsoOptions = BuildOptions & {
  readonly ignition?: 'installer' | 'embedded';
  /** In bytes. */
  readonly ignitionArea?: number;
  readonly baseIso?: string;
  readonly allowIncomplete?: boolean;
  /** Another product with the contents of a live ISO; default: the live ISO. */
  readonly product?: string;
};

export const LIVE_OUTPUT = 'appliance.iso';

export async function readLiveIsoRequest(
  names: ConfigNames,
  options: LiveIsoOptions,
  host: CliHost,
): Promise<LiveIsoRequest> {
  const files = readConfigFiles(names, options, host);
  const directory = dirname(files.files[0].path);
  const config = loadConfig(files, { env: host.env, rules: LIVE_ISO_RULES });
  const { build, mirrorPath } = config;
  const ignition = options.ignition ?? build.ignition;
  const inputs = [options.baseIso, mirrorPath, ...listFolders(directory)];
  const { product = 'live-iso' } = options;
  const medium = { product, output: LIVE_OUTPUT, files, trust: build, inputs };
  const access = withBuild(config, options);
  return {
    config: access,
    access,
    confidential: [
      ...(config.userCorePass === undefined ? [] : ['userCorePass']),
      ...(build.embed.pullSecret === undefined ? [] : ['build.embed.pullSecret']),
    ],
    ignition,
    allowIncomplete: options.allowIncomplete ?? false,
    manifests: readUserManifests(directory),
    overrides: readOverrides(directory),
    ...withoutUndefined({
      baseIso: findBaseIso(config, options, host),
      hosts: ignition === 'installer' ? await readHosts(config, host) : undefined,
      disableImagePolicy: wishOfImagePolicy(config, host),
    }),
    ...askIso(medium, options, host),
  };
}

/** Lists the folders next to the configuration that are read although it does not name them. */
const listFolders = (directory: string): readonly string[] =>
  ['openshift', 'mirror', 'cluster-manifests'].map((name) => join(directory, name));

/** Refuses bad inputs next to the configuration, and of the environment, for commands that only check. */
export function checkSurroundings(file: string, { env }: CliHost): void {
  readGraphUrl(env);
  readEpoch(env);
  readUserManifests(dirname(file));
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
function withBuild(
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

export const UPGRADE_OUTPUT = 'upgrade.iso';

export type UpgradeRequestOptions = BuildOptions & {
  readonly from?: string;
  readonly machineConfig?: boolean;
  readonly prepareHosts?: boolean;
  readonly acknowledge?: readonly string[];
};

export function readUpgradeRequest(
  names: ConfigNames,
  options: UpgradeRequestOptions,
  host: CliHost,
): UpgradeIsoRequest {
  const acknowledged = readAcknowledged(options);
  if (options.from !== undefined) requireFromVersion(options.from);
  const files = readConfigFiles(names, options, host);
  const config = loadConfig(files, { env: host.env, rules: UPGRADE_ISO_RULES });
  const medium = { product: 'upgrade-iso', output: UPGRADE_OUTPUT, files, inputs: [] };
  const asked = askIso({ ...medium, trust: config.build }, options, host);
  const from = options.from ?? asked.held.locked?.path?.from;
  const access = withBuild(config, options);
  return {
    ...asked,
    config: access,
    access,
    confidential: [],
    machineConfig: options.machineConfig ?? false,
    prepareHosts: options.prepareHosts ?? false,
    acknowledged,
    folder: outputKindOf(asked) === 'file' ? dirname(asked.output) : host.cwd,
    ...withoutUndefined({ from }),
  };
}

function readAcknowledged({
  machineConfig = false,
  acknowledge = [],
}: UpgradeRequestOptions): readonly string[] {
  if (acknowledge.length === 0 || machineConfig) return acknowledge;
  throw refuseOption('usage.acknowledge', acknowledge.join(','), {
    expected: '--machine-config beside it',
    hint: 'add --machine-config, or run the printed command on the cluster',
  });
}

export function requireFromVersion(from: string): void {
  if (isVersion(from)) return;
  throw refuseOption('usage.from', from, {
    expected: 'the version of the cluster, X.Y.Z',
    hint: 'take it from "oc get clusterversion"',
  });
}
