import { IntegrityError, formatSentence, type FileProblem } from '../base/errors.ts';
import { formatIgnition, IGNITION_VERSION, type IgnitionVersion, parseIgnition } from './config.ts';
import { createPathTree, findAbovePath, type PathTree } from './path-tree.ts';
import { explainHeld } from './resource.ts';
import type { Shape } from '../shape/shape.ts';
import {
  DOCUMENT,
  type File,
  findField,
  type IgnitionConfig,
  isResource,
  type Node,
  type IgnitionResource,
  type Unit,
} from './schema.ts';
import { isInstalled } from './units.ts';

type Finding = { readonly path: string; readonly problem: string };

/**
 * Finds everything that Ignition would refuse in a configuration with correct types: paths (absolute,
 * simplified, unique, not through a link), modes, sources, compressions, hashes, owners, unit and drop-in
 * names. An empty list means that Ignition accepts the configuration. Paths are written as in
 * ignition-validate: `$.storage.files.3.path`.
 *
 * @param file name of the configuration in problems
 */
export const checkIgnition = (config: IgnitionConfig, file: string): readonly FileProblem[] =>
  [
    ...checkNodes(config),
    ...checkResources(config),
    ...(config.storage?.files ?? []).flatMap((file, index) =>
      checkFile(file, `$.storage.files.${index}`),
    ),
    ...checkUnits(config.systemd?.units ?? []),
    ...checkNames(config.passwd?.users ?? [], '$.passwd.users'),
  ].map((finding) => ({ severity: 'error', code: 'ignition.invalid', file, ...finding }));

/**
 * Finds what Ignition accepts but was probably not intended: unknown members, setuid, setgid and sticky
 * bits (decimal modes that look octal), and enabled units without an install section.
 */
export function findIgnitionWarnings(config: IgnitionConfig, file: string): readonly FileProblem[] {
  const { files = [], directories = [] } = config.storage ?? {};
  return [
    ...createMemberCheck(config.ignition.version)(config, DOCUMENT, '$'),
    ...files.flatMap(({ mode }, index) => warnOfMode(mode, `$.storage.files.${index}`)),
    ...directories.flatMap(({ mode }, index) => warnOfMode(mode, `$.storage.directories.${index}`)),
    ...(config.systemd?.units ?? []).flatMap((unit, index) =>
      warnOfUnit(unit, `$.systemd.units.${index}`),
    ),
  ].map((finding) => ({ severity: 'warning', code: 'ignition.unusual', file, ...finding }));
}

/**
 * The JSON text of a config, which must not break a rule of the format.
 *
 * @throws IntegrityError `ignition.invalid` with every problem
 */
export function formatValidIgnition(config: IgnitionConfig, name: string): string {
  const problems = checkIgnition(config, name);
  if (problems.length === 0) return formatIgnition(config);
  throw new IntegrityError('ignition.invalid', problems.map(formatSentence).join('; '));
}

/**
 * Reads a config that a person gives.
 *
 * @param newest as for `parseIgnition`
 * @returns the config, and a warning for everything that was probably not intended
 * @throws IntegrityError as `parseIgnition`; `ignition.invalid` if Ignition would refuse it
 */
export function readGivenIgnition(
  text: string,
  name: string,
  newest?: IgnitionVersion,
): { readonly config: IgnitionConfig; readonly warnings: readonly string[] } {
  const config = parseIgnition(text, name, newest);
  formatValidIgnition(config, name);
  return { config, warnings: findIgnitionWarnings(config, name).map(formatSentence) };
}

type MemberCheck = (value: unknown, shape: Shape, path: string) => Finding[];

/** Checks that Ignition of this version, but at least the one of our own configs, knows all members. */
function createMemberCheck(version: string): MemberCheck {
  const newest = version < IGNITION_VERSION ? IGNITION_VERSION : version;
  const check: MemberCheck = (value, shape, path) => {
    if (shape.kind === 'list') {
      return (value as readonly unknown[]).flatMap((entry, index) =>
        check(entry, shape.of, `${path}.${index}`),
      );
    }
    if (shape.kind !== 'record') return [];
    return Object.entries(value as Record<string, unknown>).flatMap(([key, member]) => {
      const known = findField(shape, key);
      if (known !== undefined && (known.since ?? '') <= newest) {
        return member === undefined ? [] : check(member, known, `${path}.${key}`);
      }
      return [
        { path: `${path}.${key}`, problem: `"${key}" is not a member of Ignition ${newest}` },
      ];
    });
  };
  return check;
}

