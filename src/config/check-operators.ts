import semver from 'semver';
import { checkDuplicates } from './check-rules.ts';
import type { ConfigProblem } from './problem.ts';
import { readTexts, type View } from './view.ts';

/** The rules of an ImageSetConfiguration for catalogs: nothing twice, versions, one kind of filter. */
export function checkOperators(view: View): readonly ConfigProblem[] {
  return [
    ...checkDuplicates(view, 'operators', '.catalog'),
    ...view
      .items('operators')
      .flatMap((operator) => [
        ...checkDuplicates(view, `${operator}.packages`, '.name'),
        ...view.items(`${operator}.packages`).flatMap((item) => checkPackage(view, item)),
      ]),
  ];
}

function checkPackage(view: View, item: string): readonly ConfigProblem[] {
  const channels = view.items(`${item}.channels`);
  const isRanged = (path: string): boolean =>
    view.text(`${path}.minVersion`) !== undefined || view.text(`${path}.maxVersion`) !== undefined;
  const isMixed = isRanged(item) && channels.some(isRanged);
  const mixed = 'has versions of its own and in its channels; only one of the two may have them';
  return [
    ...checkDuplicates(view, `${item}.channels`, '.name'),
    ...[item, ...channels].flatMap((path) => checkVersions(view, path)),
    ...(isMixed ? [view.document.report.at(item, mixed)] : []),
    ...checkEmptyNames(view, item),
  ];
}

function checkVersions(view: View, path: string): readonly ConfigProblem[] {
  return ['minVersion', 'maxVersion'].flatMap((name) => {
    const text = view.text(`${path}.${name}`);
    if (text === undefined || semver.coerce(text, { includePrerelease: true }) !== null) return [];
    return [view.document.report.at(`${path}.${name}`, `"${text}" is no version`)];
  });
}

/** White space alone is no channel name. */
function checkEmptyNames(view: View, item: string): readonly ConfigProblem[] {
  return readTexts(view, `${item}.channels`, '.name')
    .filter(({ text }) => text.trim() === '')
    .map(({ path }) => view.document.report.at(path, 'is required'));
}
