import type { DocumentProblem } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { type SiteFile, type SiteInput, AGENT_FILE } from '../site.ts';
import { convertCluster } from './assisted/cluster.ts';
import { type FoundResource, indexResources } from './find.ts';
import { convertImageInstall } from './image-cluster-install.ts';
import { convertInstance } from './instance.ts';
import type { Made } from './make.ts';
import { IMAGE_INSTALL, sortFiles, sortShared } from './roots.ts';
import type { SiteFlow } from './shape.ts';
import { convertSiteConfig } from './site-config/convert.ts';
import { formatCluster, SITE_CONFIG_KIND } from './site-config/shape.ts';

/*
 * Owns resources of Kubernetes as inputs: those of a site come in, and the files that openshift-install would
 * read leave, with the places of their values in the resources.
 */

/** The files of a site that has resources in place of them. */
export function convertResources(
  { name, files, root: wanted }: SiteInput,
  asked: SiteFlow | undefined,
): SiteInput {
  const { resources, beside, roots, faults } = sortOf(files, wanted);
  const [root] = roots;
  if (!root || roots.length > 1) {
    const why = refuse(files[0]?.shownAs ?? name, explainRoots(roots, resources));
    return { name, files: [], problems: faults.length > 0 ? faults : [why] };
  }
  const made = convertRoot(root, { resources, beside, asked });
  return {
    name,
    files: made.files.length === 0 ? [] : joinFiles(made.files, made.beside ?? beside),
    problems: [...faults, ...made.problems, ...refuseTwice(root, made, beside)],
    warnings: made.warnings,
    ...withoutUndefined({ installMembers: made.installMembers, release: made.release }),
    madeOf: [...listDocuments(root, made), ...beside],
  };
}

/** Sorts the files of a site; faults of a folder with several sites belong to none of them. */
function sortOf(files: readonly SiteFile[], wanted: string | undefined) {
  if (wanted === undefined) return sortFiles(files);
  const { rootsByName, ...shared } = sortShared(files);
  return { ...shared, roots: rootsByName.get(wanted) ?? [], faults: [] };
}

type Given = {
  readonly resources: readonly FoundResource[];
  readonly beside: readonly SiteFile[];
  readonly asked: SiteFlow | undefined;
};

function convertRoot(root: FoundResource, { resources, beside, asked }: Given): Made {
  if (root.kind === 'AgentClusterInstall') return convertCluster(root, resources, beside);
  if (root.kind === SITE_CONFIG_KIND)
    return convertSiteConfig(root, indexResources(resources, root.namespace), { beside, asked });
  const convert = root.kind === IMAGE_INSTALL ? convertImageInstall : convertInstance;
  return convert(root, resources, asked);
}

/** A file beside the resources is left out if one of its name was made. */
function joinFiles(made: readonly SiteFile[], beside: readonly SiteFile[]): readonly SiteFile[] {
  const paths = new Set(made.map(({ path }) => path));
  return [...made, ...beside.filter(({ path }) => !paths.has(path))];
}

/** An AgentClusterInstall takes agent-config.yaml into account. */
function refuseTwice(
  { kind }: FoundResource,
  made: Made,
  beside: readonly SiteFile[],
): readonly DocumentProblem[] {
  const paths = new Set(made.files.map(({ path }) => path));
  const agent = kind === 'AgentClusterInstall' ? [] : beside.filter(isAgentConfig);
  const manifests = (made.beside ?? beside).filter((file) => !isAgentConfig(file));
  return [...agent, ...manifests]
    .filter(({ path }) => paths.has(path))
    .map(({ path, shownAs }) => refuse(shownAs, `${path} is also made of the ${kind}`));
}

const isAgentConfig = ({ path }: SiteFile): boolean => path === AGENT_FILE;

function explainRoots(
  roots: readonly FoundResource[],
  resources: readonly FoundResource[],
): string {
  if (roots.length > 0) {
    const names = roots.map(({ kind, name }) => `${kind} "${name}"`).join(', ');
    return `has ${roots.length} clusters, but is one site: ${names}`;
  }
  const isPart = resources.some(({ kind }) => ['ClusterDeployment', 'InfraEnv'].includes(kind));
  return isPart
    ? 'has resources of a cluster, but no AgentClusterInstall'
    : 'has no install-config.yaml, and no ClusterInstance, AgentClusterInstall or SiteConfig in its place';
}

const refuse = (file: string, problem: string): DocumentProblem => ({
  severity: 'error',
  code: 'sites.input',
  file,
  path: '',
  problem,
  line: 1,
  column: 1,
  lineText: '',
});

/** The resources that a site was made of, without the others of their files. */
const listDocuments = (root: FoundResource, { index }: Made): readonly SiteFile[] =>
  [...new Set([root, ...index.used])].map((resource, at) => {
    const { kind, namespace = '', name, file, piece, cluster } = resource;
    return {
      path: `${kind}/${namespace}/${name}/${at}`,
      bytes: Buffer.from(cluster === undefined ? piece.text : formatCluster(resource)),
      shownAs: file.shownAs,
    };
  });
