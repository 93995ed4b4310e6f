import type { DocumentProblem } from '../../base/errors.ts';
import { append, withoutUndefined } from '../../base/lists.ts';
import {
  type SiteInput,
  INSTALL_FILE,
  AGENT_FILE,
  IMAGE_BASED_FILE,
  MANIFESTS_OF,
} from '../site.ts';
import { readRendezvousAnnotation } from './annotations.ts';
import { type FoundResource, indexResources, type ResourceIndex } from './find.ts';
import { makeInstanceConfig } from './install-config.ts';
import { listLost } from './lost.ts';
import { makeFile, type Made } from './make.ts';
import { AGENT_PATHS, createPaths, IMAGE_BASED_PATHS, type ToPath } from './places.ts';
import { findSetImage, listManifests } from './references.ts';
import { judgeInstance } from './rules.ts';
import {
  type Conversion,
  type InstanceDocument,
  readInstance,
  type SiteFlow,
  type Spec,
} from './shape.ts';

/* Owns the conversion of a ClusterInstance, or of what is read as one, for either flow. */

export function convertInstance(
  instance: FoundResource,
  resources: readonly FoundResource[],
  asked: SiteFlow | undefined,
): Made {
  const index = indexResources(resources, instance.namespace);
  return convertDocument(readInstance(instance), index, asked);
}

export function convertDocument(
  document: InstanceDocument,
  index: ResourceIndex,
  asked: SiteFlow | undefined,
): Made {
  if (document.isBroken) return { files: [], problems: document.problems, warnings: [], index };
  const { spec = {} } = document.value;
  const { nodes = [] } = spec;
  const problems = [...document.problems];
  const warnings = [...document.warnings];
  const found = findFlow(document, spec, asked);
  if (found.problem) problems.push(found.problem);
  const { flow } = found;
  const conversion: Conversion = { spec, nodes, index, document, problems, warnings, flow };
  append(problems, judgeInstance(conversion));
  const files = convertSpec(conversion);
  const told = new Set(problems.map(({ path }) => path));
  append(
    warnings,
    listLost(conversion).filter(({ path }) => !told.has(path)),
  );
  const release = findSetImage(index, spec.clusterImageSetNameRef);
  return { files, problems, warnings, index, release };
}

type FoundFlow = { readonly flow: SiteFlow; readonly problem?: DocumentProblem };

/** The names of the templates that siteconfig brings along tell the flow. */
function findFlow(
  document: Conversion['document'],
  spec: Spec,
  asked: SiteFlow | undefined,
): FoundFlow {
  const ofCluster = listTemplates(spec.templateRefs, 'spec.templateRefs');
  const first = ofCluster.find(({ flow }) => flow !== undefined);
  const flow = first?.flow ?? asked;
  if (flow === undefined) return { flow: 'agent', problem: reportUnknown(document, ofCluster) };
  const wanted = asked ?? flow;
  const other = [...ofCluster, ...listNodeTemplates(spec)].find(
    (each) => each.flow !== undefined && each.flow !== wanted,
  );
  if (!other?.flow) return { flow };
  const whose = asked ? `--flow is ${asked}` : `${first?.name ?? ''} is for the flow ${flow}`;
  const problem = `${other.name} is for the flow ${other.flow}, but ${whose}`;
  return { flow, problem: document.report(other.path, problem) };
}

function reportUnknown(
  { report }: Conversion['document'],
  templates: readonly Template[],
): DocumentProblem {
  const names = templates.map(({ name }) => name).join(', ');
  const why =
    names === ''
      ? 'missing cluster-level template reference'
      : `${names}: names of templates tell the flow by ai- or ibi-, and these do not`;
  const hint = 'say it with --flow agent or --flow image-based';
  return report('spec.templateRefs', why, { hint });
}

type Template = {
  readonly name: string;
  readonly path: string;
  readonly flow: SiteFlow | undefined;
};

const listNodeTemplates = ({ nodes = [] }: Spec): readonly Template[] =>
  nodes.flatMap(({ templateRefs }, index) =>
    listTemplates(templateRefs, `spec.nodes[${index}].templateRefs`),
  );

const listTemplates = (references: Spec['templateRefs'] = [], path: string): readonly Template[] =>
  references.map(({ name = '' }, index) => ({
    name,
    path: `${path}[${index}]`,
    flow: name.startsWith('ibi-') ? 'image-based' : name.startsWith('ai-') ? 'agent' : undefined,
  }));

/** The files of a site whose resources were read. */
export function convertSpec(conversion: Conversion): SiteInput['files'] {
  const { document, flow, spec, more } = conversion;
  const write = (path: string, value: object, toPath: ToPath) =>
    makeFile(path, { value, placeOf: (written) => ({ document, path: toPath(written) }) });
  const references = (spec.extraManifestsRefs ?? []).map(({ name = '' }, at) => ({
    place: { document, path: `spec.extraManifestsRefs[${at}]` },
    name,
  }));
  return [
    makeFile(INSTALL_FILE, makeInstanceConfig(conversion)),
    flow === 'agent'
      ? write(AGENT_FILE, mapAgentConfig(conversion), createPaths(AGENT_PATHS))
      : write(
          IMAGE_BASED_FILE,
          { ...mapImageBased(conversion), ...more?.imageBased },
          createPaths(IMAGE_BASED_PATHS),
        ),
    ...listManifests(conversion, references, MANIFESTS_OF[flow]),
  ];
}

const mapAgentConfig = ({ spec, nodes, document }: Conversion): object => ({
  apiVersion: 'v1beta1',
  kind: 'AgentConfig',
  metadata: { name: spec.clusterName ?? '' },
  ...withoutUndefined({ rendezvousIP: readRendezvousAnnotation(document.value.metadata) }),
  additionalNTPSources: spec.additionalNTPSources ?? [],
  hosts: nodes.map(
    ({ hostName, role = 'master', rootDeviceHints, nodeNetwork, bootMACAddress }) => {
      const { interfaces = [], config } = nodeNetwork ?? {};
      const boot = [{ name: 'boot', macAddress: bootMACAddress }];
      return withoutUndefined({
        hostname: hostName,
        role,
        rootDeviceHints,
        interfaces: interfaces.length > 0 ? interfaces : boot,
        networkConfig: config,
      });
    },
  ),
});

function mapImageBased({ spec, nodes, document, problems }: Conversion): object {
  const [node = {}, ...others] = nodes;
  if (others.length > 0 || nodes.length === 0) {
    const why = `a site from a seed has exactly one node, and this one has ${nodes.length}`;
    problems.push(document.report('spec.nodes', why));
  }
  return withoutUndefined({
    apiVersion: 'v1beta1',
    kind: 'ImageBasedConfig',
    metadata: { name: spec.clusterName ?? '' },
    hostname: node.hostName,
    additionalNTPSources: spec.additionalNTPSources ?? [],
    networkConfig: node.nodeNetwork?.config,
    nodeLabels: node.nodeLabels,
  });
}
