import { stringify } from 'yaml';
import type { DocumentProblem } from '../../base/errors.ts';
import { append, withoutUndefined } from '../../base/lists.ts';
import type { SiteFile, SiteInput, SitePlacesOfValues } from '../site.ts';
import { readRendezvousAnnotation } from './annotations.ts';
import { findResources, indexResources, readResourceTexts } from './find.ts';
import { mapInstallConfig } from './install-config.ts';
import { listLost } from './lost.ts';
import { AGENT_PATHS, createPaths, IMAGE_BASED_PATHS, INSTALL_PATHS } from './places.ts';
import { judgeInstance } from './rules.ts';
import { type Conversion, readInstance, type SiteFlow, type Spec } from './shape.ts';

/*
 * Owns ClusterInstances as inputs: the resources of a site come in, and the files that openshift-install would
 * read leave, with the places of their values in the resources.
 */

const KIND = 'ClusterInstance';

/** The files of a site that has resources in place of them. */
export function convertResources(
  { name, files }: SiteInput,
  asked: SiteFlow | undefined,
): SiteInput {
  const resources = findResources(files);
  const instances = resources.filter(({ kind }) => kind === KIND);
  const [instance] = instances;
  if (!instance || instances.length > 1) {
    const problem =
      instances.length === 0
        ? 'has no install-config.yaml, and no ClusterInstance in its place'
        : `has ${instances.length} ClusterInstances, but a folder is one site`;
    return { name, files: [], problems: [refuseSource(files[0]?.shownAs ?? name, problem)] };
  }
  const document = readInstance(instance);
  if (document.isBroken) return { name, files: [], problems: document.problems };
  const { spec = {} } = document.value;
  const { nodes = [] } = spec;
  const problems = [...document.problems];
  const warnings = [...document.warnings];
  const found = findFlow(document, spec, asked);
  if (found.problem) problems.push(found.problem);
  const conversion: Conversion = {
    spec,
    nodes,
    find: indexResources(resources, instance.namespace),
    document,
    problems,
    warnings,
    flow: found.flow,
  };
  append(problems, judgeInstance(conversion));
  const converted = convertSpec(conversion);
  append(warnings, listLost(conversion));
  return { name, files: converted, problems, warnings };
}

export const refuseSource = (file: string, problem: string): DocumentProblem => ({
  severity: 'error',
  code: 'sites.input',
  file,
  path: '',
  problem,
  line: 1,
  column: 1,
  lineText: '',
});

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

/** The files of a site whose resources were read. */
export function convertSpec(conversion: Conversion): readonly SiteFile[] {
  const { document, flow, spec, more } = conversion;
  const { report, lineOf } = document;
  const write = (path: string, value: object, toPath: SitePlacesOfValues['toPath']): SiteFile => ({
    path,
    bytes: Buffer.from(stringify(value)),
    shownAs: document.file,
    places: { report, lineOf, toPath },
  });
  const folder = flow === 'agent' ? 'openshift' : 'extra-manifests';
  return [
    write(
      'install-config.yaml',
      { ...mapInstallConfig(conversion), ...more?.install },
      createPaths(INSTALL_PATHS),
    ),
    flow === 'agent'
      ? write('agent-config.yaml', mapAgentConfig(conversion), createPaths(AGENT_PATHS))
      : write(
          'image-based-config.yaml',
          { ...mapImageBased(conversion), ...more?.imageBased },
          createPaths(IMAGE_BASED_PATHS),
        ),
    ...listManifests(conversion, folder, spec),
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

function listManifests(
  { find, document, problems }: Conversion,
  folder: string,
  { extraManifestsRefs = [] }: Spec,
): readonly SiteFile[] {
  const seen = new Set<string>();
  return extraManifestsRefs.flatMap(({ name = '' }, index) => {
    const path = `spec.extraManifestsRefs[${index}]`;
    const map = find('ConfigMap', name);
    if (!map) {
      problems.push(
        document.report(path, `ConfigMap "${name}" is not among the files of the site`),
      );
      return [];
    }
    return [...readResourceTexts(map)].flatMap(([key, text]) => {
      const isSafe = /^[-._a-zA-Z0-9]+$/.test(key) && !/^\.+$/.test(key);
      const why = seen.has(key) ? 'is in another ConfigMap, too' : 'is not the name of a file';
      if (seen.has(key) || !isSafe) problems.push(document.report(path, `key "${key}" ${why}`));
      seen.add(key);
      const shownAs = `${map.file.shownAs}#${key}`;
      return isSafe ? [{ path: `${folder}/${key}`, bytes: Buffer.from(text), shownAs }] : [];
    });
  });
}
