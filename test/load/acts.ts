import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../faults/random.ts';
import { ask } from './ask.ts';
import {
  call,
  create,
  isGood,
  locate,
  refresh,
  remove,
  revisionOf,
  settingsOf,
  type Created,
  type Customer,
  type Load,
} from './customer.ts';
import { download, downloadWhole } from './download.ts';
import { VALUES } from './releases.ts';
import { judge } from './report.ts';
import { endOf, orEnded } from './tenants.ts';

const NOBODY = '6ba7b811-9dad-11d1-80b4-00c04fd430c8';

/** One after the other until the run is over. */
export async function actAsCustomers(all: Load, random: Random): Promise<void> {
  while (!all.isOver()) {
    const load = { ...all, tenant: random.pick(all.tenants) };
    const customer = await create(load, random);
    if (!customer) {
      await load.rest();
      continue;
    }
    load.report.count('customers');
    for (let left = 3 + random.below(10); left > 0 && !load.isOver(); left -= 1) {
      if (customer.isUnsettled) break;
      if (!isGood(load, customer) && random.chance(0.7)) await refresh(load, customer);
      await random.pick(ACTS)(load, customer, random);
    }
    await remove(load, customer, random);
  }
}

type Act = (load: Load, customer: Customer, random: Random) => Promise<unknown>;

const below = (customer: Customer, load: Load, random: Random): number =>
  random.below(load.storeOf(customer.version).current().size);

const ACTS: readonly [Act, ...Act[]] = [
  (load, customer, random) => downloadWhole(load, customer, { withTag: random.chance(0.5) }),
  (load, customer, random) =>
    downloadWhole(load, customer, {
      enough: 1 + below(customer, load, random),
      withTag: random.chance(0.5),
    }),
  (load, customer, random) => downloadSlowly(load, customer, random),
  (load, customer, random) => askRanges(load, customer, random),
  (load, customer, random) => askRanges(load, customer, random),
  (load, customer) => download(load, customer, { what: 'head', method: 'HEAD' }),
  (load, customer, random) =>
    download(load, customer, { what: 'abort', enough: 1 + below(customer, load, random) }),
  (load, customer, random) => askWithoutRevision(load, customer, random),
  (load, customer, random) => change(load, customer, random),
  (load, customer, random) => change(load, customer, random),
  (load, customer) => readConfig(load, customer),
  (load, customer) => list(load, customer),
  (load, customer) => refresh(load, customer),
  (load) => askWrongly(load),
  (load, customer, random) => askAsOthers(load, customer, random),
];

/** Sometimes while a download goes on, which must end as it began; the URL from before is refused then. */
async function change(load: Load, customer: Customer, random: Random): Promise<void> {
  const before = { ...customer };
  const running = random.chance(0.5)
    ? download(load, before, { what: 'download-during-change', pause: 1, mayChange: true })
    : undefined;
  if (running) await sleep(random.below(300));
  // Those that it has would be no change.
  const values = (customer.values + 1 + random.below(VALUES.length - 1)) % VALUES.length;
  const { answer, body } = await call(load, {
    what: 'change',
    method: 'PATCH',
    target: `/infra-envs/${customer.id}`,
    body: settingsOf(values),
    allowed: [201],
  });
  const { download_url: url } = (body ?? {}) as Created;
  if (url !== undefined) {
    Object.assign(customer, { values, revision: customer.revision + 1 });
    if (revisionOf(url) !== customer.revision)
      load.report.problem(`change: ${url} is not the next`);
    await locate(load, customer);
  } else if (answer.kind === 'broken' || answer.status >= 500) {
    await learn(load, customer, values);
  }
  await running;
  if (customer.revision === before.revision) return;
  const range = random.chance(0.5) ? { range: `bytes=${random.below(4096)}-` } : {};
  const asked = Date.now();
  const { url: target, end } = random.chance(0.5)
    ? before.short
    : { url: before.url, end: endOf(before.url) };
  const old = await ask(load.front, {
    target,
    ...(range.range !== undefined && { headers: { range: range.range } }),
  });
  const what = `old-revision of ${customer.id}`;
  const isRemote = load.isRemote(customer.version);
  judge(load, old, { what, isRemote, allowed: orEnded(end, asked, [410]) });
}

