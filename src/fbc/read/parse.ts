import { withoutUndefined, isObject } from '../../base/lists.ts';
import { foldCase } from '../../shape/keys.ts';
import {
  findValue,
  needText,
  readField,
  readObjects,
  readText,
  readTexts,
  type Fields,
} from '../../shape/go-json.ts';
import { nameType } from '../../shape/words.ts';
import type {
  CatalogBundle,
  CatalogChannel,
  CatalogDeprecations,
  CatalogPackage,
  ChannelEntry,
  DeprecationEntry,
  CatalogPlace,
  MalformedDocument,
  OtherDocument,
  Requirement,
} from '../catalog.ts';
import { parseApi, parseRequirement } from '../requirement.ts';
import type { ParsedDocument } from './json.ts';

export type CatalogParts = {
  readonly packages: CatalogPackage[];
  readonly channels: CatalogChannel[];
  readonly bundles: CatalogBundle[];
  readonly deprecations: CatalogDeprecations[];
  readonly others: OtherDocument[];
  readonly malformed: MalformedDocument[];
};

/** Identity of a document, as far as it is given. */
type Heading = {
  readonly schema: string;
  readonly package: string | undefined;
  readonly name: string | undefined;
};

/** The package that a malformed document belongs to, with the document's schema and name. */
type DocumentOwner = Pick<MalformedDocument, 'schema' | 'package' | 'name'>;

const KNOWN = new Set(['olm.package', 'olm.channel', 'olm.bundle', 'olm.deprecations']);

const META_KEYS = ['schema', 'package', 'name'];

/**
 * Adds a document (operator-framework FBC) to a catalog. All its problems are reported, in lower case
 * and with the document's package and name; a document with problems is not added.
 *
 * @returns the owner of a malformed document, if it is known and the keys are unambiguous
 */
export function addDocument(
  parts: CatalogParts,
  { document, place }: { readonly document: ParsedDocument; readonly place: CatalogPlace },
  onProblem: (problem: string) => void,
): DocumentOwner | undefined {
  const found = { count: 0 };
  const report = (problem: string): void => {
    found.count++;
    onProblem(problem);
  };
  const { value, keys } = document;
  if (!isObject(value)) {
    report(`should be an object, but is ${nameType(value)}`);
    return undefined;
  }
  const heading = readHeading({ object: value, path: '', report });
  const who = heading === undefined ? '' : `${nameDocument(heading)}: `;
  const same = findSameKeys(keys);
  for (const names of same) report(`${who}duplicate keys for key ${names}`);
  if (heading === undefined) return undefined;
  const fields: Fields = {
    object: value,
    path: '',
    report: (problem) => {
      report(`${who}${problem}`);
    },
  };
  const add = parseKnown(parts, heading, { place, fields });
  if (found.count === 0) add();
  return found.count === 0 || same.length > 0 ? undefined : findOwner(heading);
}

function findOwner({ schema, name, ...heading }: Heading): DocumentOwner | undefined {
  const owner = schema === 'olm.package' ? name : heading.package;
  if (!KNOWN.has(schema) || owner === undefined || owner === '') return undefined;
  return { schema, package: owner, ...(name !== undefined && name !== '' && { name }) };
}

function findSameKeys(keys: readonly string[]): readonly string[] {
  const groups = new Map<string, string[]>();
  for (const key of keys) {
    const folded = foldCase(key);
    const group = groups.get(folded);
    if (group === undefined) groups.set(folded, [key]);
    else group.push(key);
  }
  return [...groups.values()]
    .filter((group) => group.length > 1)
    .map((group) => {
      const [first = '', ...rest] = group.map((key) => JSON.stringify(key));
      return `${first}: also written ${rest.join(', ')}`;
    });
}

/** Undefined if the identity of the document is not clear, which is reported. */
function readHeading({ object, report }: Fields): Heading | undefined {
  const [schema, inPackage, name] = META_KEYS.map((key) => findValue(object, key));
  const heading = { schema: textOf(schema) ?? '', package: textOf(inPackage), name: textOf(name) };
  const who = nameDocument(heading);
  const problems = [schema, inPackage, name].flatMap((value, index) => {
    if (value === undefined || typeof value === 'string') return [];
    return [`${META_KEYS[index] ?? ''} should be a string, but is ${nameType(value)}`];
  });
  for (const problem of problems) report(who === '' ? problem : `${who}: ${problem}`);
  if (schema === undefined || schema === '')
    report(`${['object', who].filter(Boolean).join(' ')} has no schema`);
  return problems.length > 0 || heading.schema === '' ? undefined : heading;
}

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : undefined;

const nameDocument = ({ schema, package: inPackage, name }: Heading): string =>
  [schema, [inPackage, name].filter(Boolean).join('/')].filter(Boolean).join(' ');

type Known = { readonly fields: Fields; readonly place: CatalogPlace };

/** Parses the document, and returns the function that adds it to the catalog. */
function parseKnown(parts: CatalogParts, heading: Heading, known: Known): () => void {
  switch (heading.schema) {
    case 'olm.package':
      return addTo(parts.packages, parsePackage(known));
    case 'olm.channel':
      return addTo(parts.channels, parseChannel(known));
    case 'olm.bundle':
      return addTo(parts.bundles, parseBundle(known));
    case 'olm.deprecations':
      return addTo(parts.deprecations, parseDeprecations(known));
    default:
      return addTo(parts.others, {
        schema: heading.schema,
        ...withoutUndefined({ package: heading.package, name: heading.name }),
        place: known.place,
      });
  }
}

