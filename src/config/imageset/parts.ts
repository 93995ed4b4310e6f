import { isDeepStrictEqual } from 'node:util';
import type { DocumentProblem } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { Json } from '../../base/text/json.ts';
import { readTexts, type View } from '../../shape/document.ts';
import { parseReleaseVersion, checkReferenceShape } from '../rules.ts';

/*
 * Owns the import of each part of an image set: platform, operators, additional and blocked images.
 */

/**
 * A setting of an image set that the imported configuration does not have: a note if the media carry the
 * same without it, otherwise a loss.
 */
export type ImportNote = DocumentProblem;

/** A part of a configuration, with notes on the settings of the image set that it leaves out. */
export type Noted<T> = { readonly value: T; readonly notes: readonly ImportNote[] };

/** The release settings of an image set; a missing setting is undefined. */
export type ImportedRelease = {
  readonly version?: string;
  readonly channel?: string;
  readonly cpuArchitecture?: string;
  readonly url?: string;
};

/** Keys of our configuration with the values to write, in the order to write them. */
export type Written = Readonly<Record<string, Json | undefined>>;

/** The first item of each name, with its place. */
type Seen = Map<string, { readonly place: string; readonly value: Written }>;

export const harmless = (note: ImportNote): ImportNote => ({ ...note, severity: 'note' });

export const isLoss = ({ severity }: ImportNote): boolean => severity !== 'note';

const PLATFORM = 'mirror.platform';

/** The one release and architecture of the media. Others of the image set are left out, with a note each. */
export function importPlatform(view: View): Noted<ImportedRelease> {
  const cpu = importArchitecture(view);
  const url = view.text(`${PLATFORM}.release`);
  const release = url === undefined ? importChannels(view) : importPayload(view, url);
  return {
    value: { ...cpu.value, ...release.value },
    notes: [...noteFlags(view), ...cpu.notes, ...release.notes],
  };
}

/** Architecture of the nodes if an image set names none. */
const DEFAULT_CPU = 'x86_64';

const OPERATORS = 'mirror.operators';

/** Catalogs with the packages to keep of each. */
export function importOperators(view: View, cpu = DEFAULT_CPU): Noted<readonly Written[]> {
  return joinNoted(view.items(OPERATORS).map((path) => importCatalog(view, path, cpu)));
}

const IMAGES = 'mirror.additionalImages';

/** Images besides the release, without references that are malformed, unversioned or listed already. */
export function importAdditionalImages(view: View, cpu = DEFAULT_CPU): Noted<readonly Written[]> {
  const seen: Seen = new Map();
  return joinNoted(view.items(IMAGES).map((path) => importImage(view, path, { seen, cpu })));
}

/** Patterns of images to leave out, each once. */
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

function noteFlags(view: View): readonly DocumentProblem[] {
  const { report } = view;
  const reasons = {
    graph: 'the update graph is not carried on the media',
    kubeVirtContainer: 'the disk image of KubeVirt is not carried on the media',
  };
  return Object.entries(reasons).flatMap(([name, reason]) => {
    const path = `${PLATFORM}.${name}`;
    return view.flag(path) === true ? [report(path, reason)] : [];
  });
}

const CPU: ReadonlyMap<string, string> = new Map([
  ['amd64', 'x86_64'],
  ['arm64', 'aarch64'],
  ['ppc64le', 'ppc64le'],
]);

function importArchitecture(view: View): Noted<ImportedRelease> {
  const listed = readTexts(view, `${PLATFORM}.architectures`);
  const all = [...listed, ...readTexts(view, `${PLATFORM}.platforms`, '.architecture')];
  const first = all.find(({ text }) => CPU.has(text));
  const notes = all
    .filter((entry) => entry !== first)
    .map(({ path, text }) => {
      const hint = CPU.has(text) ? 'build separate media for it' : undefined;
      return view.report(path, `media have one architecture: "${text}" is left out`, { hint });
    });
  const cpuArchitecture = CPU.get(first?.text ?? '');
  return { value: cpuArchitecture === undefined ? {} : { cpuArchitecture }, notes };
}

const RELEASE_TAG = /:(?<version>[^:@/]+)-(?<arch>x86_64|aarch64|ppc64le)(?:@.*)?$/;

