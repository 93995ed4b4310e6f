import { createBudget } from '../base/decode/limits.ts';
import { ConfigError } from '../base/errors.ts';
import { groupBy, append } from '../base/lists.ts';
import type { CatalogBundle, Requirement } from './catalog.ts';
import type { FilteredCatalog } from './filter/filter-catalog.ts';
import { type GrowingCatalog, type BundleCandidate, growCatalog } from './grow-catalog.ts';
import {
  explainUnknown,
  type RequirementTest,
  compileRequirement,
  formatRequirement,
} from './requirement.ts';
import type { DependencyMode } from './source.ts';
import { compareText } from './version.ts';

export type DependentCatalog = {
  /** The catalog's reference. */
  readonly name: string;
  readonly filtered: FilteredCatalog;
  readonly mode: DependencyMode;
};

/** A bundle that is carried because another bundle requires it. Plain JSON. */
export type AddedBundle = {
  readonly package: string;
  readonly bundle: string;
  readonly channel: string;
  readonly requiredBy: {
    readonly catalog: string;
    readonly package: string;
    readonly bundle: string;
  };
  /** The requirement in words, or the bundle to which this one is on the upgrade path. */
  readonly reason: string;
};

export type ResolvedCatalog = Pick<FilteredCatalog, 'catalog' | 'warnings' | 'isWhole'> & {
  readonly additions: readonly AddedBundle[];
};

type Open = {
  /** Place of the catalog in the list. */
  readonly at: number;
  readonly bundle: CatalogBundle;
} & Compiled;

/** A requirement in words, and its test; the same for all bundles that have it. */
type Compiled = {
  readonly requirement: Requirement;
  readonly text: string;
  readonly test: RequirementTest;
};

/**
 * Resolves the requirements that no selected bundle of any catalog meets. In a catalog of mode `add`,
 * a bundle that meets them is added, with its own requirements, from the same catalog first and then from
 * the others in their order; the first candidate in OLM's order is taken. Each step adds a bundle, so
 * cycles end. A requirement that no bundle can meet, or of a catalog of mode `warn`, is a warning.
 *
 * The result depends on the catalogs' content, not on the order of their documents.
 */
export function resolveDependencies(
  catalogs: readonly DependentCatalog[],
): readonly ResolvedCatalog[] {
  const growing = catalogs.map(({ filtered }) => growCatalog(filtered));
  const additions = catalogs.map((): AddedBundle[] => []);
  const follows = (at: number, { name, package: owner }: CatalogBundle): boolean =>
    catalogs[at]?.mode === 'add' ||
    additions[at]?.some((added) => added.bundle === name && added.package === owner) === true;
  const compile = createCompiler();
  const met = createMemory(growing);
  const absent = new Set<RequirementTest>();
  for (let hasGrown = true; hasGrown;) {
    hasGrown = false;
    for (const open of listOpen(growing, compile).filter(({ at, bundle }) => follows(at, bundle))) {
      if (absent.has(open.test) || met.has(open.test)) continue;
      const found = findCandidate(growing, open);
      if (found === undefined) {
        absent.add(open.test); // candidates stay the same
        continue;
      }
      const added = growing[found.at]?.add(found.candidate) ?? [];
      met.forget();
      append(
        additions[found.at] ?? [],
        added.map((bundle) => describeAddition(bundle, found.candidate, { open, catalogs })),
      );
      hasGrown = true;
    }
  }
  const unmet = listOpen(growing, compile).filter(({ test }) => !met.has(test));
  const names = catalogs.map(({ name }) => name);
  return growing.map((one, at) => {
    const own = unmet.filter((open) => open.at === at);
    const warnings = describeUnmet(own, { growing, names, at });
    return { ...one.finish(names[at] ?? '', warnings), additions: additions[at] ?? [] };
  });
}

/** The requirements of all selected bundles, in an order that does not depend on that of documents. */
function listOpen(growing: readonly GrowingCatalog[], compile: Compile): readonly Open[] {
  return growing.flatMap((one, at) =>
    one
      .selected()
      .flatMap((bundle) =>
        bundle.requirements.map((requirement) => ({ at, bundle, ...compile(requirement) })),
      )
      .sort(
        (a, b) =>
          compareText(a.bundle.package, b.bundle.package) ||
          compareText(a.bundle.name, b.bundle.name) ||
          compareText(a.text, b.text),
      ),
  );
}

type Compile = (requirement: Requirement) => Compiled;

/** Compiles each requirement once. Each test of a bundle takes from one budget. */
function createCompiler(): Compile {
  const known = new Map<string, Compiled>();
  const effort = createBudget(
    { parts: 15_000_000 }, // about half a second; a whole index of operators takes a tenth
    () =>
      new ConfigError(
        'catalog.selection',
        'the requirements of operators take too long to resolve',
        {
          hint: 'select fewer packages',
        },
      ),
  );
  return (requirement) => {
    const key = JSON.stringify(requirement);
    const compiled = known.get(key);
    if (compiled) return compiled;
    const [meets, parts] = [compileRequirement(requirement), countParts(requirement)];
    const test: RequirementTest = (bundle) => {
      effort.take('parts', parts);
      return meets(bundle);
    };
    const created = { requirement, text: formatRequirement(requirement), test };
    known.set(key, created);
    return created;
  };
}

