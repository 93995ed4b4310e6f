import { isText } from '../../base/text/utf8.ts';
import { namePullSecret } from '../../openshift/agent/cluster-manifests.ts';
import { formatGoYaml } from '../../openshift/agent/go-yaml.ts';
import { findPayloadFaults } from '../../openshift/node/payloads.ts';
import { listExtraManifests } from '../manifests.ts';
import { listManifestFiles } from '../agent/manifests.ts';
import { MAX_FILE } from '../sources/list.ts';
import type { HostController } from './host-table.ts';
import type { ExportPlace, Members, SiteExport } from './site-export.ts';
import { MANIFESTS_OF } from '../site.ts';

/* Owns the Secrets, ConfigMaps and the Namespace of a site. */

export const namespaceOf = ({ cluster }: SiteExport): Members => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: cluster },
});

/** Metadata of an object in the namespace of the cluster. */
export const metadataOf = ({ cluster }: SiteExport, name: string, more: Members = {}): Members => ({
  name,
  namespace: cluster,
  ...more,
});

export const secretOf = (
  exported: SiteExport,
  name: string,
  {
    type = 'Opaque',
    texts,
  }: { readonly type?: string; readonly texts: Readonly<Record<string, string>> },
): Members => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: metadataOf(exported, name),
  type,
  data: Object.fromEntries(
    Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString('base64')]),
  ),
});

export function pullSecretOf(exported: SiteExport): Members {
  const { site, cluster } = exported;
  const { pullSecret } = site.kind === 'agent' ? site.cluster : site.install;
  return secretOf(exported, namePullSecret(cluster), {
    type: 'kubernetes.io/dockerconfigjson',
    texts: { '.dockerconfigjson': pullSecret },
  });
}

export const controllerSecretNameOf = (host: string): string => `${host}-bmc-secret`;

/** Empty if the credentials are not known. */
export function controllerSecretsOf(
  exported: SiteExport,
  name: string,
  { controller, place }: { readonly controller?: HostController; readonly place: ExportPlace },
): readonly Members[] {
  if (controller === undefined) return [];
  const { username, password } = controller;
  const secret = controllerSecretNameOf(name);
  if (username !== undefined && password !== undefined) {
    return [secretOf(exported, secret, { texts: { username, password } })];
  }
  const problem = `user and password of the controller of ${name} are not known: no Secret "${secret}" is written`;
  exported.warn(place, problem, 'name them in the table of --hosts');
  return [];
}

export const BUNDLE_NAME = 'ca-bundle';

export const bundleOf = (exported: SiteExport, text: string): Members => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: metadataOf(exported, BUNDLE_NAME),
  data: { 'tls-ca-bundle.pem': text },
});

/** Bytes of manifests in one ConfigMap: half of what the API takes. */
const MAX_MAP = 512 << 10;

/** The manifests of a site in ConfigMaps, in their order; several if they are large. */
export function manifestMapsOf(exported: SiteExport): readonly Members[] {
  const groups: { size: number; readonly data: Record<string, string> }[] = [];
  for (const { name, bytes, place } of listManifests(exported)) {
    const why = explainUnfit(name, bytes);
    if (why !== undefined) {
      exported.refuse(place, `the manifest cannot be in a ConfigMap: ${why}`);
      continue;
    }
    const last = groups.at(-1);
    const group = last && last.size + bytes.length <= MAX_MAP ? last : { size: 0, data: {} };
    if (group !== last) groups.push(group);
    group.size += bytes.length;
    group.data[name] = Buffer.from(bytes).toString('utf8');
  }
  return groups.map(({ data }, index) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: metadataOf(exported, index === 0 ? MANIFESTS_NAME : `${MANIFESTS_NAME}-${index + 1}`),
    data,
  }));
}

const MANIFESTS_NAME = 'extra-manifests';

type PlacedManifest = {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly place: ExportPlace;
};

function listManifests({ site, files }: SiteExport): readonly PlacedManifest[] {
  // Whole files: the reader of a site cuts them into documents.
  const found = site.kind === 'agent' ? listManifestFiles(files) : listExtraManifests(files);
  const folder = MANIFESTS_OF[site.kind];
  return found.map(({ name, bytes }) => ({
    name,
    bytes,
    place: { file: `${folder}/${name}`, path: '' },
  }));
}

function explainUnfit(name: string, bytes: Uint8Array): string | undefined {
  if (!isText(bytes)) return 'it is not UTF-8';
  const data = { [name]: Buffer.from(bytes).toString('utf8') };
  const [fault] = findPayloadFaults({ kind: 'ConfigMap', data });
  if (fault) return `"${name}" ${fault.problem}`;
  return formatGoYaml({ data }).length > MAX_FILE ? 'it is too large' : undefined;
}
