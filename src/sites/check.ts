import type { DocumentProblem } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import { isObject } from '../base/lists.ts';
import { formatNetworkConfig } from '../nmstate/index.ts';
import type { DigestSource } from '../openshift/installation/mirrors.ts';
import type { Shape } from '../shape/shape.ts';
import {
  readSiteDocument,
  type SiteDocument,
  IMAGE_BASED_CONFIG,
  INSTALL_CONFIG,
  type WrittenImageBasedConfig,
  type WrittenInstallConfig,
  resolveReferences,
  type References,
} from './documents.ts';
import { listFacts, type SiteFacts } from './facts.ts';
import { checkExtraManifests, listExtraManifests, warnOfExtraManifests } from './manifests.ts';
import { checkImageBasedConfig, checkInstallConfig, readProxy } from './rules/install-config.ts';
import {
  keepMachineNetworks,
  listMachineNetworks,
  resolveNetworks,
  type NetworkEntry,
} from './rules/networks.ts';
import type { ClusterNetworks } from './rules/plausibility.ts';
import { warnOfImageBasedConfig, warnOfInstallConfig } from './rules/warnings.ts';
import type { Site, SiteFile, SiteInput, SiteImageBasedConfig, SiteInstallConfig } from './site.ts';

/*
 * Entry of the room: the files of one site come in, and a checked site with its facts and problems
 * leaves. It joins the documents, their references, the rules and the manifests of a site, so that
 * all problems are reported at once. The room must not know commands, the content of seeds or
 * how a build is scheduled.
 */

export type SiteCheck = {
  /** Present only if the inputs have no problem. */
  readonly site?: Site;
  /** Facts to compare with other sites; absent if a file is missing or cannot be read. */
  readonly facts?: SiteFacts;
  /** Values of `file:` and `env:` references, by key; secrets are among them. */
  readonly references: References;
  /** Problems in the order of files and lines. */
  readonly problems: readonly DocumentProblem[];
  readonly warnings: readonly DocumentProblem[];
};

export type CheckOptions = {
  /** Time against which certificates are checked, in seconds since 1970. */
  readonly epoch: number;
  /** Makes unknown keys of install-config.yaml warnings, as with OPENSHIFT_INSTALL_INVOKER. */
  readonly isLenient?: boolean;
  /** Version of the seed that the sites are installed from, if it is known: `X.Y` or `X.Y.Z`. */
  readonly seedVersion?: string;
  /** Environment in which `env:NAME` is looked up. */
  readonly env?: NodeJS.ProcessEnv;
};

type InstallDocument = SiteDocument<typeof INSTALL_CONFIG>;
type ImageBasedDocument = SiteDocument<typeof IMAGE_BASED_CONFIG>;

type Both = { readonly install: InstallDocument; readonly imageBased: ImageBasedDocument };

/**
 * Reads the inputs of one site and applies every rule for a single site, all at once. Rules look
 * at a copy with the installer's defaults; the site keeps the values that the user wrote.
 */
export function checkSite(input: SiteInput, options: CheckOptions): SiteCheck {
  const shape =
    options.isLenient === true ? { ...INSTALL_CONFIG, others: 'warned' as const } : INSTALL_CONFIG;
  const { install, references } = openInstall(input, shape, options);
  const imageBased = openFile(input, 'image-based-config.yaml', IMAGE_BASED_CONFIG);
  const both = isDocument(install) && isDocument(imageBased) ? { install, imageBased } : undefined;
  const problems = limit([
    ...judgeInstall(install, options),
    ...judgeImageBased(imageBased, install),
    ...checkExtraManifests(input.files),
  ]);
  return {
    ...(both && { facts: gatherFacts(input, both) }),
    ...(both && problems.length === 0 && { site: createSite(input, both, options) }),
    problems,
    references,
    warnings: limit([
      ...warn(install, ({ report, value }) => warnOfInstallConfig(report, value, options)),
      ...warn(imageBased, ({ report, value }) =>
        warnOfImageBasedConfig(report, value, listNetworks(install)),
      ),
      ...warnOfExtraManifests(input.files),
    ]),
  };
}

