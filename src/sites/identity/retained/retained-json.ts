import { parseDocument } from '../../../base/text/yaml.ts';
import { ConfigError } from '../../../base/errors.ts';
import { findYamlExcess } from '../../../base/text/document-bounds.ts';
import { isObject } from '../../../base/lists.ts';

/** A type of Go, a list of one shape, the members of a struct, or those and any others. */
export type Shape =
  'string' | 'integer' | 'strings' | readonly [Shape] | Members | readonly ['with others', Members];

/** The path of a file that has a fault, for its message. */
export type ShownFile = { readonly directory: string; readonly path: string };

/**
 * Parses strictly: keys are those of the shape to the case, and none twice. Where a shape is "with
 * others", those others are not looked at.
 *
 * @throws ConfigError `retained.manifest`, in the words of openshift-install
 */
export function decodeStrictly(text: string, shape: Shape, file: ShownFile): unknown {
  const value = parseJson(text, file);
  const excess = findYamlExcess(text);
  if (excess) throw manifestError(file, excess.message);
  // JSON is YAML, whose parser tells what JSON.parse overlooks.
  const repeated = parseDocument(text).errors.find(({ code }) => code === 'DUPLICATE_KEY');
  if (repeated) throw manifestError(file, `a key appears twice in line ${lineOf(repeated)}`);
  refuseStrange(value, shape, { file, path: '' });
  return value;
}

const lineOf = ({ linePos }: { readonly linePos?: readonly { readonly line: number }[] }): number =>
  linePos?.[0]?.line ?? 1;

/** The parser's own message would quote the text, keys and all. */
function parseJson(text: string, file: ShownFile): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw manifestError(file, 'invalid JSON syntax');
  }
}

type Place = { readonly file: ShownFile; readonly path: string };

/** Null stands for what is not there, as in Go. */
function refuseStrange(value: unknown, shape: Shape, place: Place): void {
  if (value === null && place.path !== '') return;
  if (typeof shape === 'string') {
    if (!SHAPES[shape].test(value)) throw wrongType(place, SHAPES[shape].name);
  } else if (isOpen(shape)) {
    refuseStrangeMembers(keepKnown(value, shape[1]), shape[1], place);
  } else if (isList(shape)) {
    refuseStrangeItems(value, shape[0], place);
  } else {
    refuseStrangeMembers(value, shape, place);
  }
}

const keepKnown = (value: unknown, members: Members): unknown =>
  isObject(value)
    ? Object.fromEntries(Object.entries(value).filter(([key]) => Object.hasOwn(members, key)))
    : value;

function refuseStrangeItems(value: unknown, shape: Shape, place: Place): void {
  if (!Array.isArray(value)) throw wrongType(place, 'a list');
  for (const [index, item] of value.entries()) {
    refuseStrange(item, shape, { ...place, path: `${place.path}[${index}]` });
  }
}

export type Members = { readonly [key: string]: Shape };

function refuseStrangeMembers(value: unknown, shape: Members, { file, path }: Place): void {
  if (!isObject(value)) throw wrongType({ file, path }, 'an object');
  for (const [key, member] of Object.entries(value)) {
    const inner = { file, path: path === '' ? key : `${path}.${key}` };
    const known = Object.hasOwn(shape, key) ? shape[key] : undefined;
    if (known === undefined) {
      throw manifestError(file, `unknown field ${JSON.stringify(inner.path)}`);
    }
    refuseStrange(member, known, inner);
  }
}

const isString = (value: unknown): boolean => typeof value === 'string' || value === null;

const SHAPES = {
  string: { name: 'a string', test: isString },
  integer: { name: 'an integer', test: Number.isSafeInteger },
  strings: {
    name: 'a list of strings',
    test: (value: unknown) => Array.isArray(value) && value.every(isString),
  },
} as const;

const isList = (shape: Shape): shape is readonly [Shape] =>
  Array.isArray(shape) && shape.length === 1;

const isOpen = (shape: Shape): shape is readonly ['with others', Members] =>
  Array.isArray(shape) && shape.length === 2;

function wrongType({ file, path }: Place, name: string): ConfigError {
  const field = path === '' ? 'all of it' : `field ${JSON.stringify(path)}`;
  return manifestError(file, `${field} should be ${name}`);
}

export const manifestError = ({ directory, path }: ShownFile, problem: string): ConfigError =>
  new ConfigError('retained.manifest', `${directory}: failed to unmarshal ${path}: ${problem}`, {
    hint: 'give the file as openshift-install wrote it, or leave it out',
  });
