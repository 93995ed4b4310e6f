import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatDenseOperator, formatOperator, inventImages } from './catalog-data.ts';
import { bundleBench, runMeasured, type Measures } from './run.ts';

const CATALOGS = 10;
const PACKAGES = 25;
const VERSIONS = 20;

/** One reading of catalogs; seconds without the start of the process. */
type CatalogRun = {
  readonly seconds: number;
  readonly filterSeconds: number;
  readonly found: number;
  readonly kept: number;
  readonly measures: Measures;
};

export type CatalogFigures = {
  readonly catalogs: readonly CatalogRun[];
  /** The upgrade graph of a community operator that once took all memory. */
  readonly dense: readonly CatalogRun[];
};

/** Writes 5,000 bundles in ten catalogs, and a dense upgrade graph, and reads both several times. */
export async function runCatalogs(directory: string, runs: number): Promise<CatalogFigures> {
  rmSync(directory, { recursive: true, force: true });
  const names = Array.from({ length: CATALOGS }, (_, index) => join(directory, `catalog-${index}`));
  const size = names.reduce((total, name) => total + writeCatalog(name), 0);
  const dense = join(directory, 'dense');
  writePackage(dense, 'dense', formatDenseOperator({ entries: 93, channels: 11 }));
  const figures = { catalogs: [] as CatalogRun[], dense: [] as CatalogRun[] };
  for (let index = 0; index < runs; index++) {
    figures.catalogs.push(await read(names, directory));
    figures.dense.push(await read([dense], directory));
  }
  for (const { found, kept, seconds, filterSeconds, measures } of figures.catalogs) {
    console.log(
      `  catalogs: ${(size / 1e6).toFixed(0)} MB, ${kept} of ${found} bundles kept in ${seconds.toFixed(2)} s, ` +
        `${filterSeconds.toFixed(2)} s of it the filter, RSS ${measures.peakRssMiB.toFixed(0)} MiB`,
    );
  }
  rmSync(directory, { recursive: true });
  return figures;
}

/** Returns bytes written. */
function writeCatalog(directory: string): number {
  let size = 0;
  for (let index = 0; index < PACKAGES; index++) {
    const name = `operator-${String(index).padStart(2, '0')}`;
    const text = formatOperator({ name, versions: VERSIONS, listImages: inventImages(name, 12) });
    size += writePackage(directory, name, text);
  }
  return size;
}

function writePackage(directory: string, name: string, text: string): number {
  mkdirSync(join(directory, name), { recursive: true });
  const path = join(directory, name, 'catalog.json');
  writeFileSync(path, text);
  return statSync(path).size;
}

async function read(directories: readonly string[], cwd: string): Promise<CatalogRun> {
  const { stdout, measures } = await runMeasured(
    await bundleBench('read-catalogs'),
    directories,
    cwd,
  );
  return { ...(JSON.parse(stdout) as Omit<CatalogRun, 'measures'>), measures };
}
