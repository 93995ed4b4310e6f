import type { Command } from 'commander';
import { UsageError } from '../base/errors.ts';
import { formatSize } from '../base/text/words.ts';
import type { ConfigNames } from '../config/load.ts';
import { type Explanation, type ExplainedImage, explainMedium } from '../media/explain.ts';
import { explainImage, listResources } from '../stages/show.ts';
import type { CliHost } from './host.ts';
import { createConfigArgument } from './options.ts';
import { addLiveOptions } from './build-live-iso.ts';
import { readLiveIsoRequest } from './ask-appliance.ts';
import { runAsked, type ProductFlags } from './product.ts';
import { ISO_ARGUMENT, useIso } from './named-media.ts';
import { writeTexts } from './terminal/log.ts';
import { createForceOption } from './terminal/output.ts';
import {
  type ReportBlock,
  formatAs,
  lineOf,
  listRows,
  quoteText,
  rowsOf,
  say,
  writeReport,
} from './terminal/report.ts';

/* This file owns `why` and `resources`, which explain the content of media. */

type WhyOptions = ProductFlags & { readonly iso?: string };

/** Registers `sealift why DIGEST|IMAGE [CONFIG]`, or `--iso SOURCE`: what requires an image or a blob. */
export function registerWhy(program: Command, host: CliHost): void {
  const command = addLiveOptions(program.command('why'));
  command
    .description('show what requires an image or a blob')
    .argument(
      '<what>',
      'digest of a blob, manifest or image, its first digits, or (part of) a name',
    )
    .addArgument(createConfigArgument())
    .option(
      '--iso <source>',
      `take the answer from a medium, without a configuration. ${ISO_ARGUMENT}`,
    )
    .addHelpText(
      'after',
      '\nThe index of a medium names releases, operators, bundles and catalogs. It does not name the bundle\n' +
        'that requires an image of an operator: then the operators that may require it are listed.\n' +
        '\nExamples:\n  $ sealift why sha256:4f2a\n' +
        '  $ sealift why etcd --iso https://media.example/nightly.iso',
    )
    .action(async (what: string, config: ConfigNames, options: WhyOptions) => {
      const { iso } = options;
      const call = { config, options, host };
      const value =
        iso === undefined
          ? (await runAsked(readLiveIsoRequest, call, (...asked) => explainImage(what, ...asked)))
              .result
          : await explainIso(what, { iso, configs: command.args.slice(1) }, host);
      await writeReport({ host, ...options }, value, ({ images, blobs }) => ({
        title: say`Why ${what}`,
        body: [
          ...images.flatMap(listImage),
          ...blobs.map(({ digest, size, users }) =>
            lineOf(
              say`${digest}  ${formatSize(size)}, in ${users.length} images: ${users.join(', ')}`,
            ),
          ),
        ],
      }));
    });
}

function explainIso(
  what: string,
  { iso, configs }: { readonly iso: string; readonly configs: readonly string[] },
  host: CliHost,
): Promise<Explanation> {
  const [config] = configs;
  if (config === undefined) {
    return useIso(iso, host, (image, name) => explainMedium(what, image, name));
  }
  throw new UsageError('usage.iso-and-config', 'an ISO and a configuration are both named', {
    expected: '--iso, or a configuration',
    found: `--iso and "${config}"`,
    hint: 'leave one of the two out',
  });
}

export const listImage = ({
  name,
  size,
  marginalSize,
  ...image
}: ExplainedImage): readonly ReportBlock[] => [
  lineOf(say`${name}  ${formatSize(size)}, ${formatSize(marginalSize)} of it for this image alone`),
  ...listRows({ indent: 2, width: 8 }, [['from', say`${image.reference}`]]),
  ...listRows({ indent: 2, width: 13 }, [
    ['on the media', say`${image.repository}${image.tags.map((tag) => `:${tag}`).join(', ')}`],
  ]),
  ...listRows(
    { indent: 2, width: 10 },
    rowsOf('note', image.unknown === undefined ? [] : [say`${image.unknown}`]),
  ),
  ...listRows(
    { indent: 2, width: 10 },
    image.neededBy.map(({ part, bundle, catalog }) => [
      'needed by',
      say`${[
        part,
        ...(bundle === undefined ? [] : [`bundle ${bundle}`]),
        ...(catalog === undefined || part.includes(catalog) ? [] : [`of ${catalog}`]),
      ].join(', ')}`,
    ]),
  ),
];

/** Registers `sealift resources [CONFIG]`: the resources that a cluster needs for the media. */
export function registerResources(program: Command, host: CliHost): void {
  addLiveOptions(program.command('resources'), {
    flags: '--output <file>',
    description: 'write them to this file, not to stdout',
  })
    .addOption(createForceOption())
    .description('print the cluster resources that make a cluster use the media')
    .addArgument(createConfigArgument())
    .addHelpText(
      'after',
      '\nMirror sets, catalog sources, cluster catalogs and release signatures. Media already carry all but\n' +
        'the cluster catalogs; this is for existing clusters.\n' +
        '\nExample:\n  $ sealift resources | oc apply -f -',
    )
    .action(async (config: ConfigNames, options: ProductFlags) => {
      const { output: path, force = false, ...live } = options;
      const call = { config, options: live, host };
      const { result: value } = await runAsked(readLiveIsoRequest, call, listResources);
      const yaml = value.map(({ name, text }) => `---\n# ${name}\n${text}`).join('');
      const text = formatAs(options.outputFormat, value, () => ({
        title: ['Resources of a cluster'],
        body: quoteText(yaml.trimEnd()),
      }));
      const rule = { force, inputs: config };
      await writeTexts(host, [{ path: path ?? '-', text }], rule);
    });
}
