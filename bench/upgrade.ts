import { build, describe, prepare, type Built, type Site } from './build.ts';
import { addFigures, median, type Figures } from './figures.ts';
import { runSealift, startSource, type Source } from './run.ts';
import type { SourceShape } from './source-shape.ts';

const PRODUCTS = ['live-iso', 'upgrade-iso'] as const;

type Product = (typeof PRODUCTS)[number];

/** The same payload as a live ISO and as an upgrade ISO, by turns: both have the same goals. */
export async function benchUpgrade(
  shape: SourceShape,
  site: Site,
  { figures, runs }: { readonly figures: Figures; readonly runs: number },
): Promise<void> {
  const source = await startSource(shape);
  try {
    const plans: Record<Product, number[]> = { 'live-iso': [], 'upgrade-iso': [] };
    const builds: Record<Product, Built[]> = { 'live-iso': [], 'upgrade-iso': [] };
    for (let index = 0; index < runs; index++) {
      for (const product of PRODUCTS) {
        plans[product].push(await plan(product, source, site));
        const built = await build(prepare(product, source, site), product);
        builds[product].push(built);
        console.log(
          `  ${product}: plan ${plans[product].at(-1)?.toFixed(2)} s, ${describe(built)}`,
        );
      }
    }
    for (const product of PRODUCTS) {
      addProduct(figures, product, { plans: plans[product], builds: builds[product] });
    }
  } finally {
    await source.stop();
  }
}

/** Seconds, with nothing cached. */
async function plan(product: Product, source: Source, site: Site): Promise<number> {
  const work = prepare(product, source, site);
  const plan = product === 'live-iso' ? ['plan'] : ['plan', product];
  return (await runSealift([...plan, '-o', 'json'], work)).seconds;
}

function addProduct(
  figures: Figures,
  product: Product,
  { plans, builds }: { readonly plans: readonly number[]; readonly builds: readonly Built[] },
): void {
  const name = product === 'live-iso' ? 'live' : 'upgrade';
  const written = median(builds.map(({ measures, isoSize }) => measures.writtenBytes / isoSize));
  const rss = Math.max(...builds.map(({ measures }) => measures.peakRssMiB));
  addFigures(figures, {
    [`${name}WrittenRatio`]: { value: written, atMost: 1.01 },
    [`${name}PeakRssMiB`]: { value: rss, atMost: 300 },
    [`${name}PlanSeconds`]: { value: median(plans), atMost: 5 },
  });
}
