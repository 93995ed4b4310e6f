import { randomUUID } from 'node:crypto';
import { showTenant, type Identity } from './auth/identity.ts';
import {
  addWarnings,
  BASE_PATH,
  identify,
  NO_EXPIRY,
  noteChange,
  readBody,
  toTime,
  type App,
  type Exchange,
  type Service,
} from './context.ts';
import { ApiFailure, notFound, requireUuid } from './openapi.ts';
import { minorOf } from '../openshift/release/version.ts';
import { listPage } from './pages.ts';
import type { StoredRecord } from './state/state.ts';
import { findMeant, newestOf } from './store/versions.ts';

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

/**
 * Adds `v2RegisterDisconnectedCluster`, `v2GetCluster`, `v2ListClusters`, `V2DeregisterCluster`,
 * `v2GetClusterDefaultConfig`, and the refusals of `v2RegisterCluster` and `v2UpdateCluster`.
 */
export function addClusterRoutes(app: App, service: Service): void {
  const clusters = `${BASE_PATH}/v2/clusters`;
  app.post(`${clusters}/disconnected`, (exchange) => createCluster(service, exchange));
  app.post(clusters, async (exchange) => {
    await identify(service, exchange);
    throw new ApiFailure(
      400,
      'this service installs nothing itself: POST to /v2/clusters/disconnected',
    );
  });
  app.get(clusters, (exchange) => listClusters(service, exchange));
  app.get(`${clusters}/default-config`, async (exchange) => {
    await identify(service, exchange);
    return exchange.json(DEFAULT_CONFIG);
  });
  app.get(`${clusters}/:cluster_id`, async (exchange) => {
    const record = await findAsked(service, exchange);
    return exchange.json(formatCluster(record));
  });
  app.patch(`${clusters}/:cluster_id`, async (exchange) => {
    const record = await findAsked(service, exchange);
    throw new ApiFailure(
      409,
      `Cluster ${record.id} is in unmonitored state, cluster can be updated only in one of ` +
        '[insufficient ready pending-for-input adding-hosts]',
    );
  });
  app.delete(`${clusters}/:cluster_id`, async (exchange) => {
    await removeCluster(service, exchange);
    return exchange.body(null, 204);
  });
}

/** Defaults of OpenShift, as the form of a client shows them. */
const DEFAULT_CONFIG = {
  cluster_network_cidr: '10.128.0.0/14',
  cluster_network_host_prefix: 23,
  cluster_networks_ipv4: [{ cidr: '10.128.0.0/14', host_prefix: 23 }],
  cluster_networks_dualstack: [
    { cidr: '10.128.0.0/14', host_prefix: 23 },
    { cidr: 'fd01::/48', host_prefix: 64 },
  ],
  service_network_cidr: '172.30.0.0/16',
  service_networks_ipv4: [{ cidr: '172.30.0.0/16' }],
  service_networks_dualstack: [{ cidr: '172.30.0.0/16' }, { cidr: 'fd02::/112' }],
  ntp_source: '',
  forbidden_hostnames: [
    'localhost',
    'localhost.localdomain',
    'localhost4',
    'localhost4.localdomain4',
    'localhost6',
    'localhost6.localdomain6',
  ],
};

async function listClusters(service: Service, exchange: Exchange): Promise<Response> {
  const { tenant } = await identify(service, exchange);
  const installed = exchange.req.query('openshift_cluster_id');
  if (installed !== undefined) {
    requireUuid(installed, 'openshift_cluster_id', 'query');
    return exchange.json([]); // the service hears of no installed cluster
  }
  const page = await listPage(service, exchange, { collection: 'clusters', tenant });
  return exchange.json(page.map((record) => formatCluster(record as ClusterRecord)));
}

