import { type BundleVersion, compareText, parseBundleVersion } from './version/bundle-version.ts';
import type { Catalog, CatalogBundle } from '../catalog.ts';
import { groupBy } from './groups.ts';
import { parseVersionRange } from './version/version-range.ts';

type Requiring = {
  readonly bundle: CatalogBundle;
  readonly packageName: string;
  readonly range: string;
};

type Bundles = ReadonlyMap<string, readonly CatalogBundle[]>;

/** Bundles that a warning names; a package that rarely changes its needs has dozens. */
const NAMED = 3;

/**
 * Requirements (`olm.package.required`) that no kept bundle meets, with what would meet them in the
 * source. OLM would refuse to install the bundle; the filter follows no requirement by itself. Bundles of one
 * package with the same requirement share a sentence.
 */
export function findUnmetRequirements(kept: Catalog, source: Catalog): readonly string[] {
  const available = groupBy(kept.bundles, (bundle) => bundle.package);
  const unmet: Requiring[] = [];
  for (const bundle of kept.bundles)
    for (const { packageName, versionRange } of bundle.requirements)
      if (!findMatching(available, packageName, versionRange).length)
        unmet.push({ bundle, packageName, range: versionRange });
  if (unmet.length === 0) return [];
  const groups = groupBy(unmet, (item) =>
    JSON.stringify([item.bundle.package, item.packageName, item.range]),
  );
  const all = groupBy(source.bundles, (bundle) => bundle.package);
  return [...groups.values()].flatMap(([first, ...others]) =>
    first === undefined ? [] : [describeUnmet(first, { others, source, all })],
  );
}

/** Undefined where the range cannot be read. */
function findMatching(
  bundles: Bundles,
  packageName: string,
  range: string,
): readonly CatalogBundle[] {
  const accepts = parseVersionRange(range);
  if (accepts === undefined) return [];
  return (bundles.get(packageName) ?? []).filter(({ version }) => {
    const parsed: BundleVersion | undefined = parseBundleVersion(version ?? '');
    return parsed !== undefined && accepts(parsed);
  });
}

function describeUnmet(
  first: Requiring,
  {
    others,
    source,
    all,
  }: { readonly others: readonly Requiring[]; readonly source: Catalog; readonly all: Bundles },
): string {
  const { packageName, range } = first;
  const names = [...new Set([first, ...others].map(({ bundle }) => bundle.name))].sort(compareText);
  const named = names
    .slice(0, NAMED)
    .map((name) => `"${name}"`)
    .join(', ');
  const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : '';
  const what = `package "${first.bundle.package}" bundle ${named}${more} requires package "${packageName}" in range "${range}"`;
  if (parseVersionRange(range) === undefined) return `${what}, which is not a range of versions`;
  const matching = findMatching(all, packageName, range);
  const remedy = describeRemedy(source, packageName, matching);
  return `${what}, which nothing kept is; ${remedy}`;
}

function describeRemedy(
  source: Catalog,
  packageName: string,
  matching: readonly CatalogBundle[],
): string {
  const names = new Set(matching.map(({ name }) => name));
  const channels = source.channels
    .filter((channel) => channel.package === packageName)
    .filter(({ entries }) => entries.some(({ name }) => names.has(name)))
    .map(({ name }) => `"${name}"`);
  if (channels.length === 0) return 'the catalog has nothing that is';
  return `package "${packageName}" has it in channel ${channels.join(', ')}`;
}
