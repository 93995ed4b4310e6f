import { countEdits } from '../../../base/text/nearest-name.ts';
import { withoutUndefined } from '../../../base/members.ts';
import type { ConfigProblem } from '../../../config/document/problem.ts';
import { invalid, unsupported, type Report } from '../../document/report.ts';
import type { Free } from '../../document/shape.ts';
import { flagOf, isMapping, numberOf, textOf, type FreeMap } from '../free.ts';
import { listPlaces, type Place } from './places.ts';
import { FOREIGN, type Kind } from './words.ts';

/** Members that nmstate cannot read, and misspelt ones. */
export const checkMembers = (report: Report, network: FreeMap): readonly ConfigProblem[] =>
  listPlaces(network).flatMap((place) => [
    ...listUnknown(place)
      .filter(({ isCertain }) => isCertain)
      .map(({ path, name, near }) =>
        report(path, `unknown field "${name}"`, {
          hideValue: true,
          hint: near === undefined ? FOREIGN.get(name) : `did you mean "${near}"?`,
        }),
      ),
    ...Object.entries(place.value).flatMap(([name, value]) => {
      const kind = Object.hasOwn(place.words, name) ? place.words[name] : undefined;
      if (kind === undefined) return [];
      return explainKind(kind, value).map((why) => report(`${place.path}.${name}`, why));
    }),
  ]);

/** What no nmstate known here would read; a newer one may. */
export const warnOfMembers = (report: Report, network: FreeMap): readonly ConfigProblem[] =>
  listPlaces(network).flatMap((place) =>
    listUnknown(place)
      .filter(({ isCertain }) => !isCertain)
      .map(({ path, name }) =>
        report(path, `nmstate 2.2 does not know the field "${name}"`, { hideValue: true }),
      ),
  );

type Unknown = {
  readonly path: string;
  readonly name: string;
  /** The word that was meant. */
  readonly near?: string;
  /** A slip of the pen or a word of another tool, and no word that nmstate may yet learn. */
  readonly isCertain: boolean;
};

function listUnknown({ path, value, words }: Place): readonly Unknown[] {
  const known = Object.keys(words);
  const isClosed = path === 'networkConfig' || path.startsWith('networkConfig.dns-resolver');
  return Object.keys(value)
    .filter((name) => !Object.hasOwn(words, name))
    .map((name) => {
      const near = known.find((word) => isSlip(name, word));
      const isCertain = isClosed || near !== undefined || FOREIGN.has(name);
      return { path: `${path}.${name}`, name, isCertain, ...withoutUndefined({ near }) };
    });
}

/** Written otherwise, or with one letter wrong, missing or too many. */
function isSlip(written: string, word: string): boolean {
  const [a, b] = [plain(written), plain(word)];
  return a === b || (Math.max(a.length, b.length) >= 4 && countEdits(a, b) <= 1);
}

const plain = (word: string): string => word.toLowerCase().replaceAll(/[-_]/g, '');

function explainKind(kind: Kind, value: Free): readonly string[] {
  if (typeof kind !== 'string') {
    const text = textOf(value);
    return value === null || (text !== undefined && kind.includes(text))
      ? []
      : [unsupported(text ?? 'this', kind)];
  }
  const why = EXPLAIN[kind](value);
  return why === undefined ? [] : [why];
}

const EXPLAIN: Readonly<
  Record<Exclude<Kind, readonly string[]>, (value: Free) => string | undefined>
> = {
  'any': () => undefined,
  'text': (value) => (value === null || typeof value === 'string' ? undefined : explainText(value)),
  'texts': (value) => (isTexts(value) ? undefined : 'this must be a list of texts'),
  'flag': (value) => (flagOf(value) === undefined ? 'this must be true or false' : undefined),
  'number': (value) =>
    (numberOf(value) ?? -1) >= 0
      ? undefined
      : explainValue(value, 'this must be a whole number of at least 0'),
  'integer': (value) =>
    numberOf(value) === undefined ? explainValue(value, 'this must be a whole number') : undefined,
  'list': (value) => (value === null ? undefined : explainList(value)),
  'map': (value) => (value === null ? undefined : explainMap(value)),
  'present list': (value) => explainList(value),
  'present map': (value) => explainMap(value),
};

const explainList = (value: Free): string | undefined =>
  Array.isArray(value) ? undefined : 'this must be a list';

const explainMap = (value: Free): string | undefined =>
  isMapping(value) ? undefined : 'this must be an object';

const isTexts = (value: Free): boolean =>
  value === null ||
  (Array.isArray(value) && (value as readonly Free[]).every((item) => typeof item === 'string'));

const explainText = (value: Free): string =>
  typeof value === 'object'
    ? 'this must be a text'
    : invalid(String(value), 'this must be a text: put it in quotes');

/** What a mapping or a list holds is not repeated: it may be a secret. */
function explainValue(value: Free, why: string): string {
  const text = textOf(value);
  return text === undefined ? why : invalid(text, why);
}
