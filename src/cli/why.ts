import type { Command } from 'commander';
import { UsageError } from '../base/errors.ts';
import { formatReadableJson } from '../base/text/json.ts';
import { formatSize } from '../base/text/words.ts';
import type { ConfigNames } from '../config/load.ts';
import { type Explanation, type ExplainedImage, explainMedium } from '../media/explain.ts';
import { explainImage, listResources } from '../stages/show.ts';
import type { CliHost } from './host.ts';
import { createConfigArgument } from './options.ts';
import { addLiveOptions, runLive, type LiveCommandOptions } from './run.ts';
import { ISO_ARGUMENT, useIso } from './named-media.ts';
import { writeTexts } from './terminal/log.ts';
import { writeFormatted, createForceOption } from './terminal/output.ts';

/* This file owns `why` and `resources`, which explain the content of media. */

type WhyOptions = LiveCommandOptions & { readonly iso?: string };

/**
 * Registers `sealift why DIGEST|IMAGE [CONFIG]`, or `--iso SOURCE`: what requires an image, a
 * manifest or a blob.
 */
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
      const value =
        iso === undefined
          ? await runLive({ config, options, host }, (request, tools) =>
              explainImage(what, request, tools),
            )
          : await explainIso(what, { iso, configs: command.args.slice(1) }, host);
      await writeFormatted({ host, ...options }, value, formatExplanation);
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

function formatExplanation({ images, blobs }: Explanation): string {
  return [
    ...images.flatMap(formatImage),
    ...blobs.map(
      ({ digest, size, users }) =>
        `${digest}  ${formatSize(size)}, in ${users.length} images: ${users.join(', ')}`,
    ),
    '',
  ].join('\n');
}

const formatImage = ({ name, size, marginalSize, ...image }: ExplainedImage): readonly string[] => [
  `${name}  ${formatSize(size)}, ${formatSize(marginalSize)} of it for this image alone`,
  `  from    ${image.reference}`,
  `  on the media ${image.repository}${image.tags.map((tag) => `:${tag}`).join(', ')}`,
  ...(image.unknown === undefined ? [] : [`  note      ${image.unknown}`]),
  ...image.neededBy.map(({ part, bundle, catalog }) =>
    [
      `  needed by ${part}`,
      ...(bundle === undefined ? [] : [`bundle ${bundle}`]),
      ...(catalog === undefined || part.includes(catalog) ? [] : [`of ${catalog}`]),
    ].join(', '),
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
    .action(async (config: ConfigNames, options: LiveCommandOptions) => {
      const { output: path, force = false, ...live } = options;
      const value = await runLive({ config, options: live, host }, listResources);
      const text =
        options.outputFormat === 'json'
          ? formatReadableJson(value)
          : value.map(({ name, text }) => `---\n# ${name}\n${text}`).join('');
      const rule = { force, inputs: config };
      await writeTexts(host, [{ path: path ?? '-', text }], rule);
    });
}
