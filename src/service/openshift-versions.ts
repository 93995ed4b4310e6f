import { BASE_PATH, identify, type App, type Service } from './context.ts';

/** `v2ListSupportedOpenshiftVersions`, and the list of offline releases that the wizard asks for. */
export function addVersionRoutes(app: App, service: Service): void {
  for (const name of ['openshift-versions', 'offline-openshift-versions']) {
    app.get(`${BASE_PATH}/v2/${name}`, async (exchange) => {
      await identify(service, exchange);
      const asked = exchange.req.query('version') ?? '';
      return exchange.json(await listVersions(service, asked));
    });
  }
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
