import { isObject } from '../base/lists.ts';
import { findValue } from '../shape/go-json.ts';
import type { Api, CatalogBundle, Requirement } from './catalog.ts';
import { parseBundleVersion, parseVersionRange } from './version.ts';

/** True if a bundle meets a requirement; undefined if unknown. */
export type RequirementTest = (bundle: CatalogBundle) => boolean | undefined;

/** Far beyond any real constraint, whose size OLM limits to 128 KiB. */
const MAX_DEPTH = 100;

/** The value of an `olm.gvk` or `olm.gvk.required`; a missing member is empty; undefined if the value is not an object. */
export function parseApi(value: unknown): Api | undefined {
  if (!isObject(value)) return undefined;
  const [group, version, kind] = ['group', 'version', 'kind'].map((key) => readText(value, key));
  return { group: group ?? '', version: version ?? '', kind: kind ?? '' };
}

/** `olm.constraint` (operator-framework/api, pkg/constraints). The first kind in OLM's order counts. */
export function parseRequirement(value: unknown, depth = 0): Requirement {
  if (!isObject(value)) return unreadable('it should be an object');
  if (depth > MAX_DEPTH) return unreadable(`it is nested more than ${MAX_DEPTH} deep`);
  const of = (key: string): unknown => findValue(value, key) ?? undefined;
  const api = parseApi(of('gvk'));
  if (api !== undefined) return { kind: 'api', api };
  const required = of('package');
  if (isObject(required)) {
    const [packageName = '', versionRange = ''] = ['packageName', 'versionRange'].map((key) =>
      readText(required, key),
    );
    return { kind: 'package', packageName, versionRange };
  }
  for (const kind of ['all', 'any', 'not'] as const) {
    const compound = of(kind);
    if (isObject(compound)) return parseCompound(kind, compound, depth);
  }
  return parseCel(of('cel'), readText(value, 'failureMessage'));
}

function parseCompound(
  kind: 'all' | 'any' | 'not',
  compound: Record<string, unknown>,
  depth: number,
): Requirement {
  const constraints = findValue(compound, 'constraints');
  if (!Array.isArray(constraints)) return unreadable(`"${kind}" should have constraints`);
  return { kind, of: constraints.map((one) => parseRequirement(one, depth + 1)) };
}

function parseCel(cel: unknown, message: string | undefined): Requirement {
  if (!isObject(cel)) return unreadable('it is empty');
  const rule = readText(cel, 'rule') ?? '';
  const says = message === undefined || message === '' ? '' : ` (${message})`;
  return {
    kind: 'unknown',
    what: `CEL rule ${JSON.stringify(rule)}${says}`,
    reason: 'CEL is not evaluated here',
  };
}

const unreadable = (reason: string): Requirement => ({
  kind: 'unknown',
  what: 'an olm.constraint that OLM cannot read',
  reason,
});

const readText = (object: Record<string, unknown>, key: string): string | undefined => {
  const value = findValue(object, key);
  return typeof value === 'string' ? value : undefined;
};

/** Compiles to a three-valued test: its result is unknown only if it depends on an unknown part. */
export function compileRequirement(requirement: Requirement): RequirementTest {
  switch (requirement.kind) {
    case 'package':
      return testPackage(requirement.packageName, requirement.versionRange);
    case 'api': {
      const { group, version, kind } = requirement.api;
      return ({ provides }) =>
        provides.some((api) => api.kind === kind && api.group === group && api.version === version);
    }
    case 'unknown':
      return () => undefined;
    case 'all':
    case 'any':
    case 'not':
      return testCompound(requirement.kind, requirement.of.map(compileRequirement));
  }
}

function testPackage(packageName: string, versionRange: string): RequirementTest {
  const accepts = parseVersionRange(versionRange);
  if (accepts === undefined) return () => undefined;
  return (bundle) => {
    if (bundle.package !== packageName) return false;
    const version = parseBundleVersion(bundle.version ?? '');
    return version !== undefined && accepts(version);
  };
}

/** `not` is met by a bundle that meets none of its parts, as in OLM. */
function testCompound(
  kind: 'all' | 'any' | 'not',
  tests: readonly RequirementTest[],
): RequirementTest {
  const decides = kind === 'all' ? false : true;
  const decided = kind === 'any';
  return (bundle) => {
    const answers = tests.map((test) => test(bundle));
    if (answers.includes(decides)) return decided;
    return answers.includes(undefined) ? undefined : !decided;
  };
}

export function formatRequirement(requirement: Requirement): string {
  switch (requirement.kind) {
    case 'package':
      return `package "${requirement.packageName}" in range "${requirement.versionRange}"`;
    case 'api': {
      const { group, version, kind } = requirement.api;
      return `API ${kind} of ${group === '' ? version : `${group}/${version}`}`;
    }
    case 'unknown':
      return requirement.what;
    case 'all':
    case 'any':
    case 'not': {
      const words = { all: 'all of', any: 'any of', not: 'none of' };
      return `${words[requirement.kind]} (${requirement.of.map(formatRequirement).join('; ')})`;
    }
  }
}

/** The reason why a requirement cannot be evaluated; undefined if it can. */
export function explainUnknown(requirement: Requirement): string | undefined {
  if (requirement.kind === 'unknown') return requirement.reason;
  if (requirement.kind === 'package')
    return parseVersionRange(requirement.versionRange) === undefined
      ? `"${requirement.versionRange}" is not a version range`
      : undefined;
  if (requirement.kind === 'api') return undefined;
  return requirement.of.map(explainUnknown).find((reason) => reason !== undefined);
}
