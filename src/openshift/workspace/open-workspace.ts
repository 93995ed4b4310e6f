import type { RegistryClient } from '../../registry/client.ts';
import { enclosedTree } from '../../registry/layout/store.ts';
import { listRepositories } from '../../registry/layout/stored.ts';
import { createTreeClient } from '../../registry/layout/tree-client.ts';
import { listPlaces } from './mirror-names.ts';
import { readWorkspace } from './read-workspace.ts';

/**
 * An oc-mirror workspace in the place of all registries: every reference is looked for in its tree, where
 * its mirrors lead.
 *
 * @throws what `readWorkspace` throws
 */
export function openWorkspace(directory: string): RegistryClient {
  const { root, mirrors } = readWorkspace(directory);
  const tree = enclosedTree(root);
  let listing: Promise<readonly string[]> | undefined;
  return createTreeClient({
    tree,
    root,
    async repositoriesOf(reference) {
      const repositories = await (listing ??= listRepositories(tree));
      return listPlaces(reference, { mirrors, repositories });
    },
  });
}
