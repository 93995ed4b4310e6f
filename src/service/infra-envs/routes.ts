import { isDeepStrictEqual } from 'node:util';
import { withoutUndefined } from '../../base/lists.ts';
import { findFirstAddress, WITHOUT_RENDEZVOUS } from '../../openshift/agent/rendezvous.ts';
import type { AuditedChange } from '../audit/audit.ts';
import { showTenant, type Identity } from '../auth/identity.ts';
import { findCluster, type Cluster } from '../clusters.ts';
import {
  addWarnings,
  BASE_PATH,
  identify,
  NO_EXPIRY,
  noteChange,
  readBody,
  type App,
  type Exchange,
  type Service,
} from '../context.ts';
import { endUrls, type SignedUrl, signImageUrl } from '../images/urls.ts';
import { listHosts } from '../images/values.ts';
import { ApiFailure, notFound, requireUuid } from '../openapi.ts';
import { listPage } from '../pages.ts';
import type { Release } from '../store/entry.ts';
import { requireMeant } from '../store/versions.ts';
import { draftChange, draftNew, isFilled } from './drafts.ts';
import { toInfraEnv, toRecord, type InfraEnv, type InfraEnvParams } from './infra-env.ts';
import { judgeMedium } from './judge.ts';
import { checkNetworks } from './networks.ts';
import { checkSettings, checkSize, IMAGE_TYPE } from './rules.ts';

/**
 * Adds `RegisterInfraEnv`, `ListInfraEnvs`, `GetInfraEnv`, `UpdateInfraEnv`, `DeregisterInfraEnv`,
 * `RegenerateInfraEnvSigningKey`, `v2ListHosts`, `v2RegisterHost`.
 */
export function addInfraEnvRoutes(app: App, service: Service): void {
  const infraEnvs = `${BASE_PATH}/v2/infra-envs`;
  const one = `${infraEnvs}/:infra_env_id`;
  app.post(infraEnvs, (exchange) => createInfraEnv(service, exchange));
  app.get(infraEnvs, async (exchange) => {
    const { tenant } = await identify(service, exchange);
    const asked = exchange.req.query('cluster_id');
    const cluster = asked === undefined ? asked : requireUuid(asked, 'cluster_id', 'query');
    const page = await listPage(service, exchange, {
      collection: 'infra-envs',
      tenant,
      parent: cluster,
    });
    const shown = page.map((record) => formatInfraEnv(service, exchange, toInfraEnv(record)));
    return exchange.json(await Promise.all(shown));
  });
  app.get(one, async (exchange) => {
    const infraEnv = await findAsked(service, exchange);
    return exchange.json(await formatInfraEnv(service, exchange, infraEnv));
  });
  app.patch(one, (exchange) => updateInfraEnv(service, exchange));
  app.delete(one, async (exchange) => {
    const identity = await identify(service, exchange);
    const id = requireUuid(exchange.req.param('infra_env_id'), 'infra_env_id');
    await removeInfraEnv(service, exchange, { id, ...identity });
    return exchange.body(null, 204);
  });
  app.get(`${one}/hosts`, async (exchange) => {
    await findAsked(service, exchange);
    return exchange.json([]);
  });
  app.post(`${one}/regenerate-signing-key`, async (exchange) => {
    // Every URL ends with the revision that it was made for.
    await replaceInfraEnv(service, exchange, (before) =>
      Promise.resolve(draftChange(service, {}, before)),
    );
    return exchange.body(null, 204);
  });
  app.post(`${one}/hosts`, async (exchange) => {
    await findAsked(service, exchange);
    await readBody(service, exchange, 'host-create-params');
    throw new ApiFailure(400, 'Cannot register a host to an InfraEnv with disconnected-iso type');
  });
}

export async function findInfraEnv(
  { state }: Pick<Service, 'state'>,
  id: string,
  { tenant }: Pick<Identity, 'tenant'>,
): Promise<InfraEnv> {
  const record = await state.read('infra-envs', id, tenant);
  if (!record) throw notFound();
  return toInfraEnv(record);
}

/** Removes an InfraEnv of the tenant, also one that cannot be read. */
async function removeInfraEnv(
  service: Service,
  exchange: Exchange,
  { id, tenant }: Identity & { readonly id: string },
): Promise<void> {
  const { state } = service;
  const head = await state.find('infra-envs', id);
  if (head?.tenant !== tenant) throw notFound();
  await state.remove('infra-envs', id);
  await state.remove('image-urls', id);
  const { revision, parent: cluster } = head;
  await noteChange(service, exchange, { event: 'infra_env.delete', id, revision, cluster });
  await endUrls(service, exchange, head);
}

async function findAsked(service: Service, exchange: Exchange): Promise<InfraEnv> {
  const identity = await identify(service, exchange);
  const id = requireUuid(exchange.req.param('infra_env_id') ?? '', 'infra_env_id');
  return findInfraEnv(service, id, identity);
}

