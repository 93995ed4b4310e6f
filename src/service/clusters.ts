import { randomUUID } from 'node:crypto';
import type { Identity } from './auth/identity.ts';
import {
  addWarnings,
  BASE_PATH,
  identify,
  readBody,
  toTime,
  type App,
  type Exchange,
  type Service,
} from './context.ts';
import { ApiFailure, notFound, requireUuid } from './openapi.ts';
import { listPage } from './pages.ts';
import type { StoredRecord } from './state/state.ts';

/* Owns the routes of clusters and of versions. */

/** Stored part of a cluster. It never changes. */
type ClusterBody = {
  readonly name: string;
  readonly openshift_version: string;
  readonly user_name: string;
  readonly created_at: string;
};

type ClusterRecord = Omit<StoredRecord, 'body'> & { readonly body: ClusterBody };

/** Cluster that holds the configuration of media; the service installs nothing itself. */
export type Cluster = ClusterBody & { readonly id: string };

/** Adds `v2RegisterDisconnectedCluster`, `v2GetCluster`, `v2ListClusters`, `V2DeregisterCluster`. */
export function addClusterRoutes(app: App, service: Service): void {
  const clusters = `${BASE_PATH}/v2/clusters`;
  app.post(`${clusters}/disconnected`, (exchange) => createCluster(service, exchange));
  app.get(clusters, async (exchange) => {
    const { tenant } = await identify(service, exchange);
    const page = await listPage(service, exchange, { collection: 'clusters', tenant });
    return exchange.json(page.map((record) => formatCluster(record as ClusterRecord)));
  });
  app.get(`${clusters}/:cluster_id`, async (exchange) => {
    const identity = await identify(service, exchange);
    const id = requireUuid(exchange.req.param('cluster_id'), 'cluster_id');
    return exchange.json(formatCluster(await findRecord(service, id, identity)));
  });
  app.delete(`${clusters}/:cluster_id`, async (exchange) => {
    const identity = await identify(service, exchange);
    const id = requireUuid(exchange.req.param('cluster_id'), 'cluster_id');
    await removeCluster(service, exchange, { id, tenant: identity.tenant });
    return exchange.body(null, 204);
  });
}

/** Finds a cluster of the tenant. @throws ApiFailure 404 */
export async function findCluster(
  service: Pick<Service, 'state'>,
  id: string,
  identity: Pick<Identity, 'tenant'>,
): Promise<Cluster> {
  const record = await findRecord(service, id, identity);
  return { ...record.body, id };
}

/** Adds `v2ListSupportedOpenshiftVersions`, and the list of offline releases that the wizard requests. */
export function addVersionRoutes(app: App, service: Service): void {
  for (const name of ['openshift-versions', 'offline-openshift-versions']) {
    app.get(`${BASE_PATH}/v2/${name}`, async (exchange) => {
      await identify(service, exchange);
      const asked = exchange.req.query('version') ?? '';
      return exchange.json(await listVersions(service, asked));
    });
  }
}

async function createCluster(service: Service, exchange: Exchange): Promise<Response> {
  const { user, tenant } = await identify(service, exchange);
  const { name, openshift_version } = await readBody<Pick<Cluster, 'name' | 'openshift_version'>>(
    service,
    exchange,
    'disconnected-cluster-create-params',
  );
  if (name === '') throw new ApiFailure(400, 'cluster name is required');
  if (openshift_version === '') throw new ApiFailure(400, 'OpenShift version is required');
  const created_at = toTime(service.now());
  const body = { name, openshift_version, user_name: user, created_at };
  const record = { id: randomUUID(), tenant, revision: 1, body };
  await service.state.create('clusters', record);
  return exchange.json(formatCluster(record), 201);
}

/**
 * Removes a cluster, also one that cannot be read. Its InfraEnvs stay, as in assisted-service, and a
 * warning names them.
 *
 * @throws ApiFailure 404
 */
async function removeCluster(
  service: Service,
  exchange: Exchange,
  { id, tenant }: { readonly id: string; readonly tenant: string },
): Promise<void> {
  const head = await service.state.find('clusters', id);
  if (head?.tenant !== tenant) throw notFound('cluster', id);
  await service.state.remove('clusters', id);
  const { records, damaged } = await service.state.list('infra-envs', { tenant, parent: id });
  const left = [...records.map((each) => each.id), ...damaged];
  if (left.length === 0) return;
  addWarnings(service, exchange, [
    `infra envs of the cluster stay, without images, until they are deleted: ${left.join(' ')}`,
  ]);
}

const formatCluster = ({ id, tenant, body }: ClusterRecord): object => ({
  id,
  href: `${BASE_PATH}/v2/clusters/${id}`,
  kind: 'DisconnectedCluster',
  status: 'unmonitored',
  status_info: 'Cluster created for offline installation',
  name: body.name,
  openshift_version: body.openshift_version,
  user_name: body.user_name,
  org_id: tenant.replace(/^org /, ''),
  created_at: body.created_at,
  updated_at: body.created_at,
  hosts: [],
});

async function findRecord(
  service: Pick<Service, 'state'>,
  id: string,
  { tenant }: Pick<Identity, 'tenant'>,
): Promise<ClusterRecord> {
  const record = await service.state.read('clusters', id, tenant);
  if (!record) throw notFound('cluster', id);
  return record as ClusterRecord;
}

async function listVersions({ releases }: Service, start: string): Promise<object> {
  const versions = new Map<string, string[]>();
  for (const { version, architecture } of await releases.list()) {
    if (!version.startsWith(start)) continue;
    versions.set(version, [...(versions.get(version) ?? []), architecture]);
  }
  const [newest] = [...versions.keys()].sort(byNumbers).reverse();
  return Object.fromEntries(
    [...versions].map(([version, architectures]) => [
      version,
      {
        display_name: version,
        support_level: 'production',
        cpu_architectures: [...new Set(architectures)],
        default: version === newest,
      },
    ]),
  );
}

const byNumbers = (a: string, b: string): number => a.localeCompare(b, 'en', { numeric: true });
