import { isDeepStrictEqual } from 'node:util';
import { findFirstAddress, WITHOUT_RENDEZVOUS } from '../../openshift/agent/rendezvous.ts';
import type { Identity } from '../auth/identity.ts';
import { findCluster, type Cluster } from '../clusters.ts';
import {
  addWarnings,
  BASE_PATH,
  identify,
  readBody,
  type App,
  type Exchange,
  type Service,
} from '../context.ts';
import { endUrls, NO_EXPIRY, signImageUrl } from '../images/urls.ts';
import { listHosts } from '../images/values.ts';
import { ApiFailure, notFound, requireUuid } from '../openapi.ts';
import { draftChange, draftNew, isFilled } from './drafts.ts';
import {
  isBoundTo,
  toInfraEnv,
  toRecord,
  type InfraEnv,
  type InfraEnvParams,
} from './infra-env.ts';
import { checkNetworks } from './networks.ts';
import { checkSettings, checkSize, IMAGE_TYPE } from './rules.ts';

/**
 * Adds `RegisterInfraEnv`, `ListInfraEnvs`, `GetInfraEnv`, `UpdateInfraEnv`, `DeregisterInfraEnv`,
 * `v2RegisterHost`.
 */
export function addInfraEnvRoutes(app: App, service: Service): void {
  const infraEnvs = `${BASE_PATH}/v2/infra-envs`;
  const one = `${infraEnvs}/:infra_env_id`;
  app.post(infraEnvs, (exchange) => createInfraEnv(service, exchange));
  app.get(infraEnvs, async (exchange) => {
    const { tenant } = await identify(service, exchange);
    const cluster = exchange.req.query('cluster_id');
    const all = await service.state.list('infra-envs', tenant);
    const asked = all
      .filter((record) => cluster === undefined || isBoundTo(record, cluster))
      .map((record) => toInfraEnv(service.key, record));
    return exchange.json(
      await Promise.all(asked.map((each) => formatInfraEnv(service, exchange, each))),
    );
  });
  app.get(one, async (exchange) => {
    const infraEnv = await findAsked(service, exchange);
    return exchange.json(await formatInfraEnv(service, exchange, infraEnv));
  });
  app.patch(one, (exchange) => updateInfraEnv(service, exchange));
  app.delete(one, async (exchange) => {
    const infraEnv = await findAsked(service, exchange);
    await service.state.remove('infra-envs', infraEnv.id);
    await endUrls(service, exchange, infraEnv);
    await service.state.remove('image-urls', infraEnv.id);
    return exchange.body(null, 204);
  });
  app.post(`${one}/hosts`, async (exchange) => {
    await findAsked(service, exchange);
    throw new ApiFailure(400, 'Cannot register a host to an InfraEnv with disconnected-iso type');
  });
}

/** Finds an InfraEnv of the tenant. @throws ApiFailure 404 */
export async function findInfraEnv(
  { state, key }: Service,
  id: string,
  { tenant }: Pick<Identity, 'tenant'>,
): Promise<InfraEnv> {
  const record = await state.read('infra-envs', id);
  if (record?.tenant !== tenant) throw notFound('infra env', id);
  return toInfraEnv(key, record);
}

async function findAsked(service: Service, exchange: Exchange): Promise<InfraEnv> {
  const identity = await identify(service, exchange);
  const id = requireUuid(exchange.req.param('infra_env_id') ?? '', 'infra_env_id');
  return findInfraEnv(service, id, identity);
}

async function createInfraEnv(service: Service, exchange: Exchange): Promise<Response> {
  const identity = await identify(service, exchange);
  const params = await readBody<InfraEnvParams>(service, exchange, 'infra-env-create-params');
  const { requiredRegistries: registries } = service;
  const rules = { registries, prefix: 'pull secret for new infraEnv is invalid: ' };
  addWarnings(service, exchange, checkSettings(params, rules));
  addWarnings(
    service,
    exchange,
    await checkNetworks(params.static_network_config, service.networkTool),
  );
  const cluster = await findBound(service, params.cluster_id, identity);
  const infraEnv = draftNew(service, params, { cluster, identity });
  checkSize(infraEnv);
  await service.state.create('infra-envs', toRecord(service.key, infraEnv));
  return exchange.json(await formatInfraEnv(service, exchange, infraEnv), 201);
}

