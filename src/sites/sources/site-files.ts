import { INSTALL_FILE, AGENT_FILE, IMAGE_BASED_FILE } from '../site.ts';

/* Owns the names of the files that a site has. */

/** A site has the first of them, and one of the others, which tells how its nodes are installed. */
const KIND_FILES = [IMAGE_BASED_FILE, AGENT_FILE] as const;
export const CONFIG_FILES: readonly string[] = [INSTALL_FILE, ...KIND_FILES];

/**
 * Undefined if the files are those of one site.
 *
 * @param hasLoose true if there are other YAML files, which may have resources
 */
export function explainMissing(paths: ReadonlySet<string>, hasLoose = false): string | undefined {
  const kinds = KIND_FILES.filter((file) => paths.has(file));
  if (kinds.length > 1) {
    return `has ${kinds.join(' and ')}: a site is installed from a seed image, or by agents`;
  }
  const described = [INSTALL_FILE, KIND_FILES[0]].filter((file) => paths.has(file));
  if (isOfResources(paths, hasLoose)) {
    return described.length === 0
      ? undefined
      : `has ${described.join(' and ')}, and ${CLUSTER_MANIFESTS}: both describe the cluster`;
  }
  const missing = [
    ...(paths.has(INSTALL_FILE) ? [] : [INSTALL_FILE]),
    ...(kinds.length === 0 ? [KIND_FILES[0]] : []),
  ];
  return missing.length === 0 ? undefined : `has no ${missing.join(' and no ')}`;
}

/** The folder of the resources that openshift-install takes in place of install-config.yaml. */
const CLUSTER_MANIFESTS = 'cluster-manifests';

export const isClusterManifest = (path: string): boolean =>
  /^cluster-manifests\/[^/]+\.ya?ml$/.test(path);

/** Folders of a site. */
export const SITE_FOLDERS: readonly string[] = ['extra-manifests', 'openshift', CLUSTER_MANIFESTS];

/** True for files that openshift-install would read; it does not look below `extra-manifests/`. */
export const isInput = (path: string): boolean =>
  CONFIG_FILES.includes(path) ||
  /^extra-manifests\/[^/]+\.(?:yaml|yml|json)$/.test(path) ||
  /^openshift\/[^/]+\.ya?ml$/.test(path) ||
  isClusterManifest(path);

/** Lists of the other files of a folder (kustomize). */
export const LISTS: readonly string[] = ['kustomization.yaml', 'kustomization.yml'];

/** The names of files of a GitOps repository that are not lists of others. */
export const isResourceFile = (path: string): boolean =>
  /^[^/]+\.ya?ml$/.test(path) && !LISTS.includes(path) && !CONFIG_FILES.includes(path);

/** True if the site is made of resources, in `cluster-manifests/` or loose in files of any name. */
export const isOfResources = (paths: ReadonlySet<string>, hasLoose: boolean): boolean =>
  [...paths].some(isClusterManifest) ||
  (hasLoose && !paths.has(INSTALL_FILE) && !paths.has(KIND_FILES[0]));
