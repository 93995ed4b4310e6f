import semver from 'semver';
import { ConfigError } from '../../base/errors.ts';
import { IMAGE_CONFIG } from '../../registry/index.ts';
import { decodeJson, GO_RULES, ifFaultless } from '../../shape/decode.ts';
import { FLAG, LEFT_OUT, list, partial, TEXT } from '../../shape/shape.ts';
import { openshiftOf, osStreamOf } from '../release/os-stream.ts';
import { minorOf, stripBuild } from '../release/version.ts';

/*
 * Owns the description in a seed image (lifecycle-agent: `lca-cli/seedclusterinfo`), and its comparison with the
 * release and the live ISO.
 */

/** The file in a seed image that describes the cluster that it was made from. */
export const SEED_INFO_PATH = 'manifest.json';

/** The same text as a label, on seeds that are not of the first versions. */
const SEED_INFO_LABEL = 'com.openshift.lifecycle-agent.seed_cluster_info';

/** @param config the image's, as JSON */
export const findSeedInfo = (config: string): string | undefined =>
  ifFaultless(decodeJson(IMAGE_CONFIG, config, GO_RULES))?.config.Labels[SEED_INFO_LABEL];

const SEED_INFO = partial(
  {
    seed_cluster_ocp_version: TEXT,
    node_ip: TEXT,
    node_ips: list(TEXT),
    machine_networks: list(TEXT),
    has_proxy: FLAG,
  },
  LEFT_OUT,
);

/** The cluster that a seed was made from. */
export type SeedCluster = {
  /** Empty if the description does not tell it. */
  readonly version: string;
  /** IP addresses of its node, in order. */
  readonly nodeAddresses: readonly string[];
  /** CIDRs, in order; empty on seeds before 4.20. */
  readonly machineNetworks: readonly string[];
  readonly hasProxy: boolean;
};

/** Undefined if it is not a description. */
export function parseSeedCluster(info: string): SeedCluster | undefined {
  const read = ifFaultless(decodeJson(SEED_INFO, info, GO_RULES));
  if (!read) return undefined;
  const { node_ip: address = '', node_ips: addresses = [] } = read;
  return {
    version: read.seed_cluster_ocp_version ?? '',
    nodeAddresses: addresses.length > 0 || address === '' ? addresses : [address],
    machineNetworks: read.machine_networks ?? [],
    hasProxy: read.has_proxy === true,
  };
}

/**
 * Compares to the letter, as `lca-cli` does on the host.
 *
 * @throws ConfigError `installation.seed-version`
 */
export function requireSeedVersion(seedVersion: string, found: string): void {
  if (found === '' || found === seedVersion) return;
  throw new ConfigError(
    'installation.seed-version',
    'the seed image is of another version than seedVersion: its installation would fail',
    { expected: seedVersion, found, hint: `write seedVersion: ${found}, or name another seed` },
  );
}

/** The release and the live ISO that a seed is installed with. */
export type SeedCompanions = {
  readonly seedVersion: string;
  /** Name of the live ISO's system, as volumes have it: `rhcos-9.6.20250523-0`. */
  readonly systemName: string;
  readonly releaseVersion?: string;
};

/** Differences that an installation may survive. */
export const listSeedDifferences = (companions: SeedCompanions): readonly string[] => [
  ...compareRelease(companions),
  ...compareSystem(companions),
];

function compareRelease({ seedVersion, releaseVersion }: SeedCompanions): readonly string[] {
  if (releaseVersion === undefined || stripBuild(releaseVersion) === stripBuild(seedVersion))
    return [];
  return [`the release is ${releaseVersion}, but the seed is ${seedVersion}`];
}

/** Live ISOs are named after RHEL alone from this version on. */
const FIRST_BY_RHEL = '4.19.0';

function compareSystem({ seedVersion, systemName }: SeedCompanions): readonly string[] {
  const seed = semver.coerce(seedVersion);
  const stream = osStreamOf(systemName);
  if (seed === null || stream === undefined) return [];
  const named = openshiftOf(systemName);
  const [what, fits] =
    named === undefined
      ? [`${stream} of OpenShift 4.19 or later`, seed.compare(FIRST_BY_RHEL) >= 0]
      : [`RHCOS of OpenShift ${named}`, minorOf(seedVersion) === named];
  if (!fits) return [`the live ISO is ${what}, but the seed is ${seedVersion}`];
  return seed.major < 5 && stream === 'rhel-10'
    ? [`the live ISO is ${stream}, but seeds of OpenShift 4 are rhel-9`]
    : [];
}
