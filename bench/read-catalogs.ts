/*
 * Reads the catalogs whose directories are its arguments, all at the same time as a plan does, and
 * keeps of every package a range of versions. Prints one JSON line: seconds, and what there was. A
 * process of its own, bundled as the program is, so that its memory is that of the reader alone.
 */
import { performance } from 'node:perf_hooks';
import { filterCatalog } from '../src/fbc/filter/filter-catalog.ts';
import { readCatalog } from '../src/fbc/read/read-catalog.ts';

const started = performance.now();
const catalogs = await Promise.all(
  process.argv.slice(2).map(async (directory) => {
    const source = await readCatalog(directory);
    const packages = source.packages.map(({ name }) => ({
      name,
      minVersion: '1.10.0',
      channels: [],
    }));
    const filtering = performance.now();
    const { catalog } = filterCatalog(source, { packages, full: false });
    return {
      found: source.bundles.length,
      kept: catalog.bundles.length,
      filterSeconds: (performance.now() - filtering) / 1000,
    };
  }),
);
const sum = (pick: (catalog: (typeof catalogs)[number]) => number): number =>
  catalogs.reduce((total, catalog) => total + pick(catalog), 0);
process.stdout.write(
  JSON.stringify({
    seconds: (performance.now() - started) / 1000,
    filterSeconds: sum(({ filterSeconds }) => filterSeconds),
    found: sum(({ found }) => found),
    kept: sum(({ kept }) => kept),
  }),
);
