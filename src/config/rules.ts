import { statSync } from 'node:fs';
import { join } from 'node:path';
import semver from 'semver';
import { ConfigError, type DocumentProblem } from '../base/errors.ts';
import { maskLogin } from '../base/text/redact.ts';
import { joinProblem, parseSize } from '../base/text/words.ts';
import { compileGoPattern } from '../base/text/go-pattern.ts';
import {
  CATALOG_HINT,
  type LocalCatalog,
  nameLocalCatalog,
  parseLocalCatalog,
} from '../fbc/index.ts';
import { explainReference, isRegistryHost, readReference } from '../registry/index.ts';
import { readItemTexts, type View } from '../shape/document.ts';
import { TARGETS } from './appliance-shape.ts';
import {
  checkBaseIso,
  checkCaBundle,
  checkNamedFile,
  checkMirrorPath,
  checkSignatures,
} from './files.ts';

/** Rules beyond the schema: versions, references, duplicates, files that must exist. */
export function checkRules(view: View): readonly DocumentProblem[] {
  return [
    ...checkVersion(view),
    ...checkReferences(view),
    ...checkCatalogs(view),
    ...checkDuplicates(view, 'additionalImages', '.name'),
    ...checkDuplicates(view, 'blockedImages', '.name'),
    ...checkPatterns(view, 'blockedImages'),
    ...checkHosts(view),
    ...checkPullSecret(view),
    ...checkMirrorPath(view),
    ...checkIgnitionArea(view),
    ...checkBaseIso(view),
    ...['installer', 'caBundle', 'registriesConf', 'nmstate', 'signatureKeys'].flatMap((name) =>
      checkNamedFile(view, `build.${name}`),
    ),
    ...checkCaBundle(view),
    ...checkSignatures(view),
  ];
}

/** The first release that sealift was not tested with, pre-releases included. */
const TOO_NEW_VERSION = '4.23.0-0';

export function noteVersion(view: View): readonly DocumentProblem[] {
  const path = 'ocpRelease.version';
  const version = parseReleaseVersion(view.text(path) ?? '');
  if (version === undefined || semver.lt(version, TOO_NEW_VERSION)) return [];
  return [view.report(path, 'is newer than 4.22, the newest release that sealift knows')];
}

/** The fault in the form of a reference; only its registry knows whether the image exists. */
export function checkReferenceShape(text: string): string | undefined {
  const why = explainReference(text);
  return why === undefined ? undefined : joinProblem(`"${maskLogin(text)}"`, why);
}

/** `X.Y` or `X.Y.Z[-pre]` as a full version; undefined for anything else. */
export function parseReleaseVersion(text: string): string | undefined {
  const full = /^\d+\.\d+$/.test(text) ? `${text}.0` : text;
  return semver.valid(full) === full || semver.parse(full)?.raw === full ? full : undefined;
}

/** True from 256 KiB, the area of every CoreOS build, to 64 MiB, which is smaller than any root file system. */
export const isAreaSize = (size: number): boolean => size >= 2 ** 18 && size <= 2 ** 26;

/** A problem for each text that appears in the list already: more often a mistake than intended. */
export function checkDuplicates(
  view: View,
  list: string,
  member: string,
): readonly DocumentProblem[] {
  const first = new Map<string, string>();
  return readItemTexts(view, list, member).flatMap(({ path, text }) => {
    const known = first.get(text);
    if (known === undefined) {
      first.set(text, path);
      return [];
    }
    const hint = 'remove one of the two';
    return [view.report(path, `"${text}" already appears at ${known}`, { hint })];
  });
}

export function checkPatterns(view: View, list: string): readonly DocumentProblem[] {
  return readItemTexts(view, list, '.name').flatMap(({ path, text }) => {
    try {
      compileGoPattern(text);
      return [];
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return [view.report(path, error.message, { hint: error.hint })];
    }
  });
}

function checkCatalogs(view: View): readonly DocumentProblem[] {
  return view.items('operators').flatMap((item) => {
    const text = view.text(`${item}.catalog`);
    return text === undefined ? [] : checkCatalog(view, item, text);
  });
}

function checkCatalog(view: View, item: string, text: string): readonly DocumentProblem[] {
  const { report } = view;
  const path = `${item}.catalog`;
  let local: LocalCatalog | undefined;
  try {
    local = parseLocalCatalog(text, view.directoryOf(path));
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return [report(path, error.message, { hint: error.hint })];
  }
  if (local !== undefined) return checkLocal(view, item, local);
  const problem = checkReferenceShape(text);
  return problem === undefined ? [] : [report(path, problem, { hint: CATALOG_HINT })];
}