const addTo =
  <Item>(list: Item[], item: Item): (() => void) =>
  () =>
    void list.push(item);

function parsePackage({ fields, place }: Known): CatalogPackage {
  const defaultChannel = readText(fields, 'defaultChannel');
  return {
    name: needText(fields, 'name'),
    defaultChannel: defaultChannel === '' ? undefined : defaultChannel,
    place,
  };
}

const parseChannel = ({ fields, place }: Known): CatalogChannel => ({
  package: needText(fields, 'package'),
  name: needText(fields, 'name'),
  entries: readObjects(fields, 'entries').map(parseEntry),
  place,
});

function parseEntry(fields: Fields): ChannelEntry {
  const name = needText(fields, 'name');
  const replaces = readText(fields, 'replaces');
  const skips = readTexts(fields, 'skips');
  const skipRange = readText(fields, 'skipRange');
  return {
    name,
    ...(replaces !== undefined && replaces !== '' && { replaces }),
    ...(skips.length > 0 && { skips }),
    ...(skipRange !== undefined && skipRange !== '' && { skipRange }),
  };
}

function parseBundle({ fields, place }: Known): CatalogBundle {
  const inPackage = needText(fields, 'package');
  const name = needText(fields, 'name');
  if (readField(fields, 'image') === undefined)
    fields.report('image should be a string, but is absent');
  const properties = readObjects(fields, 'properties').map((property) => ({
    type: needText(property, 'type'),
    property,
  }));
  const ofType = (type: string): readonly Fields[] =>
    properties.filter((one) => one.type === type).flatMap(({ property }) => readValue(property));
  // OLM ignores unreadable values of these, so they make no bundle malformed.
  const valuesOf = (type: string): readonly unknown[] =>
    properties
      .filter((one) => one.type === type)
      .map(({ property }) => readField(property, 'value'));
  const version = readVersion(fields, inPackage, ofType('olm.package'));
  const most = valuesOf('olm.maxOpenShiftVersion');
  return {
    package: inPackage,
    name,
    image: readText(fields, 'image') ?? '',
    ...(version !== undefined && version !== '' && { version }),
    requirements: [
      ...ofType('olm.package.required').map(parseRequired),
      ...valuesOf('olm.gvk.required').map(parseRequiredApi),
      ...valuesOf('olm.constraint').map((value) => parseRequirement(value)),
    ],
    provides: valuesOf('olm.gvk').flatMap((value) => parseApi(value) ?? []),
    ...(most.length > 0 && { maxOpenShiftVersion: most.map(formatValue).join(', ') }),
    relatedImages: readObjects(fields, 'relatedImages').map((related) => ({
      name: readText(related, 'name') ?? '',
      image: readText(related, 'image') ?? '',
    })),
    place,
  };
}

const formatValue = (value: unknown): string =>
  typeof value === 'string' ? value : JSON.stringify(value);

/** The value of a property if it is an object; else empty. */
function readValue(property: Fields): readonly Fields[] {
  const value = readField(property, 'value');
  if (isObject(value)) return [{ ...property, object: value, path: `${property.path}value.` }];
  property.report(`${property.path}value should be an object, but is ${nameType(value)}`);
  return [];
}

function readVersion(
  fields: Fields,
  inPackage: string,
  values: readonly Fields[],
): string | undefined {
  if (values.length > 1) {
    fields.report(`should have one property olm.package, but has ${values.length}`);
  }
  const [value] = values;
  if (value === undefined) return undefined;
  const packageName = readText(value, 'packageName') ?? '';
  if (packageName !== inPackage) {
    fields.report(
      `${value.path}packageName should be "${inPackage}" as the bundle's package, but is "${packageName}"`,
    );
  }
  return readText(value, 'version');
}

const parseRequired = (value: Fields): Requirement => ({
  kind: 'package',
  packageName: needText(value, 'packageName'),
  versionRange: needText(value, 'versionRange'),
});

function parseRequiredApi(value: unknown): Requirement {
  const api = parseApi(value);
  if (api !== undefined) return { kind: 'api', api };
  return { kind: 'unknown', what: 'an API', reason: 'its olm.gvk.required should be an object' };
}

const parseDeprecations = ({ fields, place }: Known): CatalogDeprecations => ({
  package: needText(fields, 'package'),
  entries: readObjects(fields, 'entries').flatMap(parseDeprecation),
  place,
});

function parseDeprecation(entry: Fields): readonly DeprecationEntry[] {
  const object = readField(entry, 'reference');
  if (!isObject(object)) {
    entry.report(`${entry.path}reference should be an object, but is ${nameType(object)}`);
    return [];
  }
  const reference = { ...entry, object, path: `${entry.path}reference.` };
  const schema = needText(reference, 'schema');
  const name = readText(reference, 'name');
  return [
    {
      reference: { schema, ...(name !== undefined && name !== '' && { name }) },
      message: readText(entry, 'message') ?? '',
    },
  ];
}
