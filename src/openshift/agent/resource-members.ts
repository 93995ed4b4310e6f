import { readFileSync } from 'node:fs';
import type { DocumentProblem } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { PACKAGE_ROOT } from '../../base/program.ts';
import { decodeBase64 } from '../../base/text/base64.ts';
import { suggestName } from '../../base/text/words.ts';
import { joinPath } from '../../shape/decode-yaml.ts';
import { type ConfigDocument, decodeYaml, type TextSource } from '../../shape/document.ts';
import { readGoScalar } from '../../shape/go-scalar.ts';
import {
  FLAG,
  FREE,
  INTEGER,
  list,
  mapping,
  partial,
  type Plain,
  type Shape,
  TEXT,
} from '../../shape/shape.ts';

/*
 * Owns the members of a kind of resource, and reads a resource strictly along them, as defined by
 * assisted-service, Hive and the baremetal operator; of Kubernetes itself, those that are used here.
 */

/**
 * A word of SCALARS, `base64`, `=` and the words that a member may have, a list with the type of its items, a
 * mapping with the type of its values under `*`, or an object by its members.
 */
export type Type = string | readonly [Type] | { readonly [member: string]: Type };

export type Definition = {
  readonly group: string;
  readonly members: Readonly<Record<string, Type>>;
};

export type Definitions = Readonly<Record<string, Definition>>;

type Own = { readonly metadata: Type; readonly kinds: Definitions };

let own: Own | undefined;

function readOwn(): Own {
  own ??= JSON.parse(
    readFileSync(new URL('schema/agent-resources.json', PACKAGE_ROOT), 'utf8'),
  ) as Own;
  return own;
}

/** The payload's definition, else ours. An apiVersion must have the group of the kind. */
export function findDefinition(
  kind: string,
  apiVersion = '',
  ofPayload: Definitions = {},
): Definition | undefined {
  const kinds = { ...readOwn().kinds, ...ofPayload };
  const found = Object.hasOwn(kinds, kind) ? kinds[kind] : undefined;
  const isOther = apiVersion !== '' && apiVersion.replace(/\/.*/, '') !== found?.group;
  return isOther ? undefined : found;
}

const SCALARS: Readonly<Record<string, Shape>> = {
  text: TEXT,
  flag: FLAG,
  integer: INTEGER,
  any: FREE,
};

function toShape(type: Type): Shape {
  if (typeof type === 'string') {
    if (type === 'metadata') return toShape(readOwn().metadata);
    return SCALARS[type] ?? TEXT;
  }
  if (isListType(type)) return list(toShape(type[0]));
  const { '*': values } = type;
  if (values !== undefined) return mapping(toShape(values));
  const members = Object.entries(type).map(([name, member]) => [name, toShape(member)] as const);
  return partial(Object.fromEntries(members));
}

const isListType = (type: Type): type is readonly [Type] => Array.isArray(type);

export function readResourceMembers(
  source: Pick<TextSource, 'text' | 'parsed' | 'file'>,
  { members }: Definition,
): { readonly document: ConfigDocument; readonly problems: readonly DocumentProblem[] } {
  const document = decodeYaml(
    { ...source, publicKeys: new Set(listNames(members)) },
    toShape(members),
  ) as ConfigDocument;
  const problems = [
    ...document.problems,
    ...checkValue(document, members, { value: document.value, path: '' }),
  ];
  return { document, problems };
}

/** Names of members whose values may be shown in a problem. */
const listNames = (type: Type): readonly string[] => {
  if (typeof type === 'string') return type === 'metadata' ? listNames(readOwn().metadata) : [];
  if (isListType(type)) return listNames(type[0]);
  return Object.entries(type).flatMap(([name, member]) => [
    name.toLowerCase(),
    ...listNames(member),
  ]);
};

type Checked = { readonly value: Plain | undefined; readonly path: string };

/** Problems that a shape does not know: words of an enumeration, and texts that Go reads as another type. */
function checkValue(
  document: ConfigDocument,
  type: Type,
  { value, path }: Checked,
): readonly DocumentProblem[] {
  if (type === 'metadata') {
    return checkValue(document, readOwn().metadata, { value, path });
  }
  if (typeof type === 'string') return checkText(document, type, { value, path });
  if (Array.isArray(value)) {
    const of = isListType(type) ? type[0] : 'any';
    return value.flatMap((item: Plain, index) =>
      checkValue(document, of, { value: item, path: `${path}[${index}]` }),
    );
  }
  if (typeof value !== 'object' || value === null || isListType(type)) return [];
  return Object.entries(value).flatMap(([name, member]) =>
    checkValue(document, (Object.hasOwn(type, name) ? type[name] : type['*']) ?? 'any', {
      value: member,
      path: joinPath(path, name),
    }),
  );
}

function checkText(
  document: ConfigDocument,
  type: string,
  { value, path }: Checked,
): readonly DocumentProblem[] {
  if (typeof value !== 'string' || type === 'any') return [];
  const { report } = document;
  const read = readGoScalar(value);
  if (document.writtenOf(path) !== undefined && (read.kind === 'flag' || read.kind === 'number')) {
    const problem = `is read as ${String(read.value)} and not as a text`;
    return [report(path, problem, { code: 'config.type', hint: 'write it in quotes' })];
  }
  if (type === 'base64' && !decodeBase64(value)) {
    const details = {
      code: 'config.schema',
      hint: 'encode it, or use stringData',
      hideValue: true,
    };
    return [report(path, 'is not base64', details)];
  }
  const words = type.startsWith('=') ? type.slice(1).split('|') : [value];
  if (words.includes(value)) return [];
  const shown = words.filter((word) => word !== '').map((word) => `"${word}"`);
  const problem = `must be one of ${shown.join(', ')}, but is "${value}"`;
  const hint = suggestName(value, words);
  return [report(path, problem, { code: 'config.schema', ...withoutUndefined({ hint }) })];
}