function checkLocal(view: View, item: string, local: LocalCatalog): readonly DocumentProblem[] {
  const { report } = view;
  const path = `${item}.catalog`;
  const { repository, tag } = nameLocalCatalog(local);
  const isLayout = local.kind === 'oci';
  const expected = isLayout ? join(local.path, 'oci-layout') : local.path;
  const missing = isLayout
    ? `${local.path} is not an OCI image layout: it has no file "oci-layout"`
    : `${local.path} is not a directory`;
  const isPresent = statSync(expected, { throwIfNoEntry: false })?.[
    isLayout ? 'isFile' : 'isDirectory'
  ]();
  return [
    ...(isPresent === true ? [] : [report(path, missing)]),
    ...checkName(view, item, { key: 'targetCatalog', name: repository }),
    ...checkName(view, item, { key: 'targetTag', name: tag }),
  ];
}

function checkName(
  view: View,
  item: string,
  { key, name }: { readonly key: 'targetCatalog' | 'targetTag'; readonly name: string },
): readonly DocumentProblem[] {
  if (view.text(`${item}.${key}`) !== undefined || TARGETS[key].test(name)) return [];
  const what = key === 'targetCatalog' ? 'repository' : 'tag';
  const problem = `"${name}" is not a valid ${what} for the copy of the catalog`;
  return [view.report(`${item}.catalog`, problem, { hint: `write one to ${key}` })];
}

/** The oldest release of the agent-based flow, and the oldest with PinnedImageSets. */
const MIN_VERSION = '4.14.0';
const MIN_PINNED_VERSION = '4.16.0';

function checkVersion(view: View): readonly DocumentProblem[] {
  const path = 'ocpRelease.version';
  const { report } = view;
  const text = view.text(path);
  if (text === undefined) return [];
  const version = parseReleaseVersion(text);
  const quoting =
    view.document.writtenOf(path) !== undefined
      ? 'put the version in quotes, with both parts in full: "4.20"'
      : undefined;
  if (version === undefined) {
    return [report(path, `must be X.Y or X.Y.Z, but is "${text}"`, { hint: quoting })];
  }
  if (semver.lt(version, MIN_VERSION)) {
    return [report(path, `must be at least 4.14, but is "${text}"`, { hint: quoting })];
  }
  if (view.flag('createPinnedImageSets') !== true || semver.gte(version, MIN_PINNED_VERSION)) {
    return [];
  }
  const problem = `needs release 4.16 or newer, but ocpRelease.version is "${text}"`;
  return [
    report('createPinnedImageSets', problem, { hint: 'set it to false or choose a newer release' }),
  ];
}

function checkReferences(view: View): readonly DocumentProblem[] {
  const single = ['ocpRelease.url', 'imageRegistry.uri'].flatMap((path) => {
    const text = view.text(path);
    return text === undefined ? [] : [{ path, text }];
  });
  return [...single, ...readItemTexts(view, 'additionalImages', '.name')].flatMap(
    ({ path, text }) => {
      const problem = checkReferenceShape(text);
      return problem === undefined ? [] : [view.report(path, problem)];
    },
  );
}

function checkHosts(view: View): readonly DocumentProblem[] {
  const insecure = readItemTexts(view, 'build.insecureRegistries').filter(
    ({ text }) => !isRegistryHost(text),
  );
  const unsigned = readItemTexts(view, 'disableSigstoreRegistries').filter(
    ({ text }) => readRegistryHost(text) === undefined,
  );
  return [...unsigned, ...insecure].map(({ path, text }) => {
    const hint = 'write only the host, as in registry.example.com:5000';
    return view.report(path, `"${text}" is not a valid registry host`, { hint });
  });
}

/** oc-mirror takes references with `docker://` and without. */
export const TRANSPORT = /^docker:\/\//;

export const cutTransport = (text: string): string => text.replace(TRANSPORT, '');

/** The host of a registry, or of the registry of an image, which openshift/appliance takes too. */
export function readRegistryHost(text: string): string | undefined {
  const name = cutTransport(text.trim());
  return isRegistryHost(name) ? name : readReference(name)?.registry;
}

function checkIgnitionArea(view: View): readonly DocumentProblem[] {
  const path = 'build.ignitionArea';
  const text = view.text(path);
  return text === undefined || isAreaSize(parseSize(text) ?? 0)
    ? []
    : [view.report(path, `must be from 256KiB to 64MiB, but is ${text}`)];
}

/** A mirror on this machine needs no credentials. */
function checkPullSecret(view: View): readonly DocumentProblem[] {
  const { value } = view.document;
  const isMapping = typeof value === 'object' && value !== null && !Array.isArray(value);
  if (!isMapping || 'pullSecret' in value || 'mirrorPath' in value) return [];
  return [view.report('pullSecret', 'is required')];
}