/** Also removes an unreadable cluster. Its InfraEnvs stay, as in assisted-service; a warning names them. */
async function removeCluster(service: Service, exchange: Exchange): Promise<void> {
  const { tenant } = await identify(service, exchange);
  const id = requireUuid(exchange.req.param('cluster_id') ?? '', 'cluster_id');
  const head = await service.state.find('clusters', id);
  if (head?.tenant !== tenant) {
    throw new ApiFailure(404, `Failed to get cluster ${id}: record not found`);
  }
  await service.state.remove('clusters', id);
  await noteChange(service, exchange, { event: 'cluster.delete', id, revision: head.revision });
  const { records, damaged } = await service.state.list('infra-envs', { tenant, parent: id });
  const left = [...records.map((each) => each.id), ...damaged];
  if (left.length === 0) return;
  addWarnings(service, exchange, [
    `infra envs of the cluster stay until they are deleted: ${left.join(' ')}`,
  ]);
}

async function findAsked(service: Service, exchange: Exchange): Promise<ClusterRecord> {
  const identity = await identify(service, exchange);
  const id = requireUuid(exchange.req.param('cluster_id') ?? '', 'cluster_id');
  return findRecord(service, id, identity);
}

export async function findCluster(
  service: Pick<Service, 'state'>,
  id: string,
  identity: Pick<Identity, 'tenant'>,
): Promise<Cluster> {
  const record = await findRecord(service, id, identity);
  return { ...record.body, id };
}

/** Adds `v2ListSupportedOpenshiftVersions`: what the store has. */
export function addVersionRoutes(app: App, service: Service): void {
  app.get(`${BASE_PATH}/v2/openshift-versions`, async (exchange) => {
    await identify(service, exchange);
    return exchange.json(await listVersions(service, exchange.req.query()));
  });
}

async function createCluster(service: Service, exchange: Exchange): Promise<Response> {
  const { user, tenant } = await identify(service, exchange);
  const { name, openshift_version: asked } = await readBody<
    Pick<Cluster, 'name' | 'openshift_version'>
  >(service, exchange, 'disconnected-cluster-create-params');
  if (asked === '') throw new ApiFailure(400, 'OpenShift version is required');
  // A version that the store does not have is refused when an InfraEnv asks for its medium.
  const openshift_version = findMeant(await service.releases.list(), asked) ?? asked;
  const created_at = toTime(service.now());
  const body = { name, openshift_version, user_name: user, created_at };
  const record = { id: randomUUID(), tenant, revision: 1, body };
  await service.state.create('clusters', record);
  const { id, revision } = record;
  const version = openshift_version;
  await noteChange(service, exchange, { event: 'cluster.create', id, revision, version });
  return exchange.json(formatCluster(record), 201);
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
  org_id: showTenant(tenant),
  created_at: body.created_at,
  updated_at: body.created_at,
  status_updated_at: body.created_at,
  hosts: [],
  // Models of clients require it, with a value; the images are those of InfraEnvs.
  image_info: { created_at: body.created_at, expires_at: NO_EXPIRY },
});

export async function findRecord(
  service: Pick<Service, 'state'>,
  id: string,
  { tenant }: Pick<Identity, 'tenant'>,
): Promise<ClusterRecord> {
  const record = await service.state.read('clusters', id, tenant);
  if (!record) throw notFound();
  return record as ClusterRecord;
}

type VersionQuery = { readonly version?: string; readonly only_latest?: string };

async function listVersions(
  { releases }: Service,
  { version: start = '', only_latest: only }: VersionQuery,
): Promise<object> {
  const versions = new Map<string, string[]>();
  for (const { version, architecture } of await releases.list()) {
    if (!version.startsWith(start)) continue;
    versions.set(version, [...(versions.get(version) ?? []), architecture]);
  }
  const all = [...versions.keys()];
  const newest = newestOf(all);
  return Object.fromEntries(
    [...versions]
      .filter(
        ([version]) => only !== 'true' || version === newestOf(all.filter(isOfMinor(version))),
      )
      .map(([version, architectures]) => [
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

const isOfMinor = (version: string) => (each: string) => minorOf(each) === minorOf(version);
