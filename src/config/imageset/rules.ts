import semver from 'semver';
import type { DocumentProblem } from '../../base/errors.ts';
import { readItemTexts, type View, type ConfigDocument } from '../../shape/document.ts';
import { checkConfiguration } from '../../shape/configuration.ts';
import { FILLED, FLAG, INTEGER, list, optional, partial, record, TEXT } from '../../shape/shape.ts';
import { TARGETS } from '../appliance-shape.ts';
import { checkDuplicates, checkPatterns, checkReferenceShape } from '../rules.ts';

export function checkImageSet(view: View): readonly DocumentProblem[] {
  const { document } = view;
  if (document.isBroken) return document.problems;
  return [
    ...document.problems,
    ...checkImageSetShape(document),
    ...checkKind(view),
    ...checkPlatform(view),
    ...checkOperators(viewUnder(view, 'mirror')),
    ...checkTargets(view),
    ...checkPatterns(view, 'mirror.blockedImages'),
  ];
}

export function checkOperators(view: View): readonly DocumentProblem[] {
  return [
    ...checkOperatorTargets(view),
    ...view
      .items('operators')
      .flatMap((operator) => [
        ...checkDuplicates(view, `${operator}.packages`, '.name'),
        ...view.items(`${operator}.packages`).flatMap((item) => checkPackage(view, item)),
      ]),
  ];
}

const PLATFORMS = list(partial({ os: TEXT, architecture: TEXT, variant: TEXT }));
const RANGE = { minVersion: optional(TEXT), maxVersion: optional(TEXT) };

const PLATFORM = partial({
  graph: FLAG,
  architectures: list(TEXT),
  platforms: PLATFORMS,
  release: TEXT,
  kubeVirtContainer: FLAG,
  channels: list(
    record({
      name: FILLED,
      type: optional(TEXT),
      ...RANGE,
      shortestPath: optional(FLAG),
      full: optional(FLAG),
    }),
  ),
});

const OPERATOR = record({
  catalog: FILLED,
  full: optional(FLAG),
  targetCatalog: optional(TEXT),
  targetTag: optional(TEXT),
  targetCatalogSourceTemplate: optional(TEXT),
  skipDependencies: optional(FLAG),
  platforms: optional(PLATFORMS),
  packages: optional(
    list(
      record({
        name: FILLED,
        defaultChannel: optional(TEXT),
        ...RANGE,
        channels: optional(list(record({ name: FILLED, ...RANGE }))),
      }),
    ),
  ),
});

const HELM = partial({
  repositories: list(
    partial({
      url: TEXT,
      name: TEXT,
      charts: list(
        partial({
          name: TEXT,
          version: TEXT,
          path: TEXT,
          imagePaths: list(TEXT),
          platforms: PLATFORMS,
        }),
      ),
    }),
  ),
  local: list(partial({ name: TEXT, path: TEXT, imagePaths: list(TEXT) })),
});

/** oc-mirror's ImageSetConfiguration v2alpha1, whose reader refuses keys that it does not know. */
export const IMAGE_SET = record({
  apiVersion: FILLED,
  kind: FILLED,
  archiveSize: optional(INTEGER),
  mirror: partial({
    platform: PLATFORM,
    operators: list(OPERATOR),
    additionalImages: list(
      record({
        name: FILLED,
        targetRepo: optional(TEXT),
        targetTag: optional(TEXT),
        platforms: optional(PLATFORMS),
      }),
    ),
    helm: HELM,
    blockedImages: list(record({ name: FILLED })),
    samples: list(partial({ name: TEXT })),
  }),
});

/** A catalog may be listed twice only if its copies have two names. */
function checkOperatorTargets(view: View): readonly DocumentProblem[] {
  const first = new Map<string, string>();
  return view.items('operators').flatMap((path) => {
    const names = ['catalog', 'targetCatalog', 'targetTag'];
    const key = JSON.stringify(names.map((name) => view.text(`${path}.${name}`) ?? ''));
    const known = first.get(key);
    first.set(key, known ?? path);
    if (known === undefined) return [];
    const catalog = view.text(`${path}.catalog`) ?? '';
    const hint = 'name all packages in one entry, or give one of the two a targetTag';
    return [view.report(`${path}.catalog`, `"${catalog}" already appears at ${known}`, { hint })];
  });
}

const VERSIONS = ['minVersion', 'maxVersion'] as const;
const BOUNDS = [...VERSIONS, 'minBundle'] as const;

function checkPackage(view: View, item: string): readonly DocumentProblem[] {
  const channels = view.items(`${item}.channels`);
  const isRanged = (path: string): boolean =>
    BOUNDS.some((name) => view.text(`${path}.${name}`) !== undefined);
  const isMixed = isRanged(item) && channels.some(isRanged);
  const mixed = 'has versions for itself and for its channels; give them in one place only';
  return [
    ...checkDuplicates(view, `${item}.channels`, '.name'),
    ...[item, ...channels].flatMap((path) => checkVersions(view, path)),
    ...[item, ...channels].flatMap((path) => checkMinBundle(view, path)),
    ...checkFull(view, item, [item, ...channels].filter(isRanged)),
    ...(isMixed ? [view.report(item, mixed)] : []),
    ...checkEmptyNames(view, item),
  ];
}

function checkVersions(view: View, path: string): readonly DocumentProblem[] {
  return VERSIONS.flatMap((name) => {
    const text = view.text(`${path}.${name}`);
    if (text === undefined || semver.coerce(text, { includePrerelease: true }) !== null) return [];
    return [view.report(`${path}.${name}`, `"${text}" is not a valid version`)];
  });
}

