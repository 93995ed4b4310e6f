import { statSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError } from '../base/errors.ts';
import { CATALOG_HINT, nameLocalCatalog, parseLocalCatalog } from '../fbc/source.ts';
import type { LocalCatalog } from '../fbc/source.ts';
import { checkReferenceShape } from './check-shapes.ts';
import type { DocumentProblem } from '../base/errors.ts';
import { readSchema } from '../shape/document.ts';
import { readTexts, type View } from '../shape/document.ts';

/** Catalogs by reference or on this machine, where they must be. */
export function checkCatalogs(view: View): readonly DocumentProblem[] {
  return view.items('operators').flatMap((item) =>
    readTexts(view, 'operators', '.catalog')
      .filter(({ path }) => path === `${item}.catalog`)
      .flatMap(({ text }) => checkCatalog(view, item, text)),
  );
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

/** What names the copy, unless the configuration does. */
function checkName(
  view: View,
  item: string,
  { key, name }: { readonly key: 'targetCatalog' | 'targetTag'; readonly name: string },
): readonly DocumentProblem[] {
  const pattern = readSchema().properties?.['operators']?.items?.properties?.[key]?.pattern ?? '';
  if (view.text(`${item}.${key}`) !== undefined || new RegExp(pattern).test(name)) return [];
  const what = key === 'targetCatalog' ? 'repository' : 'tag';
  const problem = `"${name}" is not a valid ${what} for the copy of the catalog`;
  return [view.report(`${item}.catalog`, problem, { hint: `write one to ${key}` })];
}
