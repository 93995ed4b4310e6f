import { CHUNK } from '../media/serve/virtual.ts';
import { join } from 'node:path';
import { createClientAddresses } from '../base/http/client-address.ts';
import { withoutUndefined } from '../base/lists.ts';
import type { Secret } from '../base/secret.ts';
import { openPartCache } from '../base/store/part-cache.ts';
import { findNetworkTool } from '../nmstate/index.ts';
import type { SourceHost } from '../outputs/read/open.ts';
import { createApp, type AnsweredRequest } from './app.ts';
import { type Budgets, type BudgetSettings, createBudgets } from './budgets.ts';
import { type Audit, NO_AUDIT } from './audit/audit.ts';
import { type AuditSettings, openAudit, type OpenedAudit, startAudit } from './audit/open.ts';
import { openAuditedRecords } from './audit/records.ts';
import { createAuth, type AuthSettings } from './auth/identity.ts';
import { createUrlTokens } from './auth/tokens.ts';
import type { App, Ports, Service } from './context.ts';
import { type AnswerKnown, createKnownAnswers } from './images/answer-known.ts';
import {
  createKnownByWorkers,
  createKnownUrls,
  forgetChanges,
  type KnownUrls,
  NO_KNOWN_URLS,
} from './images/known-urls.ts';
import { createDigests, digestsBelow } from './images/digests.ts';
import { createImages, overlaysBelow, keepSwept } from './images/images.ts';
import { createDeliveryMemory } from './images/deliveries.ts';
import { createReaders } from './images/readers.ts';
import { createShortUrls } from './images/short-url.ts';
import { readOpenApi } from './openapi.ts';
import { createNotes, createWorkerReports, type WorkerReports } from './reports.ts';
import { createMetrics } from './page.ts';
import { rewrapKeys, type KeyRing, type ServiceKey } from './state/keys.ts';
import { openBackend, readMasterKeys } from './state/rekey.ts';
import type { State, TenantLimits } from './state/state.ts';
import { openReleases } from './store/releases.ts';

/* Owns the start and the end of the service. */

export type ServiceSettings = BudgetSettings & {
  readonly data: string;
  /** URL of PostgreSQL; absent: records are files below `data`. */
  readonly database?: string;
  readonly key: Secret;
  /** The key before `key`, while replicas change it. */
  readonly previousKey?: Secret;
  readonly tenantLimits?: TenantLimits;
  readonly auth: AuthSettings;
  /** Absent: no audit log is written. */
  readonly audit?: AuditSettings;
  readonly publicUrl?: string;
  readonly isTls: boolean;
  /** Filled by the caller when it listens. */
  readonly ports?: Ports;
  /** Loopback without authentication: hosts must be IP addresses, localhost or the host of `publicUrl`. */
  readonly isLocal?: boolean;
  /** Origins whose pages may use the API, as browsers send them. */
  readonly corsOrigins?: readonly string[];
  /** Registries that every pull secret must have credentials for. */
  readonly requiredRegistries?: readonly string[];
  /** Milliseconds that the URL of an image is valid, with authentication. */
  readonly urlLifetime: number;
  readonly now: () => number;
  readonly onAnswer: (request: AnsweredRequest) => void;
  /** Folders with sealift's ISOs, and addresses of ISOs. */
  readonly stores: readonly string[];
  /** Bytes of disk for parts of remote ISOs. */
  readonly cacheLimit: number;
  /** Bytes a second that are hashed for the SHA-256 of images; 0: it is not computed. */
  readonly digestRate: number;
  /** Milliseconds to wait for a remote store that sends no byte, and the pause before the next attempt. */
  readonly retryFor?: number;
  readonly storeRetryAfter?: number;
  readonly warn: (message: string) => void;
  /** Aborted when no new work may begin; running work continues. */
  readonly ending: AbortSignal;
  /** Workers that answer for this process; absent: it answers alone. */
  readonly workers?: {
    /** Has them forget the URLs of a record, or all; resolves when none of them answers with those any more. */
    readonly forget: (record?: string) => Promise<void>;
  };
  /** Access to addresses; its signal is aborted when no request is waiting any more. */
  readonly host: SourceHost;
};

export type OpenedService = {
  readonly app: App;
  readonly answerKnown: AnswerKnown;
  readonly workerReports: WorkerReports;
  readonly budgets: Budgets;
  readonly close: () => Promise<void>;
};

/** Milliseconds to retry: a client gives up sooner, and resumes. */
const RETRY_FOR = 30_000;

/** Limits of a tenant, if the settings name no others. */
const LIMITS: TenantLimits = { records: 1000, bytes: 256 << 20 };

