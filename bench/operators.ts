import type { RequestCounts } from './count-requests.ts';
import type { PublishedOperators } from './source-shape.ts';
import { runSealift, type MeasuredRun, type Source } from './run.ts';

/** A plan that started with nothing cached, and what the registry was asked for it. */
export type OperatorPlan = MeasuredRun & { readonly requests: RequestCounts };

/** The operators of a configuration: every package, and one channel of each. */
export const formatOperators = (operators: PublishedOperators | undefined): readonly string[] =>
  operators === undefined
    ? []
    : [
        'operators:',
        `  - catalog: ${operators.catalog}`,
        '    packages:',
        ...operators.packages.map((name) => `      - {name: ${name}, channels: [{name: stable}]}`),
      ];

/** Plans in a folder that is prepared, and refuses a plan that is not that of all images. */
export async function planOperators(work: string, source: Source): Promise<OperatorPlan> {
  await source.takeRequests();
  const planned = await runSealift(['plan', '-o', 'json'], work);
  const requests = await source.takeRequests();
  const { images, catalogs } = JSON.parse(planned.stdout) as {
    readonly images: number;
    readonly catalogs: readonly { readonly bundles: readonly string[] }[];
  };
  const bundles = catalogs.reduce((total, catalog) => total + catalog.bundles.length, 0);
  const { seconds, measures } = planned;
  const { manifests, signatureTags } = requests;
  console.log(
    `  operators: ${images} images, ${bundles} bundles in ${seconds.toFixed(2)} s, ` +
      `${manifests.requests} requests of manifests, ${manifests.repeated} repeated, ` +
      `${signatureTags.requests} of signatures, ${signatureTags.repeated} repeated, ` +
      `${requests.connections} connections, ` +
      `CPU ${measures.userSeconds.toFixed(1)} + ${measures.systemSeconds.toFixed(1)} s, ` +
      `RSS ${measures.peakRssMiB.toFixed(0)} MiB`,
  );
  for (const example of [...manifests.examples, ...signatureTags.examples]) {
    console.log(`    ${example}`);
  }
  return { ...planned, requests };
}
