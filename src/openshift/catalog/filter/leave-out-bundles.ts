import type { Catalog, CatalogChannel, MalformedDocument } from '../catalog.ts';
import { malformedCatalog } from '../../../shape/go-json.ts';
import type { CatalogSelection } from '../selection.ts';
import type { FilterReport } from './filter-report.ts';
import { groupBy } from '../../../base/lists.ts';
import { appendSuggestion } from '../../../base/text/words.ts';
import { removeEntry, type RemovedEntry } from './remove-entry.ts';

type LeaveOutOptions = {
  readonly selection: CatalogSelection;
  readonly report: FilterReport;
  /** The catalog's reference, for errors. */
  readonly name: string;
};

/**
 * A catalog without the bundles that the selection skips, and without those that are malformed and
 * that nobody asked for. Nothing in it is malformed then.
 *
 * @throws ConfigError `catalog.malformed` when documents of a selected package are
 */
export function leaveOutBundles(catalog: Catalog, options: LeaveOutOptions): Catalog {
  const { selection, report } = options;
  const skipped = new Map(
    selection.packages.map(({ name, skipBundles = [] }) => [name, new Set(skipBundles)]),
  );
  refuseMalformed(catalog, skipped, options);
  checkSkipped(catalog, skipped, report);
  const left = new Map([...skipped].filter(([, names]) => names.size > 0));
  for (const [owner, documents] of groupBy(catalog.malformed, (one) => one.package)) {
    const names = left.get(owner) ?? new Set<string>();
    for (const { schema, name } of documents)
      if (schema === 'olm.bundle' && name !== undefined) names.add(name);
    left.set(owner, names);
    if (!skipped.has(owner)) report.addWarning(describeIgnored(owner, documents));
  }
  if (left.size === 0) return catalog;
  const versions = new Map(catalog.bundles.map(({ name, version }) => [name, version ?? '']));
  const isLeft = (owner: string, name: string): boolean => left.get(owner)?.has(name) === true;
  return {
    ...catalog,
    channels: catalog.channels.flatMap((channel) => {
      const names = left.get(channel.package) ?? new Set<string>();
      const warn = skipped.has(channel.package) ? report.addWarning : () => undefined;
      return removeEntries(channel, names, { versions, warn });
    }),
    bundles: catalog.bundles.filter((bundle) => !isLeft(bundle.package, bundle.name)),
    malformed: [],
  };
}

type Skipped = ReadonlyMap<string, ReadonlySet<string>>;

/** A bundle that is skipped by name may be as malformed as it likes. */
function refuseMalformed(catalog: Catalog, skipped: Skipped, { name }: LeaveOutOptions): void {
  const refused = catalog.malformed.filter((document) => {
    if (skipped.size > 0 && !skipped.has(document.package)) return false;
    const isSkipped = skipped.get(document.package)?.has(document.name ?? '') === true;
    return !(document.schema === 'olm.bundle' && isSkipped);
  });
  if (refused.length === 0) return;
  throw malformedCatalog(
    name,
    refused.flatMap(({ problems }) => problems),
    adviseOn(refused, skipped.size > 0),
  );
}

function adviseOn(refused: readonly MalformedDocument[], hasPackages: boolean): string | undefined {
  if (!hasPackages)
    return 'name the packages that are needed: documents of others are ignored then';
  const [first, ...rest] = refused.filter(({ schema }) => schema === 'olm.bundle');
  if (first?.name === undefined) return undefined;
  const others = rest.length === 0 ? '' : ', and the others likewise';
  return `add ${JSON.stringify(first.name)} to skipBundles of package "${first.package}"${others}`;
}

function checkSkipped(catalog: Catalog, skipped: Skipped, report: FilterReport): void {
  const documents = [
    ...catalog.bundles,
    ...catalog.malformed.filter(({ schema }) => schema === 'olm.bundle'),
  ];
  const known = groupBy(documents, (bundle) => bundle.package);
  for (const [owner, names] of skipped) {
    const bundles = new Set(known.get(owner)?.map(({ name = '' }) => name));
    if (bundles.size === 0) continue; // the package itself is missing, which is reported elsewhere
    for (const name of names) {
      if (bundles.has(name)) continue;
      const guess = appendSuggestion(name, bundles);
      report.addProblem(`package "${owner}" has no bundle "${name}" to skip${guess}`);
    }
  }
}

function describeIgnored(owner: string, documents: readonly MalformedDocument[]): string {
  const [first] = documents.flatMap(({ problems }) => problems);
  const count = documents.length === 1 ? 'a document' : `${documents.length} documents`;
  return `package "${owner}" is not selected, and ${count} of it cannot be read and is ignored: ${first ?? ''}`;
}

/** None when no entry is left. */
function removeEntries(
  channel: CatalogChannel,
  names: ReadonlySet<string>,
  {
    versions,
    warn,
  }: {
    readonly versions: ReadonlyMap<string, string>;
    readonly warn: (warning: string) => void;
  },
): readonly CatalogChannel[] {
  const where = `package "${channel.package}" channel "${channel.name}"`;
  let { entries } = channel;
  for (const name of [...names].sort()) {
    const removed = removeEntry(entries, name, versions);
    if (removed === undefined) continue;
    entries = removed.entries;
    warn(`${where}: bundle "${name}" is left out${describeEffect(removed)}`);
  }
  if (entries.length === 0 && channel.entries.length > 0) {
    warn(`${where}: skipBundles leaves nothing of it`);
    return [];
  }
  return [entries === channel.entries ? channel : { ...channel, entries }];
}

function describeEffect({ heir, isHead }: RemovedEntry): string {
  if (heir === undefined) return '';
  return `, and "${heir.name}" ${isHead ? 'becomes the head' : 'skips it'}`;
}
