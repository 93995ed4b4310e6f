import type { FileProblem } from '../../base/errors.ts';
import { objectOrEmpty } from '../../base/lists.ts';
import { formatGoYaml } from '../../openshift/agent/go-yaml.ts';
import { nameCluster, type Site, type SiteFile } from '../site.ts';
import { agentResourcesOf } from './agent-resources.ts';
import { hostResourcesOf, imageClusterInstallOf, nameHost } from './bare-metal-hosts.ts';
import { clusterInstanceOf } from './cluster-instance.ts';
import type { FindController } from './host-table.ts';
import { listExportHosts } from './hosts.ts';
import { tellLost } from './lost.ts';
import { addonsOf, importSecretOf, managedClusterOf } from './managed-cluster.ts';
import {
  bundleOf,
  controllerSecretsOf,
  manifestMapsOf,
  namespaceOf,
  pullSecretOf,
} from './payloads.ts';
import {
  createTelling,
  type ExportSettings,
  type Members,
  type SiteExport,
} from './site-export.ts';

/*
 * Entry of the folder: a checked site comes in, and the files leave that other tools take in place of its own.
 * It must not know where the files are written.
 */

/** A file of YAML documents; all of them may have secrets. */
export type ExportedFile = { readonly name: string; readonly text: string };

export type ExportedSite = {
  readonly files: readonly ExportedFile[];
  /** With an error among them, the files must not be used. */
  readonly findings: readonly FileProblem[];
};

export type ExportInput = {
  readonly site: Site;
  /** The files that the site was made of: manifests are taken as they were written. */
  readonly files: readonly SiteFile[];
  readonly find: FindController;
  /** The kubeconfig that a build of the site wrote. */
  readonly kubeconfig?: string | undefined;
};

export function exportSite(
  { site, files, find, kubeconfig }: ExportInput,
  settings: ExportSettings,
): ExportedSite {
  const findings: FileProblem[] = [];
  const { clusterName: cluster, baseDomain } = nameCluster(site);
  const exported: SiteExport = {
    ...settings,
    site,
    cluster,
    baseDomain,
    files,
    kubeconfig,
    hosts: listExportHosts(site, find),
    warn: createTelling(files, findings, 'warning'),
    refuse: createTelling(files, findings, 'error'),
  };
  return { files: toFiles(FORMS[settings.form](exported)), findings };
}

type Documents = Readonly<Record<string, readonly Members[]>>;

const FORMS: Readonly<Record<ExportSettings['form'], (exported: SiteExport) => Documents>> = {
  'clusterinstance': exportClusterInstance,
  'bmh': exportHosts,
  'acm-import': exportImport,
};

function exportClusterInstance(exported: SiteExport): Documents {
  tellLost(exported);
  const maps = manifestMapsOf(exported);
  return {
    ...exportPayloads(exported, maps),
    ...exportBundle(exported),
    'clusterinstance.yaml': [clusterInstanceOf(exported, maps.map(nameOf))],
  };
}

function exportHosts(exported: SiteExport): Documents {
  tellLost(exported);
  const { site, hosts } = exported;
  const maps = manifestMapsOf(exported);
  const names = maps.map(nameOf);
  return {
    ...exportPayloads(exported, maps),
    ...exportBundle(exported),
    'cluster.yaml':
      site.kind === 'agent'
        ? agentResourcesOf(exported, site.cluster, names)
        : imageClusterInstallOf(exported, site, names),
    'hosts.yaml': hosts.flatMap((host, index) => hostResourcesOf(exported, host, index)),
  };
}

function exportImport(exported: SiteExport): Documents {
  const { kubeconfig, warn } = exported;
  const place = { file: exported.site.name, path: '' };
  if (kubeconfig === undefined) {
    const problem = 'no kubeconfig of the site was found: no Secret that imports it is written';
    warn(place, problem, 'name the folder of "config-iso build" with --built');
  }
  return {
    'namespace.yaml': [namespaceOf(exported)],
    ...(kubeconfig !== undefined && { 'secrets.yaml': [importSecretOf(exported, kubeconfig)] }),
    'managed-cluster.yaml': [managedClusterOf(exported), addonsOf(exported)],
  };
}

/** A file for each map: a file of a site may not be larger than one. */
function exportPayloads(exported: SiteExport, maps: readonly Members[]): Documents {
  const controllers = exported.hosts.flatMap((host, index) =>
    controllerSecretsOf(exported, nameHost(exported, host, index), host),
  );
  return {
    'namespace.yaml': [namespaceOf(exported)],
    'secrets.yaml': [pullSecretOf(exported), ...controllers],
    ...Object.fromEntries(maps.map((map) => [`${nameOf(map)}.yaml`, [map]])),
  };
}

/** The bundle of a cluster that agents install is among its overrides: a hub's templates leave it out. */
function exportBundle(exported: SiteExport): Documents {
  const { site } = exported;
  const bundle = site.kind === 'agent' ? undefined : site.install.additionalTrustBundle;
  return bundle === undefined ? {} : { 'ca-bundle.yaml': [bundleOf(exported, bundle)] };
}

const nameOf = ({ metadata }: Members): string => String(objectOrEmpty(metadata)['name']);

/** The list of the files comes last: a reader that finds it finds the others. */
function toFiles(documents: Documents): readonly ExportedFile[] {
  const files = Object.entries(documents).map(([name, resources]) => ({
    name,
    text: resources.map((resource) => formatGoYaml(resource)).join('---\n'),
  }));
  const list = {
    apiVersion: 'kustomize.config.k8s.io/v1beta1',
    kind: 'Kustomization',
    resources: files.map(({ name }) => name),
  };
  return [...files, { name: 'kustomization.yaml', text: formatGoYaml(list) }];
}
