import type { DocumentProblem } from '../../base/errors.ts';
import { append, withoutUndefined } from '../../base/lists.ts';
import type { SiteInput } from '../site.ts';
import { readRendezvousAnnotation } from './annotations.ts';
import { type FoundResource, indexResources } from './find.ts';
import { mapInstallConfig } from './install-config.ts';
import { listLost } from './lost.ts';
import { makeFile, type Made } from './make.ts';
import {
  AGENT_PATHS,
  createPaths,
  IMAGE_BASED_PATHS,
  INSTALL_PATHS,
  type ToPath,
} from './places.ts';
import { listManifests } from './references.ts';
import { judgeInstance } from './rules.ts';
import { type Conversion, readInstance, type SiteFlow, type Spec } from './shape.ts';

/* Owns the conversion of a ClusterInstance, for either flow. */

export function convertInstance(
  instance: FoundResource,
  resources: readonly FoundResource[],
  asked: SiteFlow | undefined,
): Made {
  const index = indexResources(resources, instance.namespace);
  const document = readInstance(instance);
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
  const files = convert(conversion);
  append(warnings, listLost(conversion));
  return { files, problems, warnings, index };
}

/** The names of the templates that siteconfig brings along tell the flow. */
function findFlow(
  { report }: Conversion['document'],
  { templateRefs = [] }: Spec,
  asked: SiteFlow | undefined,
): { readonly flow: SiteFlow; readonly problem?: DocumentProblem } {
  const names = templateRefs.map(({ name = '' }) => name);
  const known = names.map((name): SiteFlow | undefined =>
    name.startsWith('ibi-') ? 'image-based' : name.startsWith('ai-') ? 'agent' : undefined,
  );
  const [first] = known.filter((flow) => flow !== undefined);
  const flow = first ?? asked ?? 'agent';
  const path = 'spec.templateRefs';
  if (first !== undefined && asked !== undefined && first !== asked) {
    const problem = report(
      path,
      `${names.join(', ')} are for the flow ${first}, but --flow is ${asked}`,
    );
    return { flow, problem };
  }
  if (first !== undefined || asked !== undefined) return { flow };
  const why =
    names.length === 0
      ? 'missing cluster-level template reference'
      : `${names.join(', ')}: names of templates tell the flow by ai- or ibi-, and these do not`;
  return {
    flow,
    problem: report(path, why, { hint: 'say it with --flow agent or --flow image-based' }),
  };
}

function convert(conversion: Conversion): SiteInput['files'] {
  const { document, flow, spec } = conversion;
  const write = (path: string, value: object, toPath: ToPath) =>
    makeFile(path, { value, placeOf: (written) => ({ document, path: toPath(written) }) });
  const references = (spec.extraManifestsRefs ?? []).map(({ name = '' }, at) => ({
    place: { document, path: `spec.extraManifestsRefs[${at}]` },
    name,
  }));
  return [
    write('install-config.yaml', mapInstallConfig(conversion), createPaths(INSTALL_PATHS)),
    flow === 'agent'
      ? write('agent-config.yaml', mapAgentConfig(conversion), createPaths(AGENT_PATHS))
      : write('image-based-config.yaml', mapImageBased(conversion), createPaths(IMAGE_BASED_PATHS)),
    ...listManifests(conversion, references, flow === 'agent' ? 'openshift' : 'extra-manifests'),
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
