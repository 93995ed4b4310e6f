import type { Command } from 'commander';
import { formatSize } from '../../base/text/quantities.ts';
import { explainImage, type Explanation } from '../../recipes/explain-image.ts';
import type { ConfigNames } from '../../config/load-config.ts';
import { createConfigArgument } from '../common-options.ts';
import type { CliHost } from '../host.ts';
import { addLiveOptions, runLive, type LiveCommandOptions } from './recipe-command.ts';
import { writeFormatted } from '../terminal/output.ts';

/** `sealift why DIGEST|IMAGE [CONFIG]`: who pulls an image, a manifest or a blob in. */
export function registerWhy(program: Command, host: CliHost): void {
  addLiveOptions(program.command('why'))
    .description('what requires an image or a blob')
    .argument(
      '<what>',
      'digest of a blob, manifest or image, its first digits, or (part of) a name',
    )
    .addArgument(createConfigArgument())
    .addHelpText('after', '\nExample:\n  $ sealift why sha256:4f2a')
    .action(async (what: string, config: ConfigNames, options: LiveCommandOptions) => {
      const value = await runLive({ config, options, host }, (request, tools) =>
        explainImage(what, request, tools),
      );
      await writeFormatted({ host, ...options }, value, formatExplanation);
    });
}

function formatExplanation({ images, blobs }: Explanation): string {
  return [
    ...images.flatMap(({ name, reference, repository, tags, size, marginalSize, neededBy }) => [
      `${name}  ${formatSize(size)}, ${formatSize(marginalSize)} of it for this image alone`,
      `  from    ${reference}`,
      `  on the media ${repository}${tags.map((tag) => `:${tag}`).join(', ')}`,
      ...neededBy.map(({ part, bundle, catalog }) =>
        [
          `  needed by ${part}`,
          ...(bundle === undefined ? [] : [`bundle ${bundle}`]),
          ...(catalog === undefined || part.includes(catalog) ? [] : [`of ${catalog}`]),
        ].join(', '),
      ),
    ]),
    ...blobs.map(
      ({ digest, size, users }) =>
        `${digest}  ${formatSize(size)}, in ${users.length} images: ${users.join(', ')}`,
    ),
    '',
  ].join('\n');
}
