import { IntegrityError } from '../base/errors.ts';
import { isObject } from '../base/lists.ts';
import { formatCanonicalJson, type Json } from '../base/text/json.ts';
import { readJsonText, type JsonManner } from '../shape/json-text.ts';
import { DOCUMENT, type Field, type Members } from './schema.ts';

/** An Ignition configuration of specification 3. Modes are numbers, as in the JSON: 0o644 is 420. */
export type IgnitionConfig = {
  readonly ignition: {
    readonly version: string;
    readonly config?: {
      readonly merge?: readonly Resource[];
      readonly replace?: Resource;
    };
    readonly proxy?: JsonObject;
    readonly security?: JsonObject;
    readonly timeouts?: JsonObject;
  };
  readonly passwd?: { readonly users?: readonly User[]; readonly groups?: readonly JsonObject[] };
  readonly storage?: {
    readonly files?: readonly File[];
    readonly directories?: readonly Directory[];
    readonly links?: readonly Link[];
    readonly disks?: readonly JsonObject[];
    readonly raid?: readonly JsonObject[];
    readonly filesystems?: readonly JsonObject[];
    readonly luks?: readonly JsonObject[];
  };
  readonly systemd?: { readonly units?: readonly Unit[] };
  /** Since 3.3.0. */
  readonly kernelArguments?: {
    readonly shouldExist?: readonly string[];
    readonly shouldNotExist?: readonly string[];
  };
};

type JsonObject = Readonly<Record<string, Json | undefined>>;

export type Resource = {
  /** An RFC 2397 `data:` URL or a URL to fetch. */
  readonly source?: string;
  readonly compression?: string;
  readonly verification?: { readonly hash?: string };
  readonly httpHeaders?: readonly { readonly name: string; readonly value?: string }[];
};

export type Node = {
  readonly path: string;
  readonly overwrite?: boolean;
  readonly user?: { readonly id?: number; readonly name?: string };
  readonly group?: { readonly id?: number; readonly name?: string };
};

export type File = Node & {
  readonly contents?: Resource;
  readonly append?: readonly Resource[];
  readonly mode?: number;
};

type Directory = Node & { readonly mode?: number };

type Link = Node & { readonly target?: string; readonly hard?: boolean };

export type User = {
  readonly name: string;
  readonly passwordHash?: string;
  readonly sshAuthorizedKeys?: readonly string[];
  readonly [member: string]: Json | undefined;
};

export type Unit = {
  readonly name: string;
  readonly enabled?: boolean;
  readonly mask?: boolean;
  readonly contents?: string;
  readonly dropins?: readonly { readonly name: string; readonly contents?: string }[];
};

/** Largest number of problems that an error lists. */
const SHOWN = 20;

/** Levels of nesting; the specification has eight. */
const MAX_DEPTH = 250;

export type IgnitionVersion = typeof IGNITION_VERSION | '3.6.0';

/** The version of everything we render. */
export const IGNITION_VERSION = '3.2.0';

/** Older ones are subsets of the newest, so one reader takes them all. */
const READABLE_VERSIONS: readonly string[] = [
  '3.0.0',
  '3.1.0',
  IGNITION_VERSION,
  '3.3.0',
  '3.4.0',
  '3.5.0',
  '3.6.0',
];

/**
 * Reads a configuration; `name` is its name in errors. Members with the value null are dropped: Ignition takes
 * them as absent. Members that its version does not know are kept (`findIgnitionWarnings` names them). The
 * text never appears in an error, because it carries secrets.
 *
 * @param newest the newest version that is accepted; what others put on a medium may have any of 3.0 to 3.6
 * @throws IntegrityError `ignition.malformed`, `ignition.version`
 */