const countParts = (requirement: Requirement): number =>
  'of' in requirement ? requirement.of.reduce((sum, part) => sum + countParts(part), 1) : 1;

/** Remembers the requirements that selected bundles meet, and until `forget` those that none meets. */
function createMemory(growing: readonly GrowingCatalog[]) {
  const met = new Set<RequirementTest>();
  const unmet = new Set<RequirementTest>();
  return {
    has(test: RequirementTest): boolean {
      if (met.has(test)) return true;
      if (unmet.has(test)) return false;
      const isMet = growing.some((one) => one.selected().some((bundle) => test(bundle) === true));
      (isMet ? met : unmet).add(test);
      return isMet;
    },
    forget: () => {
      unmet.clear();
    },
  };
}

function findCandidate(
  growing: readonly GrowingCatalog[],
  { at, test }: Open,
): { readonly at: number; readonly candidate: BundleCandidate } | undefined {
  const order = [at, ...growing.keys()].filter((index, place) => place === 0 || index !== at);
  for (const index of order) {
    const candidate = growing[index]?.candidates().find(({ bundle }) => test(bundle) === true);
    if (candidate !== undefined) return { at: index, candidate };
  }
  return undefined;
}

function describeAddition(
  bundle: CatalogBundle,
  candidate: BundleCandidate,
  { open, catalogs }: { readonly open: Open; readonly catalogs: readonly DependentCatalog[] },
): AddedBundle {
  return {
    package: bundle.package,
    bundle: bundle.name,
    channel: candidate.channel.name,
    requiredBy: {
      catalog: catalogs[open.at]?.name ?? '',
      package: open.bundle.package,
      bundle: open.bundle.name,
    },
    reason:
      bundle.name === candidate.bundle.name
        ? open.text
        : `upgrade path to "${candidate.bundle.name}", which is ${open.text}`,
  };
}

type Unmet = Pick<Open, 'bundle' | keyof Compiled>;

type Surroundings = {
  readonly growing: readonly GrowingCatalog[];
  /** Names of the catalogs, in the same order. */
  readonly names: readonly string[];
  /** Place of the catalog whose bundles these are. */
  readonly at: number;
};

/** Bundles that a warning names; a package whose requirements rarely change has dozens. */
const NAMED_BUNDLES = 3;

/** Packages that a warning offers: some APIs are provided by many. */
const NAMED_PACKAGES = 3;

/**
 * A sentence for each requirement that no selected bundle meets, with packages that would meet it.
 * Bundles of one package with the same requirement share a sentence.
 */
function describeUnmet(unmet: readonly Unmet[], surroundings: Surroundings): readonly string[] {
  const groups = groupBy(unmet, ({ bundle, text }) => JSON.stringify([bundle.package, text]));
  return [...groups.values()].flatMap(([first, ...others]) => {
    if (first === undefined) return [];
    const bundles = formatBundles([first, ...others].map(({ bundle }) => bundle.name));
    const what = `package "${first.bundle.package}" bundle ${bundles} requires ${first.text}`;
    return [`${what}, ${describeRemedy(first, surroundings)}`];
  });
}

function formatBundles(all: readonly string[]): string {
  const names = [...new Set(all)].sort(compareText);
  const named = names.slice(0, NAMED_BUNDLES).map((name) => `"${name}"`);
  const more = names.length > NAMED_BUNDLES ? ` and ${names.length - NAMED_BUNDLES} more` : '';
  return `${named.join(', ')}${more}`;
}

function describeRemedy({ requirement, test }: Unmet, surroundings: Surroundings): string {
  const offers = listOffers(test, surroundings);
  if (offers.length > 0) {
    const more =
      offers.length > NAMED_PACKAGES ? ` and ${offers.length - NAMED_PACKAGES} more` : '';
    return `which nothing selected provides; ${offers.slice(0, NAMED_PACKAGES).join('; ')}${more}`;
  }
  const reason = explainUnknown(requirement);
  if (reason !== undefined) return `which cannot be checked: ${reason}`;
  const absent =
    surroundings.names.length > 1 ? 'no catalog has it' : 'the catalog does not have it';
  return `which nothing selected provides; ${absent}`;
}

function listOffers(test: RequirementTest, { growing, names, at }: Surroundings): string[] {
  const offers = growing.flatMap((one, index) =>
    one
      .candidates()
      .filter(({ bundle }) => test(bundle) === true)
      .map(({ channel }) => ({ index, owner: channel.package, channel: channel.name })),
  );
  const groups = groupBy(offers, ({ index, owner }) => JSON.stringify([index, owner]));
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const of = first.index === at ? '' : ` of catalog ${names[first.index] ?? ''}`;
    const channels = [...new Set(group.map(({ channel }) => `"${channel}"`))].sort();
    return [`package "${first.owner}"${of} has it in channel ${channels.join(', ')}`];
  });
}
