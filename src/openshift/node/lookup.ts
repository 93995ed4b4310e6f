import { parseRegistriesConf, type Reference, resolveCandidates } from '../../registry/index.ts';
import type { PlannedMirror } from '../mirror/mirrors.ts';
import { formatNodeRegistriesConf } from './mirror-sets.ts';
import { NODE_REGISTRY_PORT, nodeRegistryDomain, UPGRADE_REGISTRY_PORT } from './registry.ts';

/** Lists the repositories of the node's registry that a node asks for an image, in order. */
export type NodeLookup = (image: Reference) => readonly string[];

/**
 * Resolves the nodes' own registries.conf as containers/image does. A mirror counts for digests and for tags
 * alike, because the file that is written for nodes does not tell them apart.
 */
export const createNodeLookup = (mirrors: readonly PlannedMirror[]): NodeLookup =>
  createConfLookup(formatNodeRegistriesConf(mirrors, { interactive: true }));

/** @throws ConfigError `registries-conf.malformed` */
export function createConfLookup(text: string): NodeLookup {
  const conf = parseRegistriesConf(text, 'registries.conf of the nodes');
  return (image) => [
    ...new Set(
      resolveCandidates(conf, image).flatMap(({ reference: { registry, repository } }) =>
        NODE_REGISTRIES.has(registry) ? [repository] : [],
      ),
    ),
  ];
}

/** Every name of the registry of a node, and of the registry of an attached upgrade ISO. */
export const NODE_REGISTRIES: ReadonlySet<string> = new Set(
  [true, false].flatMap((interactive) =>
    [NODE_REGISTRY_PORT, UPGRADE_REGISTRY_PORT].map(
      (port) => `${nodeRegistryDomain(interactive)}:${port}`,
    ),
  ),
);
