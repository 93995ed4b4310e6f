import { formatMirror, type PlannedMirror } from '../mirror/plan-mirrors.ts';
import { NODE_REGISTRY_PORT, nodeRegistryDomain, UPGRADE_REGISTRY_PORT } from './node-registry.ts';

/**
 * `/etc/containers/registries.conf` of the nodes: every source is read from the node's own registry
 * and, where upgrade ISOs are possible, then from the upgrade ISO's. Several mirrors of one source
 * stand in one table, because a second table of the same prefix would be an error. Pulls by tag have
 * no file of their own, so sources of every kind of mirror set are here.
 */
export function formatNodeRegistriesConf(
  mirrors: readonly PlannedMirror[],
  options: { readonly interactive: boolean },
): string {
  const domain = nodeRegistryDomain(options.interactive);
  const ports = options.interactive
    ? [NODE_REGISTRY_PORT]
    : [NODE_REGISTRY_PORT, UPGRADE_REGISTRY_PORT];
  const sources = new Set(mirrors.map(({ source }) => source));
  const tables = [...sources].map((source) => {
    const entries = mirrors.filter((mirror) => mirror.source === source);
    const local = entries.flatMap(({ mirrors }) =>
      mirrors.flatMap((path) => ports.map((port) => formatMirror(`${domain}:${port}`, path))),
    );
    const elsewhere = entries.flatMap((entry) => entry.elsewhere ?? []);
    return [
      '[[registry]]',
      `  location = ${quote(source)}`,
      '  prefix = ""',
      ...[...new Set([...local, ...elsewhere])].flatMap((location) => [
        '',
        '  [[registry.mirror]]',
        `    location = ${quote(location)}`,
      ]),
      '',
    ].join('\n');
  });
  return ['unqualified-search-registries = []\n', ...tables].join('\n');
}

/** A basic string of TOML 1.0; JSON's escapes are a subset of its. */
const quote = (text: string): string => JSON.stringify(text);