/** A change that nobody answered was done, or another replica may still do it. */
async function learn(load: Load, customer: Customer, values: number): Promise<void> {
  for (;;) {
    const { answer, body } = await call(load, {
      what: 'learn',
      target: `/infra-envs/${customer.id}`,
      allowed: [200],
    });
    const { download_url: url } = (body ?? {}) as Created;
    if (url === undefined) {
      if (answer.kind === 'answer' && answer.status < 500) return; // a problem that is noted
      continue;
    }
    const revision = revisionOf(url);
    load.report.count(revision === customer.revision ? 'changes lost' : 'changes done unheard');
    customer.isUnsettled = revision === customer.revision;
    if (customer.isUnsettled) return;
    Object.assign(customer, { values, revision: customer.revision + 1 });
    if (revision !== customer.revision) load.report.problem(`${url} is neither of two revisions`);
    await locate(load, customer);
    return;
  }
}

async function askRanges(load: Load, customer: Customer, random: Random): Promise<void> {
  const { size } = load.storeOf(customer.version).current();
  for (let left = 1 + random.below(6); left > 0; left -= 1) {
    const first = random.below(size);
    const last = first + random.below(4 << 20);
    const range = random.pick([
      `bytes=${first}-${last}`,
      `bytes=${first}-${last}`,
      `bytes=-${1 + random.below(1 << 20)}`,
      `bytes=${Math.max(0, size - random.below(1 << 20))}-`,
      `bytes=${size + (8 << 20)}-`,
    ]);
    const { answer } = await download(load, customer, { what: 'range', range });
    if (answer.kind === 'answer' && [401, 410].includes(answer.status)) {
      await refresh(load, customer);
    }
  }
  // More than one range: all of it, of which some is enough.
  await download(load, customer, { what: 'ranges', range: 'bytes=5-9,20-30', enough: 1 << 20 });
}

/** A URL without a revision is one of whichever ISO is there now. */
async function askWithoutRevision(load: Load, customer: Customer, random: Random): Promise<void> {
  const some = { isPlain: true, enough: 1 << 20 };
  const range = `bytes=${random.below(1 << 20)}-`;
  await download(load, customer, { what: 'plain-range', range, ...some });
  const { etag } = await download(load, customer, {
    what: 'plain-head',
    method: 'HEAD',
    isPlain: true,
  });
  if (etag === undefined) return;
  const stale = '"sha256:0"';
  const ifRange = random.chance(0.5) ? etag : stale;
  await download(load, customer, { what: 'plain-if-range', range, ifRange, ...some });
}

/** A few MiB a second, from somewhere on. */
async function downloadSlowly(load: Load, customer: Customer, random: Random): Promise<void> {
  await download(load, customer, {
    what: 'slow',
    range: `bytes=${below(customer, load, random)}-`,
    pause: 5 + random.below(20),
    enough: 4 << 20,
  });
}

async function readConfig(load: Load, customer: Customer): Promise<void> {
  const asked = performance.now();
  const target = `/infra-envs/${customer.id}/downloads/files?file_name=discovery.ign`;
  const isRemote = load.isRemote(customer.version);
  const { answer } = await call(load, { what: 'discovery.ign', target, allowed: [200], isRemote });
  if (answer.kind !== 'answer' || answer.status !== 200) return;
  const variants = load.storeOf(customer.version).since(asked);
  const configs = variants.map(({ isos }) => isos[customer.values]?.config);
  if (!configs.includes(answer.text))
    load.report.problem(`discovery.ign of ${customer.id} is another`);
}

async function list(load: Load, customer: Customer): Promise<void> {
  const one = await call(load, {
    what: 'list-infra-envs',
    target: `/infra-envs?cluster_id=${customer.cluster}`,
    allowed: [200],
  });
  const found = (one.body as Created[] | undefined)?.map(({ id }) => id);
  if (found && found.join() !== customer.id) {
    load.report.problem(`the InfraEnvs of ${customer.cluster} are ${found.join()}`);
  }
  const removed = new Set(load.removed);
  const { body } = await call(load, { what: 'list-clusters', target: '/clusters', allowed: [200] });
  if (!body) return;
  const ids = new Set((body as Created[]).map(({ id = '' }) => id));
  if (!ids.has(customer.cluster)) load.report.problem(`cluster ${customer.cluster} is not listed`);
  const risen = [...ids].filter((id) => removed.has(id));
  if (risen.length > 0) load.report.problem(`removed clusters are listed: ${risen.join()}`);
  const { tenant } = load;
  const foreign = [...ids].filter((id) => (load.known.get(id) ?? tenant) !== tenant);
  if (foreign.length > 0) load.report.problem(`clusters of others are listed: ${foreign.join()}`);
}

