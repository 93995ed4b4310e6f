import { BASE_PATH, identify, noteChange, readBody, toTime } from '../context.ts';
import type { App, Exchange, Service } from '../context.ts';
import { toRecord, type InfraEnv } from '../infra-envs/infra-env.ts';
import { findInfraEnv } from '../infra-envs/routes.ts';
import { ApiFailure, requireUuid } from '../openapi.ts';
import type { StoredRecord } from '../state/state.ts';
import { endUrls, signImageUrl, type HostUrl } from './urls.ts';

/* Owns the URLs that single hosts have, and the end of URLs. */

type StoredUrl = HostUrl & {
  readonly host: string;
  /** True if it ends after every byte was delivered once. */
  readonly once: boolean;
  readonly created_at: string;
  /** Time at which every byte had been delivered. */
  readonly ended_at?: string;
};

type UrlsBody = {
  readonly updated_at: string;
  /** Number of the next URL. Numbers are never used again, so that a revoked URL stays one. */
  readonly next: number;
  readonly hosts: readonly StoredUrl[];
};

type UrlParams = { readonly host: string; readonly once?: boolean; readonly expires_in?: number };

const MOST_HOSTS = 1000;

/** Adds the URLs of hosts: `createImageUrl`, `listImageUrls`, `revokeImageUrls`. */
export function addHostUrlRoutes(app: App, service: Service): void {
  const path = `${BASE_PATH}/v2/infra-envs/:infra_env_id/downloads/image-urls`;
  app.post(path, async (exchange) => {
    const infraEnv = await findAsked(service, exchange);
    const params = await readBody<UrlParams>(service, exchange, 'image-url-create-params');
    const created = await createUrl(service, infraEnv, params);
    const { id, revision } = infraEnv;
    const issued = { event: 'url.issue', id, revision, host: created.host } as const;
    await noteChange(service, exchange, issued);
    return exchange.json(await formatUrl(service, exchange, { infraEnv, stored: created }), 201);
  });
  app.get(path, async (exchange) => {
    const infraEnv = await findAsked(service, exchange);
    const { hosts } = await readUrls(service, infraEnv);
    const formatted = hosts.map((stored) => formatUrl(service, exchange, { infraEnv, stored }));
    return exchange.json(await Promise.all(formatted));
  });
  app.delete(path, async (exchange) => {
    const infraEnv = await findAsked(service, exchange);
    const host = exchange.req.query('host');
    const { id, revision } = infraEnv;
    const revoked = { event: 'url.revoke', id, revision, host } as const;
    if (host === undefined) {
      // With the revision every URL ends; those of hosts are then only removed.
      await revokeAll(service, exchange, infraEnv);
      await noteChange(service, exchange, revoked);
      await changeUrls(service, infraEnv, (urls) => ({ ...urls, hosts: [] }));
    } else {
      await changeUrls(service, infraEnv, (urls) => removeHost(urls, host));
      await noteChange(service, exchange, revoked);
    }
    return exchange.body(null, 204);
  });
}

function removeHost(urls: UrlsBody, host: string): UrlsBody {
  const hosts = urls.hosts.filter((each) => each.host !== host);
  if (hosts.length < urls.hosts.length) return { ...urls, hosts };
  throw new ApiFailure(404, `no URL is for host ${host}`);
}

export async function findHostUrl(
  service: Pick<Service, 'state'>,
  infraEnv: InfraEnv,
  number: number,
): Promise<StoredUrl> {
  const { hosts } = await readUrls(service, infraEnv);
  const found = hosts.find((each) => each.number === number);
  if (!found) throw new ApiFailure(410, 'the URL was revoked');
  if (found.ended_at === undefined) return found;
  throw new ApiFailure(410, 'every byte of this one-time URL was delivered');
}

export async function endOnce(service: Service, infraEnv: InfraEnv, number: number): Promise<void> {
  const ended_at = toTime(service.now());
  await changeUrls(service, infraEnv, (urls) => ({
    ...urls,
    hosts: urls.hosts.map((each) => (each.number === number ? { ...each, ended_at } : each)),
  }));
}

