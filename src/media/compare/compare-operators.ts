import { formatCanonicalJson } from '../../base/text/json.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { IndexCatalog, IndexPackage } from '../index/index-catalogs.ts';
import { listChanges, type Changes, type Compared } from './list-changes.ts';

/** A package of a catalog. */
export type ComparedOperator = {
  readonly catalog: string;
  readonly package: string;
  /** Of the head of the default channel, which OLM installs where nothing else is asked for. */
  readonly version?: string;
  readonly defaultChannel?: string;
  readonly channels: readonly string[];
  /** Of all bundles; a bundle without a version by its name. */
  readonly versions: readonly string[];
};

type Catalogs = readonly IndexCatalog[];

/** Compares packages by their names and the repository of their catalog, whatever its tag is. */
export const compareOperators = (old: Catalogs, now: Catalogs): Changes<ComparedOperator> =>
  listChanges(listOperators(old), listOperators(now));

function listOperators(catalogs: Catalogs): ReadonlyMap<string, Compared<ComparedOperator>> {
  const operators = new Map<string, Compared<ComparedOperator>>();
  for (const { name: catalog, packages } of catalogs) {
    const repository = catalog.replace(/@.*$/, '').replace(/:[^/:]*$/, '');
    for (const one of packages) {
      // A second catalog of the same repository is one of its own.
      const key = [one.name, repository].join('\n');
      operators.set(operators.has(key) ? [one.name, catalog].join('\n') : key, {
        item: describe(catalog, one),
        content: formatCanonicalJson(one),
      });
    }
  }
  return operators;
}

function describe(catalog: string, one: IndexPackage): ComparedOperator {
  const { name, defaultChannel, channels, bundles } = one;
  const nameVersion = (bundle: IndexPackage['bundles'][number]): string =>
    bundle.version ?? bundle.name;
  const head = channels.find((channel) => channel.name === defaultChannel)?.head;
  const bundle = bundles.find((bundle) => bundle.name === head);
  return {
    catalog,
    package: name,
    ...withoutUndefined({ version: bundle && nameVersion(bundle), defaultChannel }),
    channels: channels.map((channel) => channel.name),
    versions: bundles.map(nameVersion),
  };
}