/** `ocpRelease.version` is required even with the payload's reference; most tags name the version. */
function importPayload(view: View, url: string): Noted<ImportedRelease> {
  const { report } = view;
  const tag = RELEASE_TAG.exec(url)?.groups;
  const version = parseReleaseVersion(tag?.['version'] ?? '');
  const unused = view
    .items(`${PLATFORM}.channels`)
    .map((path) => report(path, '"release" replaces the channels'));
  const unknown = 'the reference does not say which version it is';
  const hint = 'write the version to ocpRelease.version';
  return {
    value: {
      url,
      ...withoutUndefined({ version }),
      ...(tag?.['arch'] !== undefined && { cpuArchitecture: tag['arch'] }),
    },
    notes: [
      ...(version === undefined ? [report(`${PLATFORM}.release`, unknown, { hint })] : []),
      ...unused,
    ],
  };
}

function importChannels(view: View): Noted<ImportedRelease> {
  const { report } = view;
  const [first, ...more] = view.items(`${PLATFORM}.channels`);
  if (first === undefined) {
    const hint = 'write the version to ocpRelease.version';
    return {
      value: {},
      notes: [report(PLATFORM, 'names no release, but media carry one', { hint })],
    };
  }
  const { value, notes } = importChannel(view, first);
  const others = more.map((path) =>
    report(path, 'media carry one release: only the first channel is used', {
      hint: 'build media for each',
    }),
  );
  return { value, notes: [...notes, ...others] };
}

const CHANNEL = /^(?<channel>stable|fast|candidate|eus)-(?<version>\d+\.\d+)$/;

function importChannel(view: View, path: string): Noted<ImportedRelease> {
  const { report } = view;
  const name = view.text(`${path}.name`) ?? '';
  const { channel, version } = CHANNEL.exec(name)?.groups ?? {};
  const hint = 'write version and channel to ocpRelease';
  const unknown = `"${name}" is not an OpenShift release channel`;
  const chosen = chooseVersion(view, path, version);
  return {
    value: {
      ...withoutUndefined({ channel, version: chosen.value }),
    },
    notes: [
      ...(channel === undefined ? [report(`${path}.name`, unknown, { hint })] : []),
      ...noteType(view, path),
      ...chosen.notes,
      ...['shortestPath', 'full']
        .filter((name) => view.flag(`${path}.${name}`) === true)
        .map((name) => report(`${path}.${name}`, 'media carry one release, not an upgrade path')),
    ],
  };
}

function noteType(view: View, path: string): readonly DocumentProblem[] {
  const type = view.text(`${path}.type`) ?? 'ocp';
  const problem = `media are made from OpenShift releases, not from "${type}"`;
  return type === 'ocp' ? [] : [view.report(`${path}.type`, problem)];
}

/** The newest version that the channel allows: its `maxVersion`, otherwise the version in its name. */
function chooseVersion(
  view: View,
  path: string,
  ofChannel: string | undefined,
): Noted<string | undefined> {
  const { report } = view;
  const min = view.text(`${path}.minVersion`);
  const max = view.text(`${path}.maxVersion`);
  const version = max === undefined ? ofChannel : toReleaseVersion(max);
  const taken = version === undefined ? 'no version' : `version ${version}`;
  const problem = `media carry one release: ${taken} is used, no earlier one`;
  const isRange = min !== undefined && min !== max;
  const unread = `"${max ?? ''}" is not a valid release version`;
  return {
    value: version,
    notes: [
      ...(isRange ? [report(`${path}.minVersion`, problem)] : []),
      ...(max !== undefined && version === undefined ? [report(`${path}.maxVersion`, unread)] : []),
    ],
  };
}

/** A version without the prefix that image sets allow, as in `v4.18.1`. */
function toReleaseVersion(text: string): string | undefined {
  const version = text.replace(/^[v=\s]+/, '');
  return parseReleaseVersion(version) === undefined ? undefined : version;
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
  const isOwn = ({ os, architecture }: Omit<(typeof listed)[number], 'place'>): boolean =>
    os === 'linux' && CPU.get(architecture) === cpu;
  const hint = 'set build.allArchitectures to carry all platforms of every image';
  return listed
    .filter((platform) => !isOwn(platform))
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
