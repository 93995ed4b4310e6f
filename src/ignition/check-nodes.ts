import type { IgnitionConfig, Node } from './schema.ts';

/* Owns the rules for places of files, directories and links. */

/** A broken rule; its path as ignition-validate writes it. */
export type IgnitionFinding = { readonly path: string; readonly problem: string };

/** Finds wrong paths, modes and owners of files, directories and links. */
export function checkNodes(config: IgnitionConfig): IgnitionFinding[] {
  const storage = config.storage ?? {};
  const places = { links: treeOf(storage.links ?? []), files: treeOf(storage.files ?? []) };
  const seen = new Set<string>();
  return (['files', 'directories', 'links'] as const).flatMap((kind) =>
    (storage[kind] ?? []).flatMap((node, index) => {
      const place = `$.storage.${kind}.${index}`;
      const findings = checkNode(node, place, places);
      if (seen.has(node.path)) {
        const problem = `path "${node.path}" appears more than once`;
        findings.push({ path: `${place}.path`, problem });
      }
      seen.add(node.path);
      return findings;
    }),
  );
}

/** Names by the names in front of them: a path may have thousands, so each of them is looked at once. */
type Tree = { path?: string; readonly below: Map<string, Tree> };

function treeOf(nodes: readonly Pick<Node, 'path'>[]): Tree {
  const root: Tree = { below: new Map() };
  for (const { path } of nodes as readonly Partial<Node>[]) {
    if (!path) continue; // which is a problem of its own
    let at = root;
    for (const name of path.split('/')) {
      const next: Tree = at.below.get(name) ?? { below: new Map() };
      at.below.set(name, next);
      at = next;
    }
    at.path = path;
  }
  return root;
}

/** The uppermost path in a tree that is above a path. */
function findAbove(tree: Tree, path: string): string | undefined {
  let at: Tree | undefined = tree;
  for (const name of path.split('/').slice(0, -1)) {
    at = at.below.get(name);
    if (at?.path !== undefined || at === undefined) break;
  }
  return at?.path;
}

type Places = Readonly<Record<'links' | 'files', Tree>>;

function checkNode(
  { path, mode, user, group }: Node & { readonly mode?: number },
  place: string,
  places: Places,
): IgnitionFinding[] {
  const at = (member: string, problems: readonly string[]): IgnitionFinding[] =>
    problems.map((problem) => ({ path: `${place}.${member}`, problem }));
  // The document may lack a member that the type requires: its presence was not checked.
  if (!(path as string | undefined)) return at('path', ['path is missing']);
  return [
    ...at('path', [...checkPath(path), ...checkParents(path, places)]),
    ...at('mode', mode === undefined ? [] : checkMode(mode)),
    ...at('user', checkOwner(user)),
    ...at('group', checkOwner(group)),
  ];
}

function checkPath(path: string): string[] {
  if (!path.startsWith('/')) return [`path "${path}" is not absolute`];
  return isSimplified(path) ? [] : [`path "${path}" is not simplified`];
}

const checkOwner = (owner: Node['user']): string[] =>
  owner?.id === undefined || owner.name === undefined
    ? []
    : [`owner has both the id ${owner.id} and the name "${owner.name}"`];

function checkParents(path: string, { links, files }: Places): string[] {
  const link = findAbove(links, path);
  // Earlier versions of Ignition find it out when they make the directory.
  const file = findAbove(files, path);
  return [
    ...(link === undefined ? [] : [`path "${path}" passes through the link "${link}"`]),
    ...(file === undefined ? [] : [`path "${path}" is below the file "${file}"`]),
  ];
}

const isSimplified = (path: string): boolean =>
  path === '/' || (!path.endsWith('/') && !/\/(?:\.{0,2})(?:\/|$)/.test(path));

const checkMode = (mode: number): string[] =>
  mode < 0 || mode > 0o7777 ? [`mode ${mode} is not between 0 and 4095`] : [];
