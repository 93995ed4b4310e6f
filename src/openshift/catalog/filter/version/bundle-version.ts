/**
 * A version as Semantic Versioning 2.0.0 writes it. Numbers stay text: bundles carry dates and build
 * numbers of any length, and a rounded one would compare wrongly.
 */
export type BundleVersion = {
  readonly major: string;
  readonly minor: string;
  readonly patch: string;
  /** Identifiers after `-`; none in a release. */
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

/** Strictly semver 2.0.0: three numbers, no `v`, no leading zeros. Undefined when it is not one. */
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
export function compareVersions(a: BundleVersion, b: BundleVersion): number {
  return (
    compareNumbers(a.major, b.major) ||
    compareNumbers(a.minor, b.minor) ||
    compareNumbers(a.patch, b.patch) ||
    comparePrereleases(a.prerelease, b.prerelease)
  );
}

/** Precedence first, then build metadata by the same rules of identifiers: no standard, but an order. */
export function compareBuilds(a: BundleVersion, b: BundleVersion): number {
  return compareVersions(a, b) || compareWords(a.build, b.build);
}

/** Decimal numbers without leading zeros, of any length. */
export function compareNumbers(a: string, b: string): number {
  return a.length - b.length || compareText(a, b);
}

/** By code units, the same on every machine. */
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