/** `minBundle` is the start of a range by name; it excludes one by version. */
function checkMinBundle(view: View, path: string): readonly DocumentProblem[] {
  const isRanged = VERSIONS.some((name) => view.text(`${path}.${name}`) !== undefined);
  if (view.text(`${path}.minBundle`) === undefined || !isRanged) return [];
  const problem = 'is given together with a range of versions';
  return [view.report(`${path}.minBundle`, problem, { hint: 'write only one of the two' })];
}

function checkFull(
  view: View,
  item: string,
  ranged: readonly string[],
): readonly DocumentProblem[] {
  const catalog = item.slice(0, item.lastIndexOf('.packages'));
  if (view.flag(`${catalog}.full`) !== true) return [];
  const problem = 'has versions, but "full" of its catalog keeps every version';
  return ranged.map((path) => view.report(path, problem));
}

/** White space alone is not a valid channel name. */
function checkEmptyNames(view: View, item: string): readonly DocumentProblem[] {
  return readItemTexts(view, `${item}.channels`, '.name')
    .filter(({ text }) => text.trim() === '')
    .map(({ path }) => view.report(path, 'is required'));
}

/** Hints for keys that v2alpha1 does not have: of v1alpha2 (oc-mirror v1), of our own files, of other kinds. */
const FORMER_KEYS: ReadonlyMap<string, string> = new Map([
  ['storageConfig', 'remove it: sealift keeps its state in the work directory'],
  ['targetName', 'write the path of the copy to "targetCatalog"'],
  ['originalRef', 'remove it'],
  ['minBundle', 'write the version of that bundle to "minVersion"'],
  ['delete', 'it belongs to a DeleteImageSetConfiguration'],
]);

const checkImageSetShape = (document: ConfigDocument): readonly DocumentProblem[] =>
  checkConfiguration(document, IMAGE_SET, { hints: FORMER_KEYS });

const IMAGESET_API_VERSION = 'mirror.openshift.io/v2alpha1';
const IMAGESET_KIND = 'ImageSetConfiguration';

const FORMER_API_VERSION = 'mirror.openshift.io/v1alpha2';

const FORMER_VERSION =
  `read as ${IMAGESET_API_VERSION}, as oc-mirror v2 does: it adds no packages that others require, ` +
  'which oc-mirror v1 added';

/** oc-mirror v2 takes the former version for its own. */
function checkKind(view: View): readonly DocumentProblem[] {
  const expected = {
    apiVersion: [IMAGESET_API_VERSION, FORMER_API_VERSION],
    kind: [IMAGESET_KIND],
  };
  return Object.entries(expected).flatMap(([path, values]) => {
    const text = view.text(path);
    if (text === undefined || values.includes(text)) return [];
    return [view.report(path, `must be "${values[0] ?? ''}", but is "${text}"`)];
  });
}

export const noteFormerVersion = (view: View): readonly DocumentProblem[] =>
  view.text('apiVersion') === FORMER_API_VERSION ? [view.report('apiVersion', FORMER_VERSION)] : [];

/** Architectures of releases in Go's words, `multi` for all of them in one image. */
const ARCHITECTURES = ['amd64', 'arm64', 'ppc64le', 's390x', 'multi'];

function checkPlatform(view: View): readonly DocumentProblem[] {
  const platform = 'mirror.platform';
  const { report } = view;
  const isBoth =
    view.items(`${platform}.platforms`).length > 0 &&
    view.items(`${platform}.architectures`).length > 0;
  const both = '"platforms" and "architectures" are mutually exclusive';
  const unknown = readItemTexts(view, `${platform}.architectures`)
    .filter(({ text }) => !ARCHITECTURES.includes(text))
    .map(({ path, text }) =>
      report(path, `must be one of ${ARCHITECTURES.join(', ')}, but is "${text}"`),
    );
  return [
    ...(isBoth ? [report(`${platform}.platforms`, both, { hint: 'remove "architectures"' })] : []),
    ...unknown,
    ...checkPayload(view, `${platform}.release`),
    ...checkDuplicates(view, `${platform}.channels`, '.name'),
  ];
}

function checkPayload(view: View, path: string): readonly DocumentProblem[] {
  const text = view.text(path);
  const problem = text === undefined ? undefined : checkReferenceShape(text);
  return problem === undefined ? [] : [view.report(path, problem)];
}

/** Checks `targetRepo`, `targetTag` and `targetCatalog` by the patterns of our own keys of the same names. */
function checkTargets(view: View): readonly DocumentProblem[] {
  return (['operators', 'additionalImages'] as const).flatMap((list) =>
    Object.entries(TARGETS).flatMap(([name, pattern]) =>
      readItemTexts(view, `mirror.${list}`, `.${name}`)
        .filter(({ text }) => !pattern.test(text))
        .map(({ path, text }) =>
          view.report(path, `must match ${pattern.source}, but is "${text}"`),
        ),
    ),
  );
}

/** Paths below `prefix`, without `full`: next to versions, it is a mistake only in our configuration. */
function viewUnder(view: View, prefix: string): View {
  const full = (path: string): string => `${prefix}.${path}`;
  return {
    document: view.document,
    report: (place, ...rest) =>
      view.report(typeof place === 'string' ? full(place) : place, ...rest),
    text: (path) => view.text(full(path)),
    number: (path) => view.number(full(path)),
    flag: () => undefined,
    directoryOf: (path) => view.directoryOf(full(path)),
    items: (path) => view.items(full(path)).map((item) => item.slice(prefix.length + 1)),
  };
}
