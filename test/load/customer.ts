import type { Random } from '../faults/random.ts';
import { ask, type Answer, type Asked } from './ask.ts';
import type { Front } from './front.ts';
import { judge, type Report } from './report.ts';
import { VALUES, type Variant } from './releases.ts';
import { endOf, orEnded, type Tenant, type UrlEnd } from './tenants.ts';
import type { Timeline } from './timeline.ts';

const API = '/api/assisted-install/v2';

/** What all customers share. */
export type Load = {
  readonly front: Front;
  readonly report: Report;
  readonly versions: readonly [string, ...string[]];
  readonly storeOf: (version: string) => Timeline<Variant>;
  /** Which ISO the revision in a URL names. */
  readonly variantOf: (url: string) => Variant | undefined;
  readonly isRemote: (version: string) => boolean;
  readonly wasStoreAway: (from: number, until: number) => boolean;
  readonly wasDatabaseAway: (from: number, until: number) => boolean;
  readonly isOver: () => boolean;
  /** A moment, for a client that met a broken line. */
  readonly rest: () => Promise<void>;
  /** Who asks. */
  readonly tenant: Tenant;
  readonly tenants: readonly [Tenant, ...Tenant[]];
  /** Tokens that nobody may ask with. */
  readonly refused: readonly string[];
  /** Of clusters and InfraEnvs: those that the service said that it has, and not that it removed; whose they are. */
  readonly known: Map<string, Tenant>;
  readonly removed: Set<string>;
};

/** A short URL of the same image. */
export type ShortUrl = { readonly url: string; readonly end: UrlEnd };

/** A customer with one InfraEnv, which nobody else changes. */
export type Customer = {
  readonly cluster: string;
  readonly id: string;
  readonly version: string;
  values: number;
  revision: number;
  /** In the form of assisted-service. */
  url: string;
  short: ShortUrl;
  /** Downloads up to now. */
  turn: number;
  /** A change whose answer was lost was not done yet, and may be: whatever is asked then is no test. */
  isUnsettled: boolean;
  /** Tags of images by revision and digest. */
  readonly tags: Map<string, string>;
};

/** Asks the API; what it says is judged. */
export async function call(
  load: Load,
  asked: Asked & Parameters<typeof judge>[2],
): Promise<{ readonly answer: Answer; readonly body?: unknown }> {
  const { token } = load.tenant;
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const answer = await ask(load.front, { headers, ...asked, target: API + asked.target });
  if (!judge(load, answer, asked)) {
    await load.rest();
    return { answer };
  }
  const isJson = answer.headers['content-type']?.startsWith('application/json') === true;
  return { answer, ...(isJson && { body: JSON.parse(answer.text) as unknown }) };
}

export const settingsOf = (values: number): object => {
  const { sshKey, pullSecret, kargs, proxy = '' } = VALUES[values] ?? VALUES[0];
  return {
    ssh_authorized_key: sshKey,
    pull_secret: pullSecret,
    kernel_arguments: kargs.map((value) => ({ operation: 'append', value })),
    proxy: { http_proxy: proxy, https_proxy: proxy },
  };
};

export type Created = { readonly id?: string; readonly download_url?: string };

/** A cluster and its InfraEnv; undefined where the line broke. */
export async function create(load: Load, random: Random): Promise<Customer | undefined> {
  const version = random.pick(load.versions);
  const made = await call(load, {
    what: 'create-cluster',
    method: 'POST',
    target: '/clusters/disconnected',
    body: { name: 'load', openshift_version: version },
    allowed: [201],
  });
  const { id: cluster } = (made.body ?? {}) as Created;
  if (cluster === undefined) return undefined;
  load.known.set(cluster, load.tenant);
  const values = random.below(VALUES.length);
  const { body } = await call(load, {
    what: 'create-infra-env',
    method: 'POST',
    target: '/infra-envs',
    body: {
      name: 'load',
      cluster_id: cluster,
      image_type: 'disconnected-iso',
      ...settingsOf(values),
    },
    allowed: [201],
  });
  const { id, download_url: url } = (body ?? {}) as Created;
  if (id === undefined || url === undefined) return undefined;
  load.known.set(id, load.tenant);
  const short = { url, end: endOf('') };
  const customer = {
    cluster,
    id,
    version,
    values,
    revision: 1,
    url,
    short,
    turn: 0,
    isUnsettled: false,
    tags: new Map<string, string>(),
  };
  return (await locate(load, customer)) ? customer : undefined;
}

export const revisionOf = (url: string): number =>
  Number(/[?&]revision=(\d+)|\/i\/[^/]+\/(\d+)\//.exec(url)?.slice(1).find(Boolean));

/** Asks again until it is told where the image is. @returns false if it is refused, which is a problem */
export async function locate(load: Load, customer: Customer): Promise<boolean> {
  for (;;) {
    const told = await refresh(load, customer);
    if (told !== 'again') return told === 'known';
  }
}

/** Asks where the image is, as one does behind a 410. */
export async function refresh(
  load: Load,
  customer: Customer,
): Promise<'known' | 'again' | 'refused'> {
  const { answer, body } = await call(load, {
    what: 'image-url',
    target: `/infra-envs/${customer.id}/downloads/image-url`,
    allowed: [200],
  });
  if (body === undefined) {
    return answer.kind === 'answer' && answer.status < 500 ? 'refused' : 'again';
  }
  const { url, long_url: long, expires_at: ends } = body as Located;
  for (const each of [url, long]) {
    if (revisionOf(each) === customer.revision) continue;
    load.report.problem(
      `image-url of ${customer.id}: ${each} should be revision ${customer.revision}`,
    );
  }
  const isEndless = endOf(long).until === Infinity;
  const until = isEndless ? Infinity : Math.ceil(Date.parse(ends) / 1000) * 1000;
  customer.url = long;
  customer.short = { url, end: { until, status: 410 } };
  return 'known';
}

type Located = { readonly url: string; readonly long_url: string; readonly expires_at: string };

/** Whether a URL can be asked: it has not expired, and names an ISO. */
export const isGood = (load: Load, { url }: Customer): boolean =>
  load.variantOf(url) !== undefined && Date.now() < endOf(url).until;

/** Repeated until it is known to be done: then it answers 404, and so does the image. */
export async function remove(load: Load, customer: Customer, random: Random): Promise<void> {
  const { id, cluster } = customer;
  const targets = [`/infra-envs/${id}`, `/clusters/${cluster}`] as const;
  for (const target of random.chance(0.5) ? targets : targets.toReversed()) {
    let isRepeated = false;
    for (;;) {
      const allowed = isRepeated ? [204, 404] : [204];
      const { answer } = await call(load, { what: 'remove', method: 'DELETE', target, allowed });
      if (answer.kind === 'answer' && answer.status < 500) break;
      isRepeated = true;
    }
    const removed = target.startsWith('/clusters') ? cluster : id;
    load.known.delete(removed);
    load.removed.add(removed);
    await call(load, { what: 'removed', target, allowed: [404] });
    if (removed === cluster) continue; // an InfraEnv stays when its cluster is removed
    const asked = Date.now();
    const image = await ask(load.front, { target: customer.url });
    const allowed = orEnded(endOf(customer.url), asked, [404]);
    judge(load, image, { what: `image-of-removed ${id}`, allowed });
  }
}
