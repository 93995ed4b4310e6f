import semver from 'semver';
import { checkDuplicates } from './check-rules.ts';
import type { DocumentProblem } from '../base/errors.ts';
import { readTexts, type View } from '../shape/document.ts';

const VERSIONS = ['minVersion', 'maxVersion'] as const;
const BOUNDS = [...VERSIONS, 'minBundle'] as const;

/** The rules of an ImageSetConfiguration for catalogs: nothing twice, versions, one kind of filter. */
export function checkOperators(view: View): readonly DocumentProblem[] {
  return [
    ...checkTargets(view),
    ...view
      .items('operators')
      .flatMap((operator) => [
        ...checkDuplicates(view, `${operator}.packages`, '.name'),
        ...view.items(`${operator}.packages`).flatMap((item) => checkPackage(view, item)),
      ]),
  ];
}

/** One catalog may be there twice only under two names. */
function checkTargets(view: View): readonly DocumentProblem[] {
  const first = new Map<string, string>();
  return view.items('operators').flatMap((path) => {
    const names = ['catalog', 'targetCatalog', 'targetTag'];
    const key = JSON.stringify(names.map((name) => view.text(`${path}.${name}`) ?? ''));
    const known = first.get(key);
    first.set(key, known ?? path);
    if (known === undefined) return [];
    const catalog = view.text(`${path}.catalog`) ?? '';
    const hint = 'name all packages in one entry, or give one of the two a targetTag';
    return [view.report(`${path}.catalog`, `"${catalog}" is also ${known}`, { hint })];
  });
}

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

/** A bundle without a version has no place in a range of versions. */
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
  return readTexts(view, `${item}.channels`, '.name')
    .filter(({ text }) => text.trim() === '')
    .map(({ path }) => view.report(path, 'is required'));
}
