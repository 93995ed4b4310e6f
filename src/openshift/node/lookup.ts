import { parseRegistriesConf, type Reference, resolveCandidates } from '../../registry/index.ts';
import type { PlannedMirror } from '../mirror/mirrors.ts';
import { formatNodeRegistriesConf } from './mirror-sets.ts';
import { NODE_REGISTRY_PORT, nodeRegistryDomain } from './registry.ts';

/** Lists the repositories of the node's registry that a node asks for an image, in order. */
export type NodeLookup = (image: Reference) => readonly string[];

/**
 * The places in which a node looks for an image: the nodes' own registries.conf, resolved as
 * containers/image does. A mirror counts for digests and for tags alike, because the file that is
 * written for nodes does not tell them apart.
 */
export function createNodeLookup(mirrors: readonly PlannedMirror[]): NodeLookup {
  const conf = parseRegistriesConf(
    formatNodeRegistriesConf(mirrors, { interactive: true }),
    'registries.conf of the nodes',
  );
  const registry = `${nodeRegistryDomain(true)}:${NODE_REGISTRY_PORT}`;
  return (image) =>
    resolveCandidates(conf, image).flatMap(({ reference }) =>
      reference.registry === registry ? [reference.repository] : [],
    );
}
