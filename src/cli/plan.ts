import type { Command } from 'commander';
import { maxOf } from '../base/lists.ts';
import { formatSize } from '../base/text/words.ts';
import type { ConfigNames } from '../config/load.ts';
import type { LiveIsoPlan } from '../stages/report/live-iso.ts';
import { addOtherProducts, findConfigArgument, productArgument, toNames } from './find-product.ts';
import type { CliHost } from './host.ts';
import type { ProductRow, ProductTable } from './product.ts';
import type { ProductFlags } from './product.ts';
import {
  type Phrase,
  type Report,
  type ReportBlock,
  type ReportRow,
  gap,
  lineOf,
  listRows,
  rowsOf,
  say,
  underLabel,
} from './terminal/report.ts';
import { listImagePolicy, listSignatures } from './report-lines.ts';

/** Registers `sealift plan [CONFIG]`: everything that is known before the first payload byte moves. */
export function registerPlan(program: Command, host: CliHost, products: ProductTable): void {
  const [first, ...others] = products;
  const recognized = others.filter(({ marks }) => marks?.ofConfig);
  const named = [first, ...recognized];
  // Options after the name of another product belong to that product.
  const command = first.addOptions(program.enablePositionalOptions().command('plan'), {
    flags: '--output <file>',
    description: `the ISO to write (default: ${describeOutputs(first, recognized)})`,
  });
  const refuseOthers = addOtherProducts(command, products, recognized);
  command
    .enablePositionalOptions()
    .helpCommand(false)
    .description('resolve everything and report the exact size, without fetching the payload')
    .usage('[options] [product] [config...]')
    .argument(...productArgument(named))
    .addHelpText('after', HELP)
    .action(async (args: readonly string[], options: ProductFlags) => {
      const config = await findConfigArgument(args, { products, named }, host);
      const row = recognized.find(({ marks }) => marks?.ofConfig?.(config, host)) ?? first;
      refuseOthers(row);
      await row.plan({ config, options, host });
    });
  for (const row of others) {
    const { name, words, addOptions } = row;
    if (!words?.plan) continue;
    addOptions(command.command(name))
      .description(words.plan.description)
      .addHelpText('after', words.plan.help)
      .action((config: string | ConfigNames, options: ProductFlags) =>
        row.plan({ config: toNames(config), options, host }),
      );
  }
}

const describeOutputs = (first: ProductRow, others: readonly ProductRow[]): string =>
  [`"${first.output}"`, ...others.map(({ maker, output }) => `for ${maker} "${output}"`)].join(
    ', ',
  );

const HELP =
  '\nReads manifests, the release metadata, and what the layout depends on: the base ISO and the\n' +
  'installer, which stay in the cache for the build. Of a catalog image, it reads the layers that may\n' +
  'have the catalog: all of them, unless the history of the image shows what each layer has. If nothing\n' +
  'has changed since the last plan, it asks for the digests of tags alone (--rehash: plan in full).\n' +
  '\nSOURCE_DATE_EPOCH, in seconds since 1970, is the time of the ISO and of all files on it; without\n' +
  'it, they have the time at which the release was made.\n' +
  '\nExamples:\n  $ sealift plan -o json | jq .isoSize\n' +
  '  $ sealift plan image-based-installation-config.yaml --base-iso rhcos-live.x86_64.iso';

export const describeLivePlan = (plan: LiveIsoPlan): Report => ({
  title: ['Plan of a live ISO'],
  body: [
    ...listRows({ width: 15 }, listFacts(plan)),
    gap,
    ...listParts(plan.parts),
    ...listAdditions(plan.additions),
    ...[...plan.warnings, ...plan.catalogs.flatMap(({ warnings }) => warnings)].map((warning) =>
      lineOf(say`warning: ${warning}`),
    ),
    gap,
    { type: 'title', title: 'largest blobs' },
    ...plan.largestBlobs.map(({ digest, size, users }) =>
      lineOf(
        say`${[formatSize(size).padStart(10)]}  ${digest.slice(0, 19)}  ${formatUsers(users)}`,
      ),
    ),
  ],
});

