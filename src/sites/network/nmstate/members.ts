import { countEdits } from '../../../base/text/words.ts';
import { withoutUndefined } from '../../../base/lists.ts';
import type { DocumentProblem } from '../../../base/errors.ts';
import type { Report } from '../../../shape/report.ts';
import { invalid, unsupported } from '../../../shape/report.ts';
import type { Plain } from '../../../shape/shape.ts';
import { flagOf, isMapping, numberOf, textOf, type FreeMap, listOf, mapOf } from '../free.ts';
import {
  FOREIGN,
  type Kind,
  ADDRESS,
  BOND_OPTIONS,
  DOCUMENT,
  FAMILY,
  HOSTNAME,
  INTERFACE,
  RESOLVER,
  RESOLVER_CONFIG,
  ROUTE,
  ROUTE_RULE,
  ROUTE_RULES,
  ROUTES,
  SECTIONS,
  type Words,
} from './words.ts';

/** Members that nmstate cannot read, and misspelt ones. */
export const checkMembers = (report: Report, network: FreeMap): readonly DocumentProblem[] =>
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
export const warnOfMembers = (report: Report, network: FreeMap): readonly DocumentProblem[] =>
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

function explainKind(kind: Kind, value: Plain): readonly string[] {
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
  Record<Exclude<Kind, readonly string[]>, (value: Plain) => string | undefined>
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

const explainList = (value: Plain): string | undefined =>
  Array.isArray(value) ? undefined : 'this must be a list';

const explainMap = (value: Plain): string | undefined =>
  isMapping(value) ? undefined : 'this must be an object';

const isTexts = (value: Plain): boolean =>
  value === null ||
  (Array.isArray(value) && (value as readonly Plain[]).every((item) => typeof item === 'string'));

const explainText = (value: Plain): string =>
  typeof value === 'object'
    ? 'this must be a text'
    : invalid(String(value), 'this must be a text: put it in quotes');

/** What a mapping or a list holds is not repeated: it may be a secret. */
function explainValue(value: Plain, why: string): string {
  const text = textOf(value);
  return text === undefined ? why : invalid(text, why);
}

/** A mapping of a document, and the words that it may have. */
type Place = { readonly path: string; readonly value: FreeMap; readonly words: Words };

/** Every mapping of an nmstate document whose words are known. */
function listPlaces(network: FreeMap): readonly Place[] {
  const root = { path: 'networkConfig', value: network, words: DOCUMENT };
  const resolver = enter(root, 'dns-resolver', RESOLVER);
  const routes = enter(root, 'routes', ROUTES);
  const rules = enter(root, 'route-rules', ROUTE_RULES);
  return [
    root,
    ...enter(root, 'hostname', HOSTNAME),
    ...resolver,
    ...resolver.flatMap((place) => enter(place, 'config', RESOLVER_CONFIG)),
    ...routes,
    ...routes.flatMap((place) => enterEach(place, 'config', ROUTE)),
    ...rules,
    ...rules.flatMap((place) => enterEach(place, 'config', ROUTE_RULE)),
    ...enterEach(root, 'interfaces', INTERFACE).flatMap(listInterfacePlaces),
  ];
}

/** Of an interface that goes away nothing but its name, type and state is read. */
function listInterfacePlaces({ path, value }: Place): readonly Place[] {
  if (value['state'] === 'absent') return [];
  // An interface without a type is taken for an Ethernet interface where nothing is running.
  const type = textOf(value['type']) ?? 'ethernet';
  const { sections, words } = TYPES.get(type) ?? {};
  const whole = { path, value, words: words ?? {} };
  const families = ['ipv4', 'ipv6'].flatMap((name) => enter(whole, name, FAMILY));
  const own = Object.entries(sections ?? {}).flatMap(([name, below]) =>
    below ? enter(whole, name, below) : [],
  );
  return [
    // What interfaces of other types have nobody knows.
    ...(words ? [whole] : []),
    ...families,
    ...families.flatMap((place) => enterEach(place, 'address', ADDRESS)),
    ...own,
    ...(type === 'bond' ? own.flatMap((place) => enter(place, 'options', BOND_OPTIONS)) : []),
  ];
}

/** What is known of each type of interface. */
const TYPES = new Map(
  Object.entries(SECTIONS).map(([type, sections]) => {
    const names = Object.keys(sections).map((name) => [name, 'map'] as const);
    return [type, { sections, words: { ...INTERFACE, ...Object.fromEntries(names) } }];
  }),
);

function enter({ path, value }: Place, name: string, words: Words): readonly Place[] {
  const below = value[name];
  return isMapping(below) ? [{ path: `${path}.${name}`, value: below, words }] : [];
}

const enterEach = ({ path, value }: Place, name: string, words: Words): readonly Place[] =>
  listOf(value[name]).map((item, index) => ({
    path: `${path}.${name}[${index}]`,
    value: mapOf(item),
    words,
  }));
