import type { DocumentProblem } from '../../../base/errors.ts';
import { isObject, withoutUndefined } from '../../../base/lists.ts';
import { reportElsewhere } from '../../../shape/document.ts';
import type { SiteFile } from '../../site.ts';
import type { FoundResource, ResourceIndex } from '../find.ts';
import { convertDocument } from '../instance.ts';
import type { Made } from '../make.ts';
import { createPaths, type Paths } from '../places.ts';
import { INSTANCE_API, type InstanceDocument, type SiteFlow } from '../shape.ts';
import { listMissing } from './missing.ts';
import { takeManifests } from './manifests.ts';
import {
  type ClusterPlace,
  type OldCluster,
  type OldNode,
  readSiteConfig,
  SITE_CONFIG_API,
  type SiteConfigDocument,
  type SiteConfigSpec,
} from './shape.ts';

/*
 * Owns the clusters of a SiteConfig: each is read as the ClusterInstance that siteconfig-converter of
 * cnf-features-deploy makes of it (ztp/tools/siteconfig-converter/convert.go).
 */

type Given = {
  /** Files of the folders of manifests. */
  readonly beside: readonly SiteFile[];
  readonly asked: SiteFlow | undefined;
};

export function convertSiteConfig(
  resource: FoundResource,
  index: ResourceIndex,
  { beside, asked }: Given,
): Made {
  const document = readSiteConfig(resource);
  const { spec = {} } = document.value;
  const at = resource.cluster;
  const cluster = spec.clusters?.[at ?? 0];
  if (document.isBroken || at === undefined || !cluster) {
    const lacks = document.report('spec.clusters', 'a SiteConfig has at least one cluster');
    const problems = document.isBroken ? document.problems : [...document.problems, lacks];
    return { files: [], problems, warnings: [], index };
  }
  const flow = asked ?? 'agent';
  const place = { document, cluster, path: `spec.clusters[${at}]` };
  const made = convertDocument(asInstance(spec, place, flow), index, asked);
  const taken = takeManifests(place, beside, flow);
  return {
    ...made,
    problems: [...checkVersion(document), ...made.problems, ...taken.problems],
    warnings: [...made.warnings, ...listMissing(spec, place)],
    beside: taken.files,
  };
}

const checkVersion = ({ value, report }: SiteConfigDocument): readonly DocumentProblem[] =>
  value.apiVersion === SITE_CONFIG_API
    ? []
    : [report('apiVersion', `a SiteConfig has the version ${SITE_CONFIG_API}`)];

/** The document of a ClusterInstance, whose problems name their places in the SiteConfig. */
function asInstance(spec: SiteConfigSpec, place: ClusterPlace, flow: SiteFlow): InstanceDocument {
  const { document } = place;
  const toPath = createPaths(listPaths(place));
  const isOwn = ({ path }: DocumentProblem): boolean => isOfCluster(path, place);
  return {
    ...document,
    value: {
      apiVersion: INSTANCE_API,
      kind: 'ClusterInstance',
      metadata: {},
      spec: toSpec(spec, place.cluster, flow),
    },
    problems: document.problems.filter(isOwn),
    warnings: document.warnings.filter(isOwn),
    ...reportElsewhere((path) => ({ document, path: toPath(path) })),
    writtenOf: (path) => document.writtenOf(toPath(path)),
    nulls: new Set(),
  };
}

/** True for what all clusters of a SiteConfig share, and for what belongs to one. */
const isOfCluster = (path: string, place: ClusterPlace): boolean =>
  !path.startsWith('spec.clusters[') || path === place.path || path.startsWith(`${place.path}.`);

/** The places of values that the converter moves or renames. */
function listPaths({ cluster, path }: ClusterPlace): Paths {
  const single = (name: 'apiVIP' | 'ingressVIP'): Paths =>
    (cluster[`${name}s`]?.length ?? 0) > 0
      ? []
      : [[new RegExp(`^spec\\.${name}s.*`), `${path}.${name}`]];
  const imageSet = (cluster.clusterImageSetNameRef ?? '') === '' ? 'spec' : path;
  return [
    [/^spec\.(baseDomain|pullSecretRef|sshPublicKey)/, 'spec.$1'],
    [/^spec\.(clusterImageSetNameRef)/, `${imageSet}.$1`],
    [/^spec\.(serviceNetwork\[\d+\])\.cidr$/, `${path}.$1`],
    [/^spec\.extraManifestsRefs/, `${path}.manifestsConfigMapRefs`],
    [/^spec\.(?:clusterType|templateRefs).*/, `${path}.nodes`],
    [/^spec\.(nodes\[\d+\])\.templateRefs.*/, `${path}.$1`],
    ...single('apiVIP'),
    ...single('ingressVIP'),
    [/^spec\./, `${path}.`],
    [/^(.*)$/, '$1'],
  ];
}

type InstanceSpec = NonNullable<InstanceDocument['value']['spec']>;

/** The templates that the converter names; a node from a seed has those that siteconfig names for it. */
const TEMPLATES = { 'agent': 'ai', 'image-based': 'ibi' } as const;

function toSpec(spec: SiteConfigSpec, cluster: OldCluster, flow: SiteFlow): InstanceSpec {
  const own = withoutEmpty(cluster);
  const { nodes = [], apiVIPs = [], ingressVIPs = [], apiVIP, ingressVIP } = own;
  return withoutUndefined({
    ...withoutEmpty({ clusterImageSetNameRef: spec.clusterImageSetNameRef }),
    ...own,
    baseDomain: spec.baseDomain,
    pullSecretRef: spec.pullSecretRef,
    sshPublicKey: spec.sshPublicKey,
    clusterType: nodes.length === 1 ? 'SNO' : 'HighlyAvailable',
    apiVIPs: orSingle(apiVIPs, apiVIP),
    ingressVIPs: orSingle(ingressVIPs, ingressVIP),
    serviceNetwork: own.serviceNetwork?.map((cidr) => ({ cidr })),
    extraManifestsRefs: own.manifestsConfigMapRefs,
    templateRefs: [{ name: `${TEMPLATES[flow]}-cluster-templates-v1` }],
    nodes: nodes.map((node) => toNode(node, flow)),
  });
}

const orSingle = (many: readonly string[], one: string | undefined): readonly string[] =>
  many.length > 0 || one === undefined ? many : [one];

function toNode({ nodeNetwork = {}, ...node }: OldNode, flow: SiteFlow) {
  const { config, ...network } = nodeNetwork;
  const isEmpty = isObject(config) && Object.keys(config).length === 0;
  return {
    ...withoutEmpty(node),
    nodeNetwork: isEmpty ? network : nodeNetwork,
    templateRefs: [{ name: `${TEMPLATES[flow]}-node-templates-v1` }],
  };
}

/** The converter leaves out empty texts and lists. */
const withoutEmpty = <T extends object>(given: T): T =>
  Object.fromEntries(
    Object.entries(given).filter(
      ([, value]) => value !== '' && !(Array.isArray(value) && value.length === 0),
    ),
  ) as T;