/** More problems than a user fixes before the next try. */
const MOST_SHOWN = 200;

function limit(problems: readonly DocumentProblem[]): readonly DocumentProblem[] {
  const last = problems[MOST_SHOWN];
  if (!last) return problems;
  const problem = `${problems.length - MOST_SHOWN} more problems from here on`;
  return [...problems.slice(0, MOST_SHOWN), { ...last, path: '', problem }];
}

const isDocument = <D extends object>(opened: D | DocumentProblem): opened is D =>
  'value' in opened;

const INSTALL_NAME = 'install-config.yaml';

function openInstall(
  input: SiteInput,
  shape: typeof INSTALL_CONFIG,
  { env = {} }: CheckOptions,
): {
  readonly install: InstallDocument | DocumentProblem;
  readonly references: SiteCheck['references'];
} {
  const install = openFile(input, INSTALL_NAME, shape);
  const file = input.files.find(({ path }) => path === INSTALL_NAME);
  if (!isDocument(install) || !file) return { install, references: new Map() };
  const { document, references } = resolveReferences(install, { ...file, env });
  return { install: document, references };
}

/** A missing file is a problem that names it. */
function openFile<S extends Shape>(
  { name, files }: SiteInput,
  path: string,
  shape: S,
): SiteDocument<S> | DocumentProblem {
  const file = files.find((each) => each.path === path);
  if (file) return readSiteDocument(file, shape);
  const near = files.find((each) => isNear(each.path, path));
  return {
    severity: 'error',
    code: 'sites.missing-file',
    file: near?.shownAs ?? showPath(name, files, path),
    line: 1,
    column: 1,
    path: '',
    problem: `${path} is missing`,
    lineText: '',
    ...(near && { hint: `rename ${near.path} to ${path}` }),
  };
}

const isNear = (path: string, wanted: string): boolean =>
  path
    .toLowerCase()
    .replace(/\.(?:yml|json)$/, '.yaml')
    .replaceAll('_', '-') === wanted;

/** Shows a path in the style of the site's other files. */
function showPath(name: string, files: readonly SiteFile[], path: string): string {
  const other = files.find((each) => each.shownAs.endsWith(`/${each.path}`));
  return other ? other.shownAs.slice(0, -other.path.length) + path : `${name}/${path}`;
}

/** A broken document has no content that rules could judge. */
function judgeInstall(
  install: InstallDocument | DocumentProblem,
  { seedVersion }: CheckOptions,
): readonly DocumentProblem[] {
  if (!isDocument(install)) return [install];
  const { value, report, problems, isBroken } = install;
  if (isBroken) return problems;
  const networks = resolveNetworks(value.networking);
  return join(
    problems,
    checkInstallConfig(report, value, {
      networks,
      ...withoutUndefined({ seedVersion }),
    }),
  );
}

const NO_NETWORKS: ClusterNetworks = { machine: [], service: [], cluster: [] };

function judgeImageBased(
  imageBased: ImageBasedDocument | DocumentProblem,
  install: InstallDocument | DocumentProblem,
): readonly DocumentProblem[] {
  if (!isDocument(imageBased)) return [imageBased];
  const { value, report, problems, isBroken } = imageBased;
  if (isBroken) return problems;
  return join(problems, checkImageBasedConfig(report, value, listNetworks(install)));
}

/** Machine networks exactly as written, since these are the ones the node will get. */
function listNetworks(install: InstallDocument | DocumentProblem): ClusterNetworks {
  if (!isDocument(install) || install.isBroken) return NO_NETWORKS;
  const { networking } = install.value;
  const { service, cluster } = resolveNetworks(networking);
  const machine = listMachineNetworks(networking);
  return { machine: cidrsOf(machine), service: cidrsOf(service), cluster: cidrsOf(cluster) };
}

