import { ConfigError } from '../../base/errors.ts';
import { parseReference, type Reference } from '../../registry/reference.ts';
import type { PlannedMirror } from '../mirror/plan-mirrors.ts';
import { type WorkspaceMirror, readWorkspace } from './read-workspace.ts';
import type { RegistryClient } from '../../registry/client.ts';
import { enclosedTree } from '../../registry/layout/tree.ts';
import { listRepositories } from '../../registry/layout/tree.ts';
import { createTreeClient } from '../../registry/layout/tree-client.ts';

/** `host[:port]/path`, or a host alone, in its parts. */
export function splitMirror(mirror: string): { readonly host: string; readonly path: string } {
  const slash = mirror.indexOf('/');
  if (slash === -1) return { host: mirror, path: '' };
  return { host: mirror.slice(0, slash), path: mirror.slice(slash + 1).replace(/\/+$/, '') };
}

/** Whether a registry has a repository at or below a path; all of it is below the empty path. */
export const hasPath = (repositories: readonly string[], path: string): boolean =>
  path === '' || repositories.some((name) => name === path || name.startsWith(`${path}/`));

/**
 * The repositories of a tree that may have what a reference names: by the mirrors of the longest source
 * first, then of the shorter ones, then of the same path, then of that path below a namespace that
 * oc-mirror was told to put everything in.
 */
function listPlaces(reference: Reference, { mirrors, repositories }: Places): readonly string[] {
  const { registry, repository } = reference;
  const name = `${registry}/${repository}`;
  const matching = mirrors
    .filter(({ source }) => name === source || name.startsWith(`${source}/`))
    .toSorted((a, b) => b.source.length - a.source.length);
  const mapped = matching.flatMap(({ source, mirrors }) =>
    mirrors.map((mirror) =>
      (splitMirror(mirror).path + name.slice(source.length)).replace(/^\//, ''),
    ),
  );
  const nested = repositories.filter((one) => one.endsWith(`/${repository}`));
  const known = new Set(repositories);
  return [...new Set([...mapped, repository, ...nested])].filter((one) => known.has(one));
}

type Places = {
  readonly mirrors: readonly WorkspaceMirror[];
  readonly repositories: readonly string[];
};

/**
 * What a cluster calls a repository of the mirror: the source that its mirrors stand for, the longest
 * match first; where none does, the name in the registry of the node.
 */
export function nameSource(
  repository: string,
  { mirrors, registry }: { readonly mirrors: readonly PlannedMirror[]; readonly registry: string },
): Reference {
  const names = mirrors.flatMap(({ source, mirrors }) =>
    mirrors.flatMap((path) => {
      if (!hasPath([repository], path)) return [];
      const rest = path === '' ? `/${repository}` : repository.slice(path.length);
      return [{ name: readReference(source + rest), length: path.length }];
    }),
  );
  const longest = names.toSorted((a, b) => b.length - a.length);
  return longest.find(({ name }) => name)?.name ?? { registry, repository };
}

/** Undefined for what is not a reference: a source may be a whole registry. */
export function readReference(text: string): Reference | undefined {
  try {
    return parseReference(text);
  } catch (error) {
    if (error instanceof ConfigError) return undefined;
    throw error;
  }
}

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