export function parseIgnition(
  text: string,
  name: string,
  newest: IgnitionVersion = '3.6.0',
): IgnitionConfig {
  const document = dropNulls(parseJson(text, name), name);
  const version = versionOf(document);
  if (version === undefined) {
    throw new IntegrityError('ignition.malformed', `${name} has no ignition.version`);
  }
  if (!READABLE_VERSIONS.includes(version) || version > newest) {
    throw new IntegrityError('ignition.version', `${name} has Ignition version "${version}"`, {
      expected: READABLE_VERSIONS.filter((readable) => readable <= newest).join(', '),
      found: version,
      hint: `use a configuration of Ignition specification 3.0 to ${newest.slice(0, 3)}`,
    });
  }
  const wrong = findWrongTypes(document, { kind: 'object', members: DOCUMENT }, '$');
  if (wrong.length > 0) {
    const shown = wrong.slice(0, SHOWN).join('; ');
    const more = wrong.length > SHOWN ? `; and ${wrong.length - SHOWN} more` : '';
    throw new IntegrityError('ignition.malformed', `${name} is malformed: ${shown}${more}`);
  }
  return document as IgnitionConfig;
}

/** Compact JSON with sorted keys: equal configurations give equal bytes. */
export function formatIgnition(config: IgnitionConfig): string {
  return formatCanonicalJson(config);
}

/** A file owned by root that replaces any existing file; its content is a `data:` URL. */
export function textFile(path: string, content: string | Uint8Array, mode: number): File {
  const base64 = Buffer.from(content).toString('base64');
  const source = base64 === '' ? 'data:,' : `data:text/plain;charset=utf-8;base64,${base64}`;
  return { path, overwrite: true, user: { name: 'root' }, contents: { source }, mode };
}

/** Far more values than any config has; a value takes more memory than its text. */
const MANNER: JsonManner = {
  most: { values: 500_000, depth: Infinity },
  repeated: 'refused',
};

function parseJson(text: string, name: string): unknown {
  const read = readJsonText(text, MANNER);
  if (read.why === undefined) return read.value;
  throw new IntegrityError('ignition.malformed', `${name} ${read.why}`);
}

function dropNulls(value: unknown, name: string, depth = 0): unknown {
  if (depth > MAX_DEPTH) {
    throw new IntegrityError(
      'ignition.malformed',
      `${name} is nested deeper than ${MAX_DEPTH} levels`,
    );
  }
  if (Array.isArray(value)) return value.map((entry) => dropNulls(entry, name, depth + 1));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, member]) => member !== null)
      .map(([key, member]) => [key, dropNulls(member, name, depth + 1)]),
  );
}

function versionOf(document: unknown): string | undefined {
  if (!isObject(document) || !isObject(document['ignition'])) return undefined;
  const version = document['ignition']['version'];
  return typeof version === 'string' ? version : undefined;
}

function findWrongTypes(value: unknown, field: Field, path: string): string[] {
  switch (field.kind) {
    case 'object':
      return isObject(value)
        ? findWrongMembers(value, field.members, path)
        : [`${path} is not an object`];
    case 'list':
      return [
        ...findWrongEntries(value, { kind: 'object', members: field.members }, path),
        ...findUnnamed(value, field.key, path),
      ];
    case 'strings':
      return findWrongEntries(value, { kind: 'string' }, path);
    case 'integer':
      return Number.isSafeInteger(value) ? [] : [`${path} is not an integer`];
    case 'string':
    case 'boolean':
      return typeof value === field.kind ? [] : [`${path} is not a ${field.kind}`];
  }
}

function findWrongEntries(value: unknown, field: Field, path: string): string[] {
  if (!Array.isArray(value)) return [`${path} is not an array`];
  return value.flatMap((entry: unknown, index) => findWrongTypes(entry, field, `${path}.${index}`));
}

/**
 * The specification requires the member that identifies an entry, for example the name of a unit or the path of
 * a file.
 */
function findUnnamed(value: unknown, key: readonly string[], path: string): string[] {
  const [member] = key;
  if (member === undefined || key.length > 1 || !Array.isArray(value)) return [];
  return value.flatMap((entry: unknown, index) =>
    isObject(entry) && entry[member] === undefined ? [`${path}.${index} has no ${member}`] : [],
  );
}

function findWrongMembers(
  value: Readonly<Record<string, unknown>>,
  members: Members,
  path: string,
): string[] {
  return Object.entries(value).flatMap(([key, member]) => {
    const field = Object.hasOwn(members, key) ? members[key] : undefined;
    return field === undefined ? [] : findWrongTypes(member, field, `${path}.${key}`);
  });
}