async function createInfraEnv(service: Service, exchange: Exchange): Promise<Response> {
  const identity = await identify(service, exchange);
  const params = await readBody<InfraEnvParams>(service, exchange, 'infra-env-create-params');
  await checkParams(service, exchange, { params, isNew: true });
  const cluster = await findBound(service, params.cluster_id, identity);
  const draft = draftNew(service, params, { cluster, identity });
  const infraEnv = await withVersion(service, exchange, draft);
  checkSize(infraEnv);
  const { warnings, keep } = await judgeMedium(service, infraEnv);
  addWarnings(service, exchange, warnings);
  await service.state.create('infra-envs', toRecord(infraEnv));
  await noteChange(service, exchange, describeChange('infra_env.create', infraEnv));
  await keep();
  return exchange.json(await formatInfraEnv(service, exchange, infraEnv), 201);
}

/** Refuses settings by their own rules; adds warnings to the answer. */
async function checkParams(
  service: Service,
  exchange: Exchange,
  { params, isNew }: { readonly params: InfraEnvParams; readonly isNew: boolean },
): Promise<void> {
  const rules = { registries: service.requiredRegistries, isNew };
  addWarnings(service, exchange, checkSettings(params, rules));
  const networks = params.static_network_config;
  addWarnings(service, exchange, await checkNetworks(networks, service.networkTool));
}

/** An InfraEnv with the exact version of its medium. */
async function withVersion(
  service: Service,
  exchange: Exchange,
  infraEnv: InfraEnv,
): Promise<InfraEnv> {
  const { openshift_version: asked, cpu_architecture: architecture } = infraEnv;
  const meant = await requireMeant(service.releases, { version: asked, architecture });
  const { version = asked, warning } = meant;
  const warnings = warning === undefined ? [] : [`${warning}: the values are not checked`];
  addWarnings(service, exchange, warnings);
  return { ...infraEnv, ...withoutUndefined({ openshift_version: version }) };
}

async function findBound(
  service: Service,
  id: string | undefined,
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
  await findAsked(service, exchange);
  const params = await readBody<InfraEnvParams>(service, exchange, 'infra-env-update-params');
  await checkParams(service, exchange, { params, isNew: false });
  const infraEnv = await replaceInfraEnv(service, exchange, async (before) => {
    const draft = draftChange(service, params, before);
    const isAsked = isFilled(params.openshift_version);
    const chosen = isAsked ? await withVersion(service, exchange, draft) : draft;
    // The URL of an unchanged image stays valid.
    return isSame(chosen, before) ? undefined : chosen;
  });
  return exchange.json(await formatInfraEnv(service, exchange, infraEnv), 201);
}

/** Stores the next revision of the InfraEnv that a request names. */
async function replaceInfraEnv(
  service: Service,
  exchange: Exchange,
  draft: (before: InfraEnv) => Promise<InfraEnv | undefined>,
): Promise<InfraEnv> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const before = await findAsked(service, exchange);
    const infraEnv = await draft(before);
    if (!infraEnv) return before;
    checkSize(infraEnv);
    const { warnings, keep } = await judgeMedium(service, infraEnv);
    if (!(await service.state.replace('infra-envs', toRecord(infraEnv)))) continue;
    await noteChange(service, exchange, describeChange('infra_env.update', infraEnv));
    addWarnings(service, exchange, warnings);
    await endUrls(service, exchange, before);
    await keep();
    return infraEnv;
  }
  throw new ApiFailure(409, 'the infra env is being changed by other requests');
}

const describeChange = (
  event: 'infra_env.create' | 'infra_env.update',
  { id, revision, openshift_version: version, cpu_architecture, cluster_id }: InfraEnv,
): AuditedChange => ({
  event,
  id,
  revision,
  version,
  architecture: cpu_architecture,
  cluster: cluster_id,
});

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
  const isRead = await readsRendezvous(service, url?.release);
  const rendezvousIp = infraEnv.rendezvous_ip ?? (isRead ? findFirstAddress(hosts) : undefined);
  if (isRead && hosts.length > 0 && rendezvousIp === undefined) {
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
    org_id: showTenant(tenant),
    pull_secret_set: true,
    ...hideImage(infraEnv),
    rendezvous_ip: rendezvousIp,
    rendezvous_ip_chosen: isRead ? rendezvousIp !== infraEnv.rendezvous_ip : undefined,
    static_network_config: network ? JSON.stringify(network) : '',
    kernel_arguments: kargs ? JSON.stringify(kargs) : undefined,
    ...describeUrl(url),
  };
}

/** Shows only that a configuration image is set: it has private keys. */
const hideImage = ({ config_image: image }: InfraEnv) => ({
  config_image: undefined,
  ...(image !== undefined && { config_image_set: true }),
});

/** False for media without the agent services, which read a rendezvous IP. */
async function readsRendezvous(
  { images }: Service,
  release: Release | undefined,
): Promise<boolean> {
  return !release || images.hasAgents(release).catch(() => true); // it may not be readable now
}

/** The size is that of the ISO below: its areas are inside. */
const describeUrl = ({ url = '', expires = NO_EXPIRY, release }: Partial<SignedUrl> = {}) => ({
  download_url: url,
  expires_at: expires,
  size_bytes: release?.base.size,
});
