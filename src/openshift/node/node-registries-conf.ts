import { NODE_REGISTRY_PORT, nodeRegistryDomain, UPGRADE_REGISTRY_PORT } from './node-registry.ts';

/** A source, as in an ImageDigestMirrorSet, and the path of its copy on the node's registry. */
export type NodeMirror = {
  readonly source: string;
  readonly mirror: string;
  /** The image set that it belongs to: `release`, `additional`, ... */
  readonly set: string;
};

/**
 * `/etc/containers/registries.conf` of the nodes: every source is read from the node's own registry
 * and, where upgrade ISOs are possible, then from the upgrade ISO's. Several mirrors of one source
 * stand in one table, because a second table of the same prefix would be an error.
 */
export function formatNodeRegistriesConf(
  mirrors: readonly Omit<NodeMirror, 'set'>[],
  options: { readonly interactive: boolean },
): string {
  const domain = nodeRegistryDomain(options.interactive);
  const ports = options.interactive
    ? [NODE_REGISTRY_PORT]
    : [NODE_REGISTRY_PORT, UPGRADE_REGISTRY_PORT];
  const paths = new Map<string, Set<string>>();
  for (const { source, mirror } of mirrors) {
    paths.set(source, (paths.get(source) ?? new Set()).add(mirror));
  }
  const tables = [...paths].map(([source, copies]) =>
    [
      '[[registry]]',
      `  location = ${quote(source)}`,
      '  prefix = ""',
      ...[...copies].flatMap((path) =>
        ports.flatMap((port) => [
          '',
          '  [[registry.mirror]]',
          `    location = ${quote(`${domain}:${port}/${path}`)}`,
        ]),
      ),
      '',
    ].join('\n'),
  );
  return ['unqualified-search-registries = []\n', ...tables].join('\n');
}

/** A basic string of TOML 1.0; JSON's escapes are a subset of its. */
const quote = (text: string): string => JSON.stringify(text);
