import { formatReference } from '../../registry/index.ts';
import { formatMirror } from '../mirror/mirrors.ts';
import type { PlannedImage } from '../mirror/plan.ts';
import { NODE_REGISTRY_PORT, nodeRegistryDomain, type RegistryImage } from '../node/registry.ts';

/** A repository whose images are on the medium, and its place in the live system's own registry. */
type LocalMirror = { readonly source: string; readonly mirrors: readonly string[] };

export type LocalRegistry = {
  readonly image: RegistryImage;
  readonly mirrors: readonly LocalMirror[];
};

/** Repositories that mirror one source; the form of install-config.yaml. */
export type DigestSource = {
  readonly source: string;
  readonly mirrors: readonly string[];
  /** `NeverContactSource`, or a value that has no effect here. */
  readonly sourcePolicy?: string;
};

export type InstallationProxy = {
  readonly httpProxy?: string;
  readonly httpsProxy?: string;
  readonly noProxy?: string;
};

/** The user's configuration, as far as it is on the ISO. An empty text means absent. */
export type InstallationSettings = {
  /** PEM, one certificate or more. */
  readonly additionalTrustBundle: string;
  /** Arguments for coreos-installer. */
  readonly coreosInstallerArgs: readonly string[];
  readonly extraPartitionLabel: string;
  readonly extraPartitionNumber: number;
  readonly extraPartitionStart: string;
  readonly imageDigestSources: readonly DigestSource[];
  readonly installationDisk: string;
  /** An nmstate document in its normal form. */
  readonly networkConfig?: string;
  readonly proxy?: InstallationProxy;
  readonly releaseRegistry: string;
  readonly seedImage: string;
  readonly seedVersion: string;
  readonly shutdown: boolean;
  readonly skipDiskCleanup: boolean;
  readonly sshKey: string;
};

type Sources = InstallationSettings['imageDigestSources'];

const HEAD = [
  'credential-helpers = []',
  'short-name-mode = ""',
  'unqualified-search-registries = []',
  '',
].join('\n');

/**
 * `/etc/containers/registries.conf` of the live system. Undefined when no source has a mirror.
 *
 * `lca-cli ibi` takes the host of every source in it for mirrored, and asks `releaseRegistry` for no image of
 * the seed's registry if that is among them: only the user's own entries may be here.
 */
export function formatInstallationRegistriesConf(sources: Sources): string | undefined {
  const tables = [...mergeSources(sources)].filter(([, { mirrors }]) => mirrors.size > 0);
  if (tables.length === 0) return undefined;
  return [HEAD, ...tables.map(formatTable)].join('\n');
}

/**
 * The drop-in that leads to the images on the medium, before the user's mirrors of them. Podman
 * and CRI-O read it after registries.conf and let its tables replace those of the same source
 * (containers-registries.conf.d(5)); lca-cli does not read it.
 */
export const formatLocalRegistriesConf = (
  sources: Sources,
  local: readonly LocalMirror[],
): string => [...addLocal(mergeSources(sources), local)].map(formatTable).join('\n');

type Mirrors = {
  readonly mirrors: ReadonlySet<string>;
  readonly isBlocked: boolean;
  /** Mirrors on the medium: asked first, and for tags too. */
  readonly local: readonly string[];
};

function mergeSources(sources: Sources): ReadonlyMap<string, Mirrors> {
  const merged = new Map<string, Mirrors>();
  for (const { source, mirrors, sourcePolicy } of sources) {
    const known = merged.get(source);
    merged.set(source, {
      mirrors: new Set([...(known?.mirrors ?? []), ...mirrors]),
      isBlocked: known?.isBlocked === true || sourcePolicy === 'NeverContactSource',
      local: [],
    });
  }
  return merged;
}

/**
 * Only the table with the longest source counts: a repository on the medium takes over settings from above.
 */
function addLocal(
  merged: ReadonlyMap<string, Mirrors>,
  local: readonly LocalMirror[],
): ReadonlyMap<string, Mirrors> {
  return new Map(
    local.map(({ source, mirrors }) => [source, { ...inherit(merged, source), local: mirrors }]),
  );
}

function inherit(merged: ReadonlyMap<string, Mirrors>, source: string): Omit<Mirrors, 'local'> {
  for (let scope = source; scope !== ''; scope = parentOf(scope)) {
    const above = merged.get(scope);
    // A table without mirrors is not written, so its policy applies to no image.
    if (above === undefined || above.mirrors.size === 0) continue;
    const rest = source.slice(scope.length);
    return {
      mirrors: new Set([...above.mirrors].map((mirror) => mirror + rest)),
      isBlocked: above.isBlocked,
    };
  }
  return { mirrors: new Set(), isBlocked: false };
}

const parentOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')));

function formatTable([source, table]: readonly [string, Mirrors]): string {
  const { mirrors, isBlocked, local } = table;
  const isLocal = local.length > 0;
  return [
    '[[registry]]',
    ...(isBlocked ? ['  blocked = true'] : []),
    `  location = ${quote(source)}`,
    // Set for the whole table or for each mirror; both at once is an error.
    ...(isLocal ? [] : ['  mirror-by-digest-only = true']),
    '  prefix = ""',
    ...local.flatMap(formatMirrorTable),
    ...[...mirrors].flatMap((mirror) => [
      ...formatMirrorTable(mirror),
      ...(isLocal ? ['    pull-from-mirror = "digest-only"'] : []),
    ]),
    '',
  ].join('\n');
}

const formatMirrorTable = (location: string): readonly string[] => [
  '',
  '  [[registry.mirror]]',
  `    location = ${quote(location)}`,
];

/** A basic string of TOML 1.0; JSON's escapes are a subset of TOML's. */
const quote = (text: string): string => JSON.stringify(text);

/** Each repository once by its name, and by its name at `releaseRegistry`, if that is given. */
export function planLocalMirrors(
  images: readonly PlannedImage[],
  releaseRegistry: string,
): readonly LocalMirror[] {
  const mirrors = new Map<string, Set<string>>();
  for (const { origin, destination } of images) {
    for (const registry of [origin.registry, releaseRegistry]) {
      if (registry === '') continue;
      const source = `${registry}/${origin.repository}`;
      const known = mirrors.get(source) ?? new Set();
      mirrors.set(source, known.add(formatMirror(LOCAL_REGISTRY, destination.repository)));
    }
  }
  return [...mirrors]
    .map(([source, known]) => ({ source, mirrors: [...known] }))
    .sort((a, b) => (a.source < b.source ? -1 : 1));
}

const LOCAL_REGISTRY = `${nodeRegistryDomain(true)}:${NODE_REGISTRY_PORT}`;

/** The description of the registry server's image for the unit and the scripts of the registry. */
export const describeServer = (
  { source }: Pick<PlannedImage, 'source'>,
  useDistributionEntrypoint: boolean,
): RegistryImage => ({ reference: formatReference(source), useDistributionEntrypoint });