/** Opens the service with its records. Close it after the last request. */
export async function openService(settings: ServiceSettings): Promise<OpenedService> {
  const { data, auth, isTls, now, host, warn } = settings;
  const { state, ring: key, audit } = await openState(settings);
  const service = {
    audit,
    auth: createAuth(auth, host),
    ...createUrls(key, settings),
    openApi: readOpenApi(),
    ...readRules(settings),
    isTls,
    now,
    warn,
    ending: settings.ending,
  };
  const cache = await openPartCache({
    partSize: CHUNK,
    directory: join(data, 'cache'),
    limit: settings.cacheLimit,
    warn,
  });
  const releases = openReleases(settings.stores, {
    host: { ...host, retryFor: settings.retryFor ?? RETRY_FOR },
    cache,
    warn,
    ...withoutUndefined({ retryAfter: settings.storeRetryAfter }),
  });
  const networkTool = await findNetworkTool(host);
  const images = createImages({ key, releases, networkTool }, data);
  const closing = new AbortController();
  const sweeping = keepSwept(
    { state, directories: [overlaysBelow(data), digestsBelow(data)] },
    { signal: closing.signal, warn },
  );
  const knownUrls = createMemory(settings);
  const rate = settings.digestRate;
  const digests = createDigests({ key, releases, knownUrls, data, rate, warn });
  const parts = { ...service, state, releases, images, digests, knownUrls, networkTool };
  return {
    ...createAnswers(settings, parts),
    async close() {
      closing.abort();
      await sweeping;
      await digests.close();
      await releases.close();
      await cache.close();
      await audit.close();
      await state.close();
    },
  };
}

type Parts = Omit<Service, 'budgets' | 'addresses'>;

/** Creates what answers requests: the routes, and in front of them the memory of URLs. */
function createAnswers(settings: ServiceSettings, parts: Parts): Omit<OpenedService, 'close'> {
  const metrics = createMetrics(parts.audit);
  const onAnswer: typeof settings.onAnswer = (request) => {
    metrics.count(request);
    settings.onAnswer(request);
  };
  const budgets = createBudgets(settings);
  const { enter, leave } = budgets;
  const service: Service = {
    ...parts,
    state: forgetChanges(parts.state, parts.knownUrls),
    budgets,
    addresses: settings.addresses ?? createClientAddresses(),
  };
  const { knownUrls } = parts;
  return {
    app: createApp(service, { metrics, onAnswer }),
    answerKnown: createKnownAnswers({ knownUrls, enter, leave }, createNotes(service, onAnswer)),
    workerReports: createWorkerReports(service, onAnswer),
    budgets,
  };
}

function createMemory({ database, workers, now }: ServiceSettings): KnownUrls {
  // Another replica may change what is in a database.
  if (database !== undefined) return NO_KNOWN_URLS;
  return workers ? createKnownByWorkers(workers.forget) : createKnownUrls(now);
}

const readRules = ({
  publicUrl,
  isLocal = false,
  corsOrigins = [],
  requiredRegistries = [],
}: ServiceSettings) => ({
  ...withoutUndefined({ publicUrl }),
  isLocal,
  corsOrigins,
  requiredRegistries,
});

type UrlSettings = Pick<ServiceSettings, 'ports' | 'urlLifetime' | 'now'>;

const createUrls = (key: ServiceKey, { ports = {}, urlLifetime, now }: UrlSettings) => ({
  urlTokens: createUrlTokens(key.derive('url tokens'), { lifetime: urlLifetime, now }),
  shortUrls: createShortUrls(key.derive('short urls')),
  readers: createReaders(now),
  coverage: createDeliveryMemory(),
  urlLifetime,
  ports,
});

type OpenedState = { readonly state: State; readonly ring: KeyRing; readonly audit: Audit };

async function openState(settings: ServiceSettings): Promise<OpenedState> {
  const { now, warn, ending: signal, addresses = createClientAddresses() } = settings;
  const audit =
    settings.audit &&
    (await openAudit(settings.audit, { now, warn, signal, env: settings.host.env }));
  try {
    const records = await openStored(settings, audit);
    const started =
      settings.audit && audit
        ? await startAudit(audit, settings.audit, { now, addresses, warn })
        : NO_AUDIT;
    return { ...records, audit: started };
  } catch (error) {
    await audit?.log.close();
    throw error;
  }
}

function openStored(
  settings: ServiceSettings,
  audit: OpenedAudit | undefined,
): Promise<{ readonly state: State; readonly ring: KeyRing }> {
  const { previousKey, tenantLimits: limits = LIMITS, warn, host, ending: signal } = settings;
  const keys = readMasterKeys(settings.key, previousKey);
  const { data, database } = settings;
  const place = { data, env: host.env, signal, warn, ...withoutUndefined({ database }) };
  const open = async () => {
    const backend = await openBackend(place);
    // Replicas of a database change the key together, by "serve rekey".
    if (database === undefined && previousKey) await rewrapKeys(backend, keys);
    return backend;
  };
  const accept = withoutUndefined({ acceptRestore: settings.audit?.acceptRestore });
  return openAuditedRecords(open, { keys, limits, warn, audit, ...accept });
}
