/**
 * A version as Semantic Versioning 2.0.0 writes it. Numbers stay text: bundles carry dates and build
 * numbers of any length, and a rounded one would compare wrongly.
 */
export type BundleVersion = {
  readonly major: string;
  readonly minor: string;
  readonly patch: string;
  /** Identifiers after `-`; empty for a release. */
  readonly prerelease: readonly string[];
  /** Identifiers after `+`; they play no part in precedence. */
  readonly build: readonly string[];
};

const NUMBER = '0|[1-9][0-9]*';
const PRERELEASE_WORD = `(?:${NUMBER}|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)`;
const STRICT = new RegExp(
  `^(${NUMBER})\\.(${NUMBER})\\.(${NUMBER})` +
    `(?:-(${PRERELEASE_WORD}(?:\\.${PRERELEASE_WORD})*))?` +
    `(?:\\+([0-9a-zA-Z-]+(?:\\.[0-9a-zA-Z-]+)*))?$`,
);

/** Strictly semver 2.0.0: three numbers, no `v`, no leading zeros; undefined for any other text. */
export function parseBundleVersion(text: string): BundleVersion | undefined {
  const [, major, minor, patch, prerelease, build] = STRICT.exec(text) ?? [];
  if (major === undefined || minor === undefined || patch === undefined) return undefined;
  return {
    major,
    minor,
    patch,
    prerelease: prerelease?.split('.') ?? [],
    build: build?.split('.') ?? [],
  };
}

/** Precedence of semver 2.0.0 clause 11: negative, 0 or positive; build metadata is ignored. */
export function compareBundleVersions(a: BundleVersion, b: BundleVersion): number {
  return (
    compareNumbers(a.major, b.major) ||
    compareNumbers(a.minor, b.minor) ||
    compareNumbers(a.patch, b.patch) ||
    comparePrereleases(a.prerelease, b.prerelease)
  );
}

/** Precedence first, then build metadata by the same rules of identifiers: our own order, no standard. */
export function compareBuilds(a: BundleVersion, b: BundleVersion): number {
  return compareBundleVersions(a, b) || compareWords(a.build, b.build);
}

/** Compares decimal numbers without leading zeros, of any length. */
export function compareNumbers(a: string, b: string): number {
  return a.length - b.length || compareText(a, b);
}

/** Compares by code units, the same on every machine. */
export function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

export function comparePrereleases(a: readonly string[], b: readonly string[]): number {
  if (a.length === 0 || b.length === 0) return b.length - a.length;
  return compareWords(a, b);
}

function compareWords(a: readonly string[], b: readonly string[]): number {
  for (const [index, word] of a.entries()) {
    const other = b[index];
    if (other === undefined) return 1;
    const order = compareWord(word, other);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

function compareWord(a: string, b: string): number {
  const numbers = [a, b].map((word) => /^[0-9]+$/.test(word));
  if (numbers[0] && numbers[1]) return compareNumbers(trimZeros(a), trimZeros(b));
  if (numbers[0] !== numbers[1]) return numbers[0] ? -1 : 1;
  return compareText(a, b);
}

/** Build metadata may have leading zeros. */
function trimZeros(digits: string): string {
  return digits.replace(/^0+(?=[0-9])/, '');
}

type Test = (version: BundleVersion) => boolean;

/** Characters of a range; catalogs have some fifty. Each bundle of a package is compared with all of it. */
const MAX_RANGE = 1000;

/** Needs text in which each run of spaces is one space: hostile runs would take quadratic time. */
const COMPARISON = / ?(>=|<=|==|!=|>|<|=|!|) ?([^ <>=!|]+) ?/y;

/**
 * A range in blang's language, which `olm.package.required` and `skipRange` are written in:
 * comparisons joined by spaces all hold, `||` separates alternatives, `1.2.x` is any patch. Unlike a
 * constraint it compares prereleases as any other version. Undefined if the text is not a valid range, or too long.
 */
export function parseVersionRange(text: string): Test | undefined {
  const spaced = text.replaceAll(/\s+/g, ' ');
  if (spaced.length > MAX_RANGE) return undefined;
  const alternatives = spaced.split('||').map(parseAlternative);
  const tests = alternatives.filter((test) => test !== undefined);
  if (tests.length < alternatives.length) return undefined;
  return (version) => tests.some((test) => test(version));
}

function parseAlternative(text: string): Test | undefined {
  const tests: Test[] = [];
  COMPARISON.lastIndex = 0;
  for (let position = 0; position < text.length; position = COMPARISON.lastIndex) {
    const [match, operator = '', bound = ''] = COMPARISON.exec(text) ?? [];
    const test = match === undefined ? undefined : parseComparison(operator, bound);
    if (test === undefined) return undefined;
    tests.push(test);
  }
  return tests.length === 0 ? undefined : (version) => tests.every((test) => test(version));
}

/** A wildcard is a span of versions, a full version is a span of one. */
function parseComparison(operator: string, text: string): Test | undefined {
  const span = parseSpan(text);
  if (span === undefined) return undefined;
  const isBelow: Test = (version) => compareBundleVersions(version, span.from) < 0;
  const isAbove: Test = (version) => span.isAbove(version);
  switch (operator) {
    case '<':
      return isBelow;
    case '>':
      return isAbove;
    case '<=':
      return (version) => !isAbove(version);
    case '>=':
      return (version) => !isBelow(version);
    case '!':
    case '!=':
      return (version) => isBelow(version) || isAbove(version);
    default:
      return (version) => !isBelow(version) && !isAbove(version);
  }
}

function parseSpan(
  text: string,
): { readonly from: BundleVersion; readonly isAbove: Test } | undefined {
  const [, major, minor] = /^([0-9]{1,20})(?:\.([0-9]{1,20}))?(?:\.[xX*])+$/.exec(text) ?? [];
  if (major === undefined) {
    const from = parseBundleVersion(text);
    return from && { from, isAbove: (version) => compareBundleVersions(version, from) > 0 };
  }
  const from = parseBundleVersion(`${major}.${minor ?? '0'}.0`);
  const next =
    minor === undefined
      ? parseBundleVersion(`${String(BigInt(major) + 1n)}.0.0`)
      : parseBundleVersion(`${major}.${String(BigInt(minor) + 1n)}.0`);
  return from && next && { from, isAbove: (version) => compareBundleVersions(version, next) >= 0 };
}