const cidrsOf = (entries: readonly NetworkEntry[]): ClusterNetworks['machine'] =>
  entries.flatMap(({ cidr }) => (cidr ? [cidr] : []));

function warn<D extends Pick<SiteDocument<Shape>, 'isBroken' | 'warnings'>>(
  opened: D | DocumentProblem,
  rule: (document: D) => readonly DocumentProblem[],
): readonly DocumentProblem[] {
  if (!isDocument(opened) || opened.isBroken) return [];
  return inOrder([...opened.warnings, ...rule(opened)]);
}

/** Rules do not judge a value that could not be read. */
function join(
  unread: readonly DocumentProblem[],
  judged: readonly DocumentProblem[],
): readonly DocumentProblem[] {
  const paths = new Set(unread.map(({ path }) => path.toLowerCase()));
  return inOrder([...unread, ...judged.filter(({ path }) => !paths.has(path.toLowerCase()))]);
}

/** Sorts by line and column and drops duplicates. */
function inOrder(problems: readonly DocumentProblem[]): readonly DocumentProblem[] {
  const different = new Map(
    problems.map((each) => {
      const { line, column, path, problem } = each;
      return [JSON.stringify([line, column, path, problem]), each];
    }),
  );
  return [...different.values()].toSorted((a, b) => a.line - b.line || a.column - b.column);
}

const gatherFacts = ({ name }: SiteInput, { install, imageBased }: Both): SiteFacts => ({
  name,
  facts: listFacts(install, imageBased, listNetworks(install).machine),
});

const createSite = (
  { name, files }: SiteInput,
  { install, imageBased }: Both,
  options: CheckOptions,
): Site => ({
  name,
  install: keepInstallConfig(install.value, options),
  imageBased: keepImageBasedConfig(imageBased.value),
  extraManifests: listExtraManifests(files),
});

/** The parts of install-config.yaml that go to the node, without any default. */
function keepInstallConfig(written: WrittenInstallConfig, seed: CheckOptions): SiteInstallConfig {
  const { metadata = {}, baseDomain = '', sshKey = '', pullSecret = '' } = written;
  const proxy = readProxy(written.proxy);
  return {
    clusterName: metadata.name ?? '',
    baseDomain,
    sshKey,
    pullSecret,
    ...(proxy && { proxy }),
    ...keepTrust(written),
    ...keepMachineNetworks(written.networking, seed),
    ...(written.imageDigestSources && {
      imageDigestSources: written.imageDigestSources.map(keepSource),
    }),
  };
}

const keepTrust = ({
  additionalTrustBundle,
  additionalTrustBundlePolicy,
}: WrittenInstallConfig): Pick<
  SiteInstallConfig,
  'additionalTrustBundle' | 'additionalTrustBundlePolicy'
> => ({
  ...(additionalTrustBundle && { additionalTrustBundle }),
  ...(additionalTrustBundlePolicy && { additionalTrustBundlePolicy }),
});

type WrittenSource = NonNullable<WrittenInstallConfig['imageDigestSources']>[number];

const keepSource = (written: WrittenSource): DigestSource => {
  const { source = '', mirrors = [], sourcePolicy } = written ?? {};
  return {
    source,
    mirrors: mirrors.map((mirror = '') => mirror),
    ...(sourcePolicy && { sourcePolicy }),
  };
};

/** image-based-config.yaml, with its network configuration in the normal form. */
function keepImageBasedConfig(written: WrittenImageBasedConfig): SiteImageBasedConfig {
  const { additionalNTPSources = [], hostname = '', nodeLabels = {} } = written;
  const { networkConfig: network, releaseRegistry } = written;
  const { cluster_id: clusterId, infra_id: infraId } = written;
  return {
    additionalNTPSources: additionalNTPSources.map((source = '') => source),
    hostname,
    ...(isObject(network) && { networkConfig: formatNetworkConfig(network) }),
    ...(releaseRegistry && { releaseRegistry }),
    ...(clusterId && { clusterId }),
    ...(infraId && { infraId }),
    nodeLabels,
  };
}