const listFacts = (plan: LiveIsoPlan): readonly ReportRow[] => [
  ['release', say`${plan.release.version} ${plan.release.architecture}`],
  ['', say`${plan.release.reference}`],
  ...rowsOf('signature', listSignatures(plan.signatures)),
  ...underLabel('image policy', listImagePolicy(plan.imagePolicy)),
  ['base ISO', say`${formatSize(plan.base.size)} from ${plan.base.from}`],
  ...rowsOf('OS stream', plan.base.osStream === undefined ? [] : [say`${plan.base.osStream}`]),
  [
    'Ignition area',
    say`${formatSize(plan.ignitionArea.used)} of ${formatSize(plan.ignitionArea.size)} used`,
  ],
  ['images', say`${plan.images}`],
  ['unique blobs', say`${plan.blobs}, ${formatSize(plan.payloadSize)}`],
  ['shared', say`${formatSize(plan.dedupeSaved)} that are not fetched twice`],
  ...listSpace(plan),
  ...rowsOf(
    'mirrors from',
    plan.registriesConf.length === 0 ? [] : [say`${plan.registriesConf.join(', ')}`],
  ),
  ['cluster', describeInternalRelease(plan)],
  ...rowsOf(
    'not named',
    plan.extras.length === 0
      ? []
      : [say`${plan.extras.length} images of the mirror: ${plan.extras.join(', ')}`],
  ),
  ['on the media', [plan.secretsOnMedia.join(', ') || 'no secret']],
];

/** The bytes to move, and the room for them. */
export const listSpace = (
  plan: Pick<LiveIsoPlan, 'bytesToFetch' | 'bytesReused' | 'isoSize' | 'freeBytes' | 'neededBytes'>,
  hasImages = true,
): readonly ReportRow[] => [
  ...rowsOf('to fetch', hasImages ? [say`${formatSize(plan.bytesToFetch)}`] : []),
  ...rowsOf('already cached', hasImages ? [say`${formatSize(plan.bytesReused)}`] : []),
  ['ISO size', say`${formatSize(plan.isoSize)}, exactly ${plan.isoSize} bytes`],
  ['free space', say`${formatSize(plan.freeBytes)}, ${formatSize(plan.neededBytes)} needed`],
];

/** Describes which registry the installed cluster uses. */
export function describeInternalRelease({
  internalReleaseImage: served,
}: Pick<LiveIsoPlan, 'internalReleaseImage'>): Phrase {
  if (served === null) return ['no InternalReleaseImage: hosts use the registry of the media'];
  return say`InternalReleaseImage ${served.version}${[served.isPreview ? ', a technology preview' : '']}`;
}

/** Describes the parts in columns. Names may be of any length: a catalog is named by its reference. */
function listParts(parts: LiveIsoPlan['parts']): readonly ReportBlock[] {
  const title = 'part of the configuration';
  const width = maxOf([title, ...parts.map(({ part }) => `  ${part}`)].map(lengthOf));
  return [
    lineOf([`${title.padEnd(width)}  images        size  saved if omitted`]),
    ...parts.map(({ part, images, size, marginalSize }) =>
      lineOf(
        [
          { code: part },
          ' '.repeat(width - part.length - 2),
          String(images).padStart(8),
          formatSize(size).padStart(12),
          formatSize(marginalSize).padStart(18),
        ],
        2,
      ),
    ),
  ];
}

/** Describes the additions, by which a part of the configuration may have grown. */
function listAdditions(additions: LiveIsoPlan['additions']): readonly ReportBlock[] {
  if (additions.length === 0) return [];
  return [
    gap,
    { type: 'title', title: 'added by dependencies' },
    ...additions.flatMap(({ bundle, channel, images, size, marginalSize, ...added }) => [
      lineOf(
        say`${bundle} of package ${added.package}, channel ${channel}: ${images} images, ${formatSize(size)}, ${formatSize(marginalSize)} saved if omitted`,
        2,
      ),
      lineOf(say`required by ${added.requiredBy.bundle}: ${added.reason}`, 4),
    ]),
    gap,
  ];
}

const lengthOf = (text: string): number => text.length;

function formatUsers(users: readonly string[]): string {
  const shown = users.slice(0, 3).join(', ');
  return users.length > 3 ? `${shown} and ${users.length - 3} more` : shown;
}
