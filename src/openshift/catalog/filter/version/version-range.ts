import { type BundleVersion, compareVersions, parseBundleVersion } from './bundle-version.ts';

type Test = (version: BundleVersion) => boolean;

/** For text whose runs of spaces are one: hostile ones would take quadratic time. */
const COMPARISON = / ?(>=|<=|==|!=|>|<|=|!|) ?([^ <>=!|]+) ?/y;

/**
 * A range in blang's language, which `olm.package.required` and `skipRange` are written in:
 * comparisons joined by spaces all hold, `||` separates alternatives, `1.2.x` is any patch. Unlike a
 * constraint it compares prereleases as any other version. Undefined when the text is not a valid range.
 */
export function parseVersionRange(text: string): Test | undefined {
  const alternatives = text.replaceAll(/\s+/g, ' ').split('||').map(parseAlternative);
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
  const isBelow: Test = (version) => compareVersions(version, span.from) < 0;
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
  const [, major, minor] = /^([0-9]+)(?:\.([0-9]+))?(?:\.[xX*])+$/.exec(text) ?? [];
  if (major === undefined) {
    const from = parseBundleVersion(text);
    return from && { from, isAbove: (version) => compareVersions(version, from) > 0 };
  }
  const from = parseBundleVersion(`${major}.${minor ?? '0'}.0`);
  const next =
    minor === undefined
      ? parseBundleVersion(`${String(BigInt(major) + 1n)}.0.0`)
      : parseBundleVersion(`${major}.${String(BigInt(minor) + 1n)}.0`);
  return from && next && { from, isAbove: (version) => compareVersions(version, next) >= 0 };
}
