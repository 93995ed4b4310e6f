import { isDeepStrictEqual } from 'node:util';
import type { DocumentProblem } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { View } from '../../shape/document.ts';
import { checkReferenceShape } from '../rules.ts';
import { harmless, type ImportNote, type Noted, type Written } from './notes.ts';
import { CPU } from './platform.ts';

/* Owns the import of the images of an image set: operators, additional and blocked images. */

/** The first item of each name, with its place. */
type Seen = Map<string, { readonly place: string; readonly value: Written }>;

/** Architecture of the nodes if an image set names none. */
const DEFAULT_CPU = 'x86_64';

const OPERATORS = 'mirror.operators';

export function importOperators(view: View, cpu = DEFAULT_CPU): Noted<readonly Written[]> {
  return joinNoted(view.items(OPERATORS).map((path) => importCatalog(view, path, cpu)));
}

const IMAGES = 'mirror.additionalImages';

/** Images besides the release, without references that are malformed, unversioned or listed already. */
export function importAdditionalImages(view: View, cpu = DEFAULT_CPU): Noted<readonly Written[]> {
  const seen: Seen = new Map();
  return joinNoted(view.items(IMAGES).map((path) => importImage(view, path, { seen, cpu })));
}

export function importBlockedImages(view: View): Noted<readonly Written[]> {
  const seen: Seen = new Map();
  return joinNoted(
    view.items('mirror.blockedImages').map((path) => {
      const value = readTextsOf(view, path, ['name']);
      const notes = noteTwice(view, path, { value, seen });
      return { value: notes.length === 0 ? [value] : [], notes };
    }),
  );
}

function importCatalog(view: View, path: string, cpu: string): Noted<readonly Written[]> {
  const { report } = view;
  const { catalog, refused } = readCatalog(view.text(`${path}.catalog`) ?? '');
  if (refused !== undefined) {
    return { value: [], notes: [report(`${path}.catalog`, `left out: ${refused}`)] };
  }
  const isFull = view.flag(`${path}.full`) === true;
  const packages = joinNoted(
    view.items(`${path}.packages`).map((item) => importPackage(view, item, isFull)),
  );
  const value: Written = {
    catalog,
    ...(isFull && { full: true }),
    ...readTextsOf(view, path, ['targetCatalog', 'targetTag']),
    ...(packages.value.length > 0 && { packages: packages.value }),
  };
  const isRelative = /^oci:[^/]/.test(catalog);
  const relative = `its path is relative to the configuration file: ${catalog}`;
  return {
    value: [value],
    notes: [
      ...(isRelative ? [harmless(report(`${path}.catalog`, relative))] : []),
      ...noteCatalogKeys(view, path, cpu),
      ...packages.notes,
    ],
  };
}

/** oc-mirror reads all text after `oci://` as a path, which may be relative. */
function readCatalog(text: string): { readonly catalog: string; readonly refused?: string } {
  const [, path] = /^oci:\/\/(.*)$/s.exec(text) ?? [];
  const catalog = path === undefined || path.startsWith('/') ? text : `oci:${path}`;
  if (catalog.startsWith('oci:')) return { catalog };
  const refused = checkReferenceShape(catalog);
  return { catalog, ...withoutUndefined({ refused }) };
}

function noteCatalogKeys(view: View, path: string, cpu: string): readonly ImportNote[] {
  const { report } = view;
  const template = `${path}.targetCatalogSourceTemplate`;
  const skip = `${path}.skipDependencies`;
  const hint = 'put your own CatalogSource into openshift/';
  return [
    ...(view.text(template) === undefined
      ? []
      : [report(template, 'templates of CatalogSources are not used', { hint })]),
    ...(view.flag(skip) === true ? [harmless(report(skip, 'oc-mirror v2 ignores it'))] : []),
    ...notePlatforms(view, path, cpu),
  ];
}

function importPackage(view: View, path: string, isFull: boolean): Noted<readonly Written[]> {
  const channels = joinNoted(
    view.items(`${path}.channels`).map((channel) => importNamed(view, channel, isFull)),
  );
  const { value, notes } = importNamed(view, path, isFull);
  const written = channels.value.length > 0 ? { channels: channels.value } : {};
  return {
    value: value.map((item) => ({ ...item, ...written })),
    notes: [...notes, ...channels.notes],
  };
}

const RANGE = ['minVersion', 'maxVersion'];

/** A package or a channel. `full` makes its versions meaningless. */
function importNamed(view: View, path: string, isFull: boolean): Noted<readonly Written[]> {
  const ranges = readTextsOf(view, path, RANGE);
  const problem = 'left out: "full" of the catalog keeps every version';
  return {
    value: [{ ...readTextsOf(view, path, ['name', 'defaultChannel']), ...(isFull ? {} : ranges) }],
    notes: Object.keys(isFull ? ranges : {}).map((name) => view.report(`${path}.${name}`, problem)),
  };
}

function importImage(
  view: View,
  path: string,
  { seen, cpu }: { readonly seen: Seen; readonly cpu: string },
): Noted<readonly Written[]> {
  const { report } = view;
  const place = `${path}.name`;
  const name = view.text(place) ?? '';
  const shape = checkReferenceShape(name);
  const hasVersion = /@|:[^/:]*$/.test(name);
  const refused = shape ?? (hasVersion ? undefined : `"${name}" has no tag and no digest`);
  if (refused !== undefined) return { value: [], notes: [report(place, `left out: ${refused}`)] };
  const value = readTextsOf(view, path, ['name', 'targetRepo', 'targetTag']);
  const twice = noteTwice(view, path, { value, seen });
  if (twice.length > 0) return { value: [], notes: twice };
  return { value: [value], notes: notePlatforms(view, path, cpu) };
}

/** A note if the name was seen before; harmless if both items are equal. */
function noteTwice(
  view: View,
  path: string,
  { value, seen }: { readonly value: Written; readonly seen: Seen },
): readonly ImportNote[] {
  const place = `${path}.name`;
  const name = view.text(place) ?? '';
  const first = seen.get(name);
  if (first === undefined) {
    seen.set(name, { place, value });
    return [];
  }
  const note = view.report(place, `left out: "${name}" already appears at ${first.place}`);
  return [isDeepStrictEqual(first.value, value) ? harmless(note) : note];
}

/** Platforms of an entry that media of this architecture do not have. */
function notePlatforms(view: View, path: string, cpu: string): readonly DocumentProblem[] {
  const listed = view.items(`${path}.platforms`).map((place) => ({
    place,
    os: view.text(`${place}.os`) ?? 'linux',
    architecture: view.text(`${place}.architecture`) ?? '',
  }));
  const hint = 'set build.allArchitectures to carry all platforms of every image';
  return listed
    .filter(({ os, architecture }) => os !== 'linux' || CPU.get(architecture) !== cpu)
    .map(({ place, os, architecture }) => {
      const problem = `left out: ${os}/${architecture}; images are carried for ${cpu}`;
      return view.report(place, problem, { hint });
    });
}

const readTextsOf = (
  view: View,
  path: string,
  names: readonly string[],
): Readonly<Record<string, string>> =>
  Object.fromEntries(
    names.flatMap((name) => {
      const text = view.text(`${path}.${name}`);
      return text === undefined ? [] : [[name, text]];
    }),
  );

const joinNoted = (parts: readonly Noted<readonly Written[]>[]): Noted<readonly Written[]> => ({
  value: parts.flatMap(({ value }) => value),
  notes: parts.flatMap(({ notes }) => notes),
});