/** Finds the cluster that an InfraEnv is bound to. @throws ApiFailure 404 */
async function findBound(
  service: Service,
  id: string | null | undefined,
  identity: Identity,
): Promise<Cluster | undefined> {
  if (!isFilled(id)) return undefined;
  try {
    return await findCluster(service, id.toLowerCase(), identity);
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.status !== 404) throw error;
    throw new ApiFailure(404, `Cluster ID ${id} does not exist`);
  }
}

/** Attempts at a change when other requests change the record meanwhile. */
const ATTEMPTS = 5;

async function updateInfraEnv(service: Service, exchange: Exchange): Promise<Response> {
  const identity = await identify(service, exchange);
  const asked = requireUuid(exchange.req.param('infra_env_id') ?? '', 'infra_env_id');
  await findInfraEnv(service, asked, identity);
  const params = await readBody<InfraEnvParams>(service, exchange, 'infra-env-update-params');
  addWarnings(service, exchange, checkSettings(params, { registries: service.requiredRegistries }));
  addWarnings(
    service,
    exchange,
    await checkNetworks(params.static_network_config, service.networkTool),
  );
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const before = await findInfraEnv(service, asked, identity);
    const infraEnv = draftChange(service, params, before);
    // The URL of an unchanged image stays valid.
    if (isSame(infraEnv, before)) {
      return exchange.json(await formatInfraEnv(service, exchange, before), 201);
    }
    checkSize(infraEnv);
    if (!(await service.state.replace('infra-envs', toRecord(service.key, infraEnv)))) continue;
    await endUrls(service, exchange, before);
    return exchange.json(await formatInfraEnv(service, exchange, infraEnv), 201);
  }
  throw new ApiFailure(409, `infra env ${asked} is being changed by other requests`);
}

/** True if a change has no effect. */
function isSame(after: InfraEnv, before: InfraEnv): boolean {
  const { pull_secret, revision, updated_at } = before;
  const others = { ...after, pull_secret, revision, updated_at };
  return after.pull_secret.reveal() === pull_secret.reveal() && isDeepStrictEqual(others, before);
}

/** Formats an InfraEnv; of the pull secret, it reports only that one is set. */
async function formatInfraEnv(
  service: Service,
  exchange: Exchange,
  infraEnv: InfraEnv,
): Promise<object> {
  const { id, tenant, static_network_config: network, kernel_arguments: kargs } = infraEnv;
  const url = await signImageUrl(service, exchange, infraEnv);
  const hosts = listHosts(infraEnv);
  // The image has this address, chosen from the networks if no client gave one.
  const rendezvousIp = infraEnv.rendezvous_ip ?? findFirstAddress(hosts);
  if (hosts.length > 0 && rendezvousIp === undefined) {
    addWarnings(service, exchange, [WITHOUT_RENDEZVOUS]);
  }
  return {
    ...infraEnv,
    tenant: undefined,
    revision: undefined,
    pull_secret: undefined,
    kind: 'InfraEnv',
    href: `${BASE_PATH}/v2/infra-envs/${id}`,
    type: IMAGE_TYPE,
    org_id: tenant.replace(/^org /, ''),
    pull_secret_set: true,
    rendezvous_ip: rendezvousIp,
    static_network_config: network ? JSON.stringify(network) : '',
    kernel_arguments: kargs ? JSON.stringify(kargs) : undefined,
    download_url: url?.url ?? '',
    expires_at: url?.expires ?? NO_EXPIRY,
  };
}
