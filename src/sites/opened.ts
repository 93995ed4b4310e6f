import type { DocumentProblem } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import type { RecordNode, Shape } from '../shape/shape.ts';
import {
  readSiteDocument,
  type References,
  type ReferenceSource,
  resolveReferences,
  type SiteDocument,
} from './documents.ts';
import { type SiteFile, type SiteInput, INSTALL_FILE } from './site.ts';

/* Owns the opening of a site's documents, and the order and number of their problems. */

/** More problems than a user fixes before the next try. */
const MOST_SHOWN = 200;

export function limitProblems(problems: readonly DocumentProblem[]): readonly DocumentProblem[] {
  const last = problems[MOST_SHOWN];
  if (!last) return problems;
  const problem = `${problems.length - MOST_SHOWN} more problems from here on`;
  return [...problems.slice(0, MOST_SHOWN), { ...last, path: '', problem }];
}

export const isDocument = <D extends object>(opened: D | DocumentProblem): opened is D =>
  'value' in opened;

export function openDocument<S extends Shape>(
  { name, files }: SiteInput,
  path: string,
  { shape, publicKeys }: Asked<S>,
): SiteDocument<S> | DocumentProblem {
  const file = files.find((each) => each.path === path);
  if (file) return readSiteDocument(file, shape, publicKeys);
  const near = files.find((each) => isNear(each.path, path));
  return {
    severity: 'error',
    code: 'sites.missing-file',
    file: near?.shownAs ?? showPath(name, files, path),
    line: 1,
    column: 1,
    path: '',
    problem: `${path} is missing`,
    lineText: '',
    ...(near && { hint: `rename ${near.path} to ${path}` }),
  };
}

const isNear = (path: string, wanted: string): boolean =>
  path
    .toLowerCase()
    .replace(/\.(?:yml|json)$/, '.yaml')
    .replaceAll('_', '-') === wanted;

/** Shows a path in the style of the site's other files. */
function showPath(name: string, files: readonly SiteFile[], path: string): string {
  const other = files.find((each) => each.shownAs.endsWith(`/${each.path}`));
  return other ? other.shownAs.slice(0, -other.path.length) + path : `${name}/${path}`;
}

type Asked<S extends Shape> = { readonly shape: S; readonly publicKeys?: ReadonlySet<string> };

/** Opens install-config.yaml, whose references are resolved; unknown keys are warnings if the caller is lenient. */
export function openInstallConfig<S extends RecordNode & Shape>(
  input: SiteInput,
  { shape, publicKeys }: Asked<S>,
  options: Pick<ReferenceSource, 'redaction'> & {
    readonly env?: NodeJS.ProcessEnv;
    readonly isLenient?: boolean;
  },
): { readonly install: SiteDocument<S> | DocumentProblem; readonly references: References } {
  const { env = {}, redaction, isLenient = false } = options;
  const asked = isLenient ? { ...shape, others: 'warned' as const } : shape;
  const install = openDocument(input, INSTALL_FILE, {
    shape: asked,
    ...withoutUndefined({ publicKeys }),
  });
  const file = input.files.find(({ path }) => path === INSTALL_FILE);
  if (!isDocument(install) || !file) return { install, references: new Map() };
  const { directory } = file;
  const { document, references } = resolveReferences(install, { directory, env, redaction });
  return { install: document, references };
}

export function warnOfDocument<D extends Pick<SiteDocument<Shape>, 'isBroken' | 'warnings'>>(
  opened: D | DocumentProblem,
  rule: (document: D) => readonly DocumentProblem[],
): readonly DocumentProblem[] {
  if (!isDocument(opened) || opened.isBroken) return [];
  return inOrder([...opened.warnings, ...rule(opened)]);
}

/** The problems of a document in order. Rules judge neither a broken document nor a value that could not be read. */
export function judgeDocument<D extends Pick<SiteDocument<Shape>, 'isBroken' | 'problems'>>(
  opened: D | DocumentProblem,
  rule: (document: D) => readonly DocumentProblem[],
): readonly DocumentProblem[] {
  if (!isDocument(opened)) return [opened];
  const { problems, isBroken } = opened;
  return isBroken ? problems : joinProblems(problems, rule(opened));
}

function joinProblems(
  unread: readonly DocumentProblem[],
  judged: readonly DocumentProblem[],
): readonly DocumentProblem[] {
  const paths = new Set(unread.map(({ path }) => path.toLowerCase()));
  return inOrder([...unread, ...judged.filter(({ path }) => !paths.has(path.toLowerCase()))]);
}

const inOrder = (problems: readonly DocumentProblem[]): readonly DocumentProblem[] =>
  withoutRepeated(problems).toSorted((a, b) => a.line - b.line || a.column - b.column);

/** Leaves out repeated problems: several values may be made of one. */
export function withoutRepeated(problems: readonly DocumentProblem[]): readonly DocumentProblem[] {
  if (problems.length < 2) return problems;
  const different = new Map(
    problems.map((each) => {
      const { file, line, column, path, problem } = each;
      return [JSON.stringify([file, line, column, path, problem]), each];
    }),
  );
  return [...different.values()];
}