async function findAsked(service: Service, exchange: Exchange): Promise<InfraEnv> {
  const identity = await identify(service, exchange);
  const id = requireUuid(exchange.req.param('infra_env_id') ?? '', 'infra_env_id');
  return findInfraEnv(service, id, identity);
}

async function createUrl(
  service: Service,
  infraEnv: InfraEnv,
  { host, once = false, expires_in: seconds }: UrlParams,
): Promise<StoredUrl> {
  const now = service.now();
  const { next } = await changeUrls(service, infraEnv, (urls) => {
    const others = urls.hosts.filter((each) => each.host !== host);
    if (others.length >= MOST_HOSTS) {
      throw new ApiFailure(400, `an infra env has URLs for at most ${MOST_HOSTS} hosts`);
    }
    const created: StoredUrl = {
      number: urls.next,
      host,
      once,
      created_at: toTime(now),
      ...(seconds !== undefined && { expires_at: toTime(now + seconds * 1000) }),
    };
    return { ...urls, next: urls.next + 1, hosts: [...others, created] };
  });
  return findHostUrl(service, infraEnv, next - 1);
}

async function formatUrl(
  service: Service,
  exchange: Exchange,
  { infraEnv, stored }: { readonly infraEnv: InfraEnv; readonly stored: StoredUrl },
): Promise<object> {
  const { host, once, created_at, ended_at } = stored;
  const signed = await signImageUrl(service, exchange, { ...infraEnv, host: stored });
  if (!signed) throw new ApiFailure(404, `infra env ${infraEnv.id} is not bound to a cluster`);
  const readers = service.readers.list(infraEnv.id);
  return {
    host,
    once,
    created_at,
    ended_at,
    url: signed.url,
    http_url: signed.httpUrl,
    expires_at: signed.expires,
    is_reading: readers.some((reader) => reader.host === host),
  };
}

/** Gives an InfraEnv another revision with the same values: every URL from before ends. */
async function revokeAll(service: Service, exchange: Exchange, infraEnv: InfraEnv): Promise<void> {
  const { revision } = infraEnv;
  const next = { ...infraEnv, revision: revision + 1, updated_at: toTime(service.now()) };
  if (!(await service.state.replace('infra-envs', toRecord(next)))) {
    throw busy(infraEnv); // another request has changed it, and so ended its URLs
  }
  await endUrls(service, exchange, infraEnv);
}

async function readUrls(
  { state }: Pick<Service, 'state'>,
  { id }: InfraEnv,
): Promise<UrlsBody & { readonly record?: StoredRecord }> {
  const record = await state.read('image-urls', id);
  if (!record) return { updated_at: '', next: 1, hosts: [] };
  return { ...(record.body as UrlsBody), record };
}

/** Attempts at a change when other requests change the record meanwhile. */
const ATTEMPTS = 5;

async function changeUrls(
  service: Service,
  infraEnv: InfraEnv,
  change: (urls: UrlsBody) => UrlsBody,
): Promise<UrlsBody> {
  const { id, tenant } = infraEnv;
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const { record, ...before } = await readUrls(service, infraEnv);
    const body = { ...change(before), updated_at: toTime(service.now()) };
    const next = { id, tenant, revision: (record?.revision ?? 0) + 1, body };
    if (await write(service, next, record !== undefined)) return body;
  }
  throw busy(infraEnv);
}

async function write({ state }: Service, record: StoredRecord, isKnown: boolean): Promise<boolean> {
  if (isKnown) return state.replace('image-urls', record);
  try {
    await state.create('image-urls', record);
    return true;
  } catch (error) {
    if (await state.read('image-urls', record.id)) return false; // another request has created it
    throw error;
  }
}

const busy = ({ id }: InfraEnv): ApiFailure =>
  new ApiFailure(409, `infra env ${id} is being changed by other requests`);
