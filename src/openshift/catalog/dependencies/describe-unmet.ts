import type { CatalogBundle, Requirement } from '../catalog.ts';
import { groupBy } from '../../../base/lists.ts';
import { compareText } from '../filter/version/bundle-version.ts';
import { explainUnknown, type RequirementTest } from '../requirement.ts';
import type { GrowingCatalog } from './grow-catalog.ts';

type Unmet = {
  readonly bundle: CatalogBundle;
  readonly requirement: Requirement;
  readonly text: string;
  readonly test: RequirementTest;
};

type Surroundings = {
  readonly growing: readonly GrowingCatalog[];
  /** Of the catalogs, in the same order. */
  readonly names: readonly string[];
  /** Place of the catalog whose bundles these are. */
  readonly at: number;
};

/** Bundles that a warning names; a package that rarely changes its needs has dozens. */
const NAMED_BUNDLES = 3;

/** Packages that a warning offers: some APIs are provided by many. */
const NAMED_PACKAGES = 3;

/**
 * A sentence for each requirement that nothing selected meets, with what would meet it. Bundles of one
 * package with the same requirement share a sentence.
 */
export function describeUnmet(
  unmet: readonly Unmet[],
  surroundings: Surroundings,
): readonly string[] {
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
