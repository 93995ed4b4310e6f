import { readVersion } from '../base/program.ts';
import { findRecord } from './clusters.ts';
import { BASE_PATH, identify, type App, type Service } from './context.ts';
import { ApiFailure, ARCHITECTURES, requireUuid } from './openapi.ts';
import { findMeant } from './store/versions.ts';

/* Owns the calls about what this service does not do: no host registers, nothing is installed from here. */

/** Lists that are always empty, by path. */
const EMPTY_LISTS = ['domains', 'release-sources', 'supported-operators'] as const;

/**
 * Adds `v2ListManagedDomains`, `v2ListReleaseSources`, `v2ListSupportedOperators`, `v2ListEvents`,
 * `v2ListComponentVersions`, `v2GetClusterDefaultConfig`, `v2ListClusterManifests`, `GetSupportedFeatures`,
 * `GetSupportedArchitectures`.
 */
export function addFixedRoutes(app: App, service: Service): void {
  for (const name of EMPTY_LISTS) {
    app.get(`${BASE_PATH}/v2/${name}`, async (exchange) => {
      await identify(service, exchange);
      return exchange.json([]);
    });
  }
  app.get(`${BASE_PATH}/v2/events`, async (exchange) => {
    await identify(service, exchange);
    return exchange.json([], 200, NO_EVENTS);
  });
  app.get(`${BASE_PATH}/v2/component-versions`, async (exchange) => {
    await identify(service, exchange);
    const version = readVersion();
    return exchange.json({ release_tag: version, versions: { sealift: version } });
  });
  app.get(`${BASE_PATH}/v2/clusters/:cluster_id/manifests`, async (exchange) => {
    const identity = await identify(service, exchange);
    const id = requireUuid(exchange.req.param('cluster_id'), 'cluster_id');
    await findRecord(service, id, identity);
    return exchange.json([]);
  });
  addSupportRoutes(app, service);
}

/** Counts of events in the head of an answer, by severity. */
const NO_EVENTS = Object.fromEntries(
  [
    'Event-Count',
    ...['Info', 'Warning', 'Error', 'Critical'].map((each) => `Severity-Count-${each}`),
  ].map((name) => [name, '0']),
);

/** assisted-service's names of architectures. */
const SUPPORT_NAMES = {
  x86_64: 'X86_64_ARCHITECTURE',
  aarch64: 'ARM64_ARCHITECTURE',
  ppc64le: 'PPC64LE_ARCHITECTURE',
  s390x: 'S390X_ARCHITECTURE',
} as const;

/** An architecture is supported if the store has an ISO; features are those of installations from a service. */
function addSupportRoutes(app: App, service: Service): void {
  const levels = `${BASE_PATH}/v2/support-levels`;
  app.get(`${levels}/features`, async (exchange) => {
    await identify(service, exchange);
    requireAsked(exchange.req.query('openshift_version'));
    return exchange.json({ features: {} });
  });
  app.get(`${levels}/architectures`, async (exchange) => {
    await identify(service, exchange);
    const asked = requireAsked(exchange.req.query('openshift_version'));
    const all = await service.releases.list();
    const levelOf = (architecture: string): string =>
      findMeant(
        all.filter((each) => each.architecture === architecture),
        asked,
      ) === undefined
        ? 'unavailable'
        : 'supported';
    return exchange.json({
      architectures: Object.fromEntries(
        ARCHITECTURES.map((name) => [SUPPORT_NAMES[name], levelOf(name)]),
      ),
    });
  });
}

function requireAsked(version: string | undefined): string {
  if (version !== undefined && version !== '') return version;
  throw new ApiFailure(400, 'openshift_version in query is required');
}