function checkNodes(config: IgnitionConfig): Finding[] {
  const storage = config.storage ?? {};
  const places = {
    links: createPathTree(storage.links ?? []),
    files: createPathTree(storage.files ?? []),
  };
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

type Places = Readonly<Record<'links' | 'files', PathTree>>;

function checkNode(
  { path, mode, user, group }: Node & { readonly mode?: number },
  place: string,
  places: Places,
): Finding[] {
  const at = (member: string, problems: readonly string[]): Finding[] =>
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
  const link = findAbovePath(links, path);
  // Earlier versions of Ignition find it out when they make the directory.
  const file = findAbovePath(files, path);
  return [
    ...(link === undefined ? [] : [`path "${path}" passes through the link "${link}"`]),
    ...(file === undefined ? [] : [`path "${path}" is below the file "${file}"`]),
  ];
}

const isSimplified = (path: string): boolean =>
  path === '/' || (!path.endsWith('/') && !/\/(?:\.{0,2})(?:\/|$)/.test(path));

const checkMode = (mode: number): string[] =>
  mode < 0 || mode > 0o7777 ? [`mode ${mode} is not between 0 and 4095`] : [];

function warnOfMode(mode: number | undefined, path: string): Finding[] {
  if (mode === undefined || mode <= 0o777 || mode > 0o7777) return [];
  const problem = `mode ${mode} sets setuid, setgid or sticky: was it meant to be octal?`;
  return [{ path: `${path}.mode`, problem }];
}

const SCHEMES = ['data', 'http', 'https', 'tftp', 's3', 'gs'];

const schemesOf = ({ ignition }: IgnitionConfig): readonly string[] =>
  ignition.version < '3.4.0' ? SCHEMES : [...SCHEMES, 'arn'];

function checkFile(file: File, path: string): Finding[] {
  return file.overwrite === true && file.contents?.source === undefined
    ? [{ path: `${path}.overwrite`, problem: 'is true without a source' }]
    : [];
}

type Placed = { readonly resource: IgnitionResource; readonly path: string };

function listResources(value: unknown, shape: Shape, path: string): readonly Placed[] {
  if (shape.kind === 'list') {
    return (value as readonly unknown[]).flatMap((each, index) =>
      listResources(each, shape.of, `${path}.${index}`),
    );
  }
  if (shape.kind !== 'record') return [];
  if (isResource(shape)) return [{ resource: value as IgnitionResource, path }];
  return Object.entries(value as Record<string, unknown>).flatMap(([key, member]) => {
    const known = findField(shape, key);
    return known === undefined || member === undefined
      ? []
      : listResources(member, known, `${path}.${key}`);
  });
}

/** Bytes that the resources of a config may unpack to while they are checked. */
const MOST_UNPACKED = 64 << 20;

function checkResources(config: IgnitionConfig): Finding[] {
  const schemes = schemesOf(config);
  const left = { bytes: MOST_UNPACKED };
  return listResources(config, DOCUMENT, '$').flatMap(({ resource, path }) =>
    [...checkSource(resource, schemes, left), ...checkResource(resource)].map((problem) => ({
      path,
      problem,
    })),
  );
}

function checkResource({ compression, verification }: IgnitionResource): string[] {
  const problems: string[] = [];
  if (compression !== undefined && !['', 'gzip'].includes(compression)) {
    problems.push(`compression "${compression}" is not gzip`);
  }
  const hash = verification?.hash;
  if (hash !== undefined && !/^(?:sha256-[0-9a-f]{64}|sha512-[0-9a-f]{128})$/i.test(hash)) {
    problems.push(`hash "${hash}" is neither "sha256-" nor "sha512-" with hex digits`);
  }
  return problems;
}

function checkSource(
  resource: IgnitionResource,
  schemes: readonly string[],
  left: { bytes: number },
): readonly string[] {
  const { source = '' } = resource;
  if (source === '') return [];
  const scheme = source.slice(0, Math.max(source.indexOf(':'), 0)).toLowerCase();
  if (scheme === 'data') return [explainHeld(resource, left) ?? []].flat();
  if (schemes.includes(scheme)) return [];
  const known = `${schemes.slice(0, -1).join(', ')} or ${schemes.at(-1) ?? ''}`;
  return [`source scheme "${scheme}" is not ${known}`];
}

// systemd.unit(5); ignition-validate also accepts snapshot and scope.
const UNIT_NAME =
  /\.(?:service|socket|device|mount|automount|swap|target|path|timer|snapshot|slice|scope)$/;

function checkUnits(units: readonly Unit[]): Finding[] {
  const problems = units.flatMap((unit, index) =>
    checkUnit(unit).map((problem) => ({ path: `$.systemd.units.${index}`, problem })),
  );
  return [...problems, ...checkNames(units, '$.systemd.units')];
}

function checkUnit(unit: Unit): string[] {
  const problems: string[] = [];
  if (!UNIT_NAME.test(unit.name)) problems.push(`"${unit.name}" is not a valid systemd unit name`);
  for (const dropin of unit.dropins ?? []) {
    if (!dropin.name.endsWith('.conf'))
      problems.push(`drop-in "${dropin.name}" is not a .conf file`);
  }
  return problems;
}

function warnOfUnit(unit: Unit, path: string): Finding[] {
  if (unit.enabled !== true || isInstalled(unit)) return [];
  return [{ path, problem: `unit "${unit.name}" is enabled, but has no [Install] section` }];
}

function checkNames(entries: readonly { readonly name: string }[], path: string): Finding[] {
  const seen = new Set<string>();
  return entries.flatMap(({ name }, index) => {
    const known = seen.has(name);
    seen.add(name);
    return known ? [{ path: `${path}.${index}`, problem: `"${name}" appears more than once` }] : [];
  });
}