async function askWrongly(load: Load): Promise<void> {
  const post = { what: 'wrong', method: 'POST', allowed: [400] };
  const infraEnv = { name: 'x', image_type: 'disconnected-iso', ssh_authorized_key: 'no key' };
  await call(load, {
    ...post,
    target: '/infra-envs',
    body: { ...infraEnv, pull_secret: '{"a":1}' },
  });
  await call(load, { what: 'wrong', target: `/infra-envs/${NOBODY}`, allowed: [404] });
  await call(load, { what: 'wrong', target: `/clusters/${NOBODY}`, allowed: [404] });
}

/** What is of one tenant is not there for others; who shows no good token gets nothing. */
async function askAsOthers(load: Load, customer: Customer, random: Random): Promise<void> {
  const { id, cluster, url, version } = customer;
  const [token] = /(?<=\/byapikey\/)[^/]+/.exec(url) ?? [];
  const [other] = load.tenants.filter((one) => one !== load.tenant && random.chance(0.7));
  if (token === undefined || !other) return;
  const what = 'as-another-tenant';
  const infraEnv = `/infra-envs/${id}`;
  const as = { ...load, tenant: other };
  const paths = [infraEnv, `/clusters/${cluster}`, `${infraEnv}/downloads/image-url`] as const;
  await call(as, { what, target: random.pick(paths), allowed: [404] });
  const files = `${infraEnv}/downloads/files?file_name=discovery.ign`;
  await call(as, { what, target: files, allowed: [404] });
  const body = { name: 'x', cluster_id: cluster, ...settingsOf(0) };
  await call(as, { what, method: 'POST', target: '/infra-envs', body, allowed: [404] });
  await call(as, { what, method: 'PATCH', target: infraEnv, body: settingsOf(0), allowed: [404] });
  const target = random.pick(paths.slice(0, 2) as [string, string]);
  await call(as, { what, method: 'DELETE', target, allowed: [404] });
  const listed = await call(as, {
    what,
    target: `/infra-envs?cluster_id=${cluster}`,
    allowed: [200],
  });
  if ((listed.body as unknown[] | undefined)?.length) load.report.problem(`${id} is listed`);
  const refused = random.pick([undefined, ...load.refused]);
  const stranger = { ...load, tenant: { name: 'nobody', ...(refused && { token: refused }) } };
  await call(stranger, { what: 'as-nobody', target: random.pick(paths), allowed: [401] });
  await askByOtherTokens(load, { id, version, token }, random);
}

/** The token of a URL is for one image. */
async function askByOtherTokens(
  load: Load,
  { id, version, token }: { readonly id: string; readonly version: string; readonly token: string },
  random: Random,
): Promise<void> {
  const what = 'by-another-token';
  const path = (token: string, of = version): string =>
    `/byapikey/${token}/${of}/x86_64/disconnected.iso`;
  const [head = '', , signature = ''] = token.split('.');
  const claims = { sub: id, aud: 'image', exp: 4_000_000_000 };
  const forged = Buffer.from(JSON.stringify(claims)).toString('base64url');
  for (const target of [
    path(`${head}.${forged}.${signature}`),
    path(load.tenant.token ?? ''),
    `/byid/${id}/${version}/x86_64/disconnected.iso`,
  ]) {
    judge(load, await ask(load.front, { target }), { what, allowed: [401] });
  }
  const asked = Date.now();
  // The token names an ISO, which may be replaced.
  const allowed = [404, 410];
  const foreign = [...load.known].filter(([, tenant]) => tenant !== load.tenant);
  const [of] = random.pick([foreign[0] ?? [NOBODY], ...foreign]);
  const isRemote = load.isRemote(version);
  for (const target of [
    path(
      token,
      load.versions.find((one) => one !== version),
    ),
    `/images/${of}?version=${version}&type=disconnected-iso&image_token=${token}`,
    `/api/assisted-install/v2/infra-envs/${of}/downloads/files?file_name=discovery.ign&api_key=${token}`,
  ]) {
    const answer = await ask(load.front, { target });
    const url = path(token);
    judge(load, answer, { what, isRemote, allowed: orEnded(endOf(url), asked, allowed) });
  }
}
