import { groupBy } from '../../base/lists.ts';
import { type SiteFile, AGENT_FILE } from '../site.ts';
import { findResources, type FoundResource, type FoundResources } from './find.ts';
import { listClusters, SITE_CONFIG_KIND } from './site-config/shape.ts';

/* Owns the resources that are a site, with the others that they refer to. */

export const IMAGE_INSTALL = 'ImageClusterInstall';

const ROOTS: readonly string[] = [
  'ClusterInstance',
  'AgentClusterInstall',
  IMAGE_INSTALL,
  SITE_CONFIG_KIND,
];

export type SiteRoot = {
  readonly name: string;
  readonly kind: string;
  /** Name of its file in problems. */
  readonly file: string;
};

/** Files that openshift-install reads beside resources. */
const isBeside = ({ path }: SiteFile): boolean =>
  path === AGENT_FILE || /^(?:openshift|extra-manifests)\//.test(path);

const isRoot = ({ kind }: FoundResource): boolean => ROOTS.includes(kind);

/** The files of a folder, sorted for all of its sites at once. */
type SortedFiles = {
  readonly resources: readonly FoundResource[];
  readonly faults: FoundResources['faults'];
  readonly roots: readonly FoundResource[];
  readonly rootsByName: ReadonlyMap<string, readonly FoundResource[]>;
  readonly beside: readonly SiteFile[];
};

/**
 * By the files of a folder that has several sites; they may be thousands. What a WeakMap has is not collected
 * before a full collection, and the files of a folder with one site are not sorted again.
 */
const known = new WeakMap<readonly SiteFile[], SortedFiles>();

export function sortShared(files: readonly SiteFile[]): SortedFiles {
  const sorted = known.get(files) ?? sortFiles(files);
  known.set(files, sorted);
  return sorted;
}

export function sortFiles(files: readonly SiteFile[]): SortedFiles {
  const found = findResources(files.filter((file) => !isBeside(file)));
  const resources = found.resources.flatMap((resource) =>
    resource.kind === SITE_CONFIG_KIND ? listClusters(resource) : [resource],
  );
  const roots = resources.filter(isRoot);
  const rootsByName = groupBy(roots, ({ name }) => name);
  const beside = files.filter(isBeside);
  return { resources, faults: found.faults, roots, rootsByName, beside };
}

/** The roots of a folder, and the faults of documents that may be others. */
export function listRoots(files: readonly SiteFile[]): {
  readonly roots: readonly SiteRoot[];
  readonly faults: FoundResources['faults'];
} {
  const { roots, faults } = sortFiles(files);
  return {
    roots: roots.map(({ name, kind, file }) => ({ name, kind, file: file.shownAs })),
    faults,
  };
}

const ROOT_KIND = /\bkind["']?\s*:\s*["']?(?:ClusterInstance|(?:Agent|Image)ClusterInstall)\b/g;
const SITE_CONFIG = /\bkind["']?\s*:\s*["']?SiteConfig\b/;
const CLUSTER_NAME = /\bclusterName["']?\s*:/g;

/** False if the texts cannot name several roots: reading them as YAML would take longer. */
export function mayHaveRoots(files: readonly SiteFile[]): boolean {
  const counts = files.map(({ bytes }) => {
    const text = Buffer.from(bytes).toString('latin1');
    const names = SITE_CONFIG.test(text) ? text.match(CLUSTER_NAME) : undefined;
    return (text.match(ROOT_KIND)?.length ?? 0) + (names?.length ?? 0);
  });
  return counts.reduce((sum, count) => sum + count, 0) > 1;
}
