import { resolve } from 'node:path';
import { Option, type Command } from 'commander';
import { UsageError } from '../base/errors.ts';
import { loadConfig } from '../config/load-config.ts';
import { parseCatalogSource } from '../openshift/catalog/catalog-source.ts';
import type { CatalogSelection } from '../openshift/catalog/selection.ts';
import { platformOf } from '../openshift/release/architecture.ts';
import type { RpmArchitecture } from '../openshift/release/release-bundle.ts';
import { openBuildTools, type BuildTools } from '../recipes/build-tools.ts';
import {
  listCatalog,
  showCatalog,
  type CatalogList,
  type CatalogRequest,
  type CatalogView,
} from '../recipes/show-catalog.ts';
import { placesOf, type CliHost } from './host.ts';
import { createRetryOption } from './retry-option.ts';
import { createOutputOption, writeFormatted, type OutputFormat } from './terminal/output.ts';
import { createLogFormatOption, createProgress, type LogFormat } from './terminal/progress.ts';

type CatalogOptions = {
  readonly config?: string;
  readonly workDir: string;
  readonly arch: RpmArchitecture;
  readonly outputFormat: OutputFormat;
  readonly logFormat: LogFormat;
  /** Milliseconds. */
  readonly retryFor?: number;
};

type ShowOptions = CatalogOptions & {
  readonly package: readonly string[];
  readonly channel: readonly string[];
  readonly min?: string;
  readonly max?: string;
  readonly full: boolean;
};

const CATALOG_ARGUMENT =
  'image reference, file:DIRECTORY of file-based catalog files, or oci:DIRECTORY[:TAG] of an image layout';

/** `sealift catalog list` and `sealift catalog show`. */
export function registerCatalog(program: Command, host: CliHost): void {
  const catalog = program
    .command('catalog')
    .description('study a catalog of operators')
    .addHelpText('after', '\nExample:\n  $ sealift catalog list file:./configs');
  registerList(catalog, host);
  registerShow(catalog, host);
}

function registerList(parent: Command, host: CliHost): void {
  addCatalogOptions(parent.command('list').description('packages with their channels and heads'))
    .addHelpText(
      'after',
      '\nExample:\n  $ sealift catalog list registry.redhat.io/redhat/redhat-operator-index:v4.21',
    )
    .action(async (name: string, options: CatalogOptions) => {
      const value = await runCatalog({ name, options, host }, listCatalog);
      await writeFormatted(host, options.outputFormat, { value, formatText: formatList });
    });
}

function registerShow(parent: Command, host: CliHost): void {
  addCatalogOptions(parent.command('show').description('what a build would keep of a catalog'))
    .option('--package <name>', 'package to keep, may be repeated (default: all)', collect, [])
    .option('--channel <name>', 'channel to keep of the package, may be repeated', collect, [])
    .option('--min <version>', 'oldest version to keep')
    .option('--max <version>', 'newest version to keep')
    .option('--full', 'every version, not only the heads of channels', false)
    .addHelpText(
      'after',
      '\nExample:\n  $ sealift catalog show oci:./index --package metallb-operator --channel stable -o json',
    )
    .action(async (name: string, options: ShowOptions) => {
      const selection = readSelection(options);
      const value = await runCatalog({ name, options, host }, (request) =>
        showCatalog(request, selection),
      );
      await writeFormatted(host, options.outputFormat, { value, formatText: formatView });
    });
}

const addCatalogOptions = (command: Command): Command =>
  command
    .argument('<catalog>', CATALOG_ARGUMENT)
    .option('--config <file>', 'take pull secret, CA and registries.conf of this configuration')
    .option('--work-dir <dir>', 'where an unpacked catalog stays', '.sealift')
    .addOption(
      new Option('--arch <arch>', 'architecture of the catalog image to read')
        .choices(['x86_64', 'aarch64', 'ppc64le'])
        .default('x86_64'),
    )
    .addOption(createRetryOption())
    .addOption(createLogFormatOption())
    .addOption(createOutputOption());

const collect = (value: string, earlier: readonly string[]): readonly string[] => [
  ...earlier,
  value,
];

/** @throws UsageError `usage.selection` */
function readSelection(options: ShowOptions): CatalogSelection {
  const { channel: channels, min, max, full } = options;
  const names = options.package;
  const isNarrowed = channels.length > 0 || min !== undefined || max !== undefined;
  if (isNarrowed && names.length !== 1) {
    throw new UsageError('usage.selection', '--channel, --min and --max want one --package', {
      expected: 'one --package',
      found: `${names.length}`,
    });
  }
  const range = {
    ...(min !== undefined && { minVersion: min }),
    ...(max !== undefined && { maxVersion: max }),
  };
  return {
    full,
    packages: names.map((name) => ({
      name,
      channels: channels.map((channel) => ({ name: channel })),
      ...range,
    })),
  };
}

/** Opens a registry client only for a catalog that is in a registry. */
async function runCatalog<Result>(
  call: { readonly name: string; readonly options: CatalogOptions; readonly host: CliHost },
  work: (request: CatalogRequest) => Promise<Result>,
): Promise<Result> {
  const { name, options, host } = call;
  const workDir = resolve(host.cwd, options.workDir);
  const progress = createProgress(host, options.logFormat);
  let tools: BuildTools | undefined;
  try {
    return await work({
      ...{ name, workDir, signal: host.signal, platform: platformOf(options.arch) },
      source: parseCatalogSource(name, host.cwd),
      openTools: async () => {
        const config = await readAccess(options, host);
        const { signal } = host;
        tools = await openBuildTools({
          ...{ ...placesOf(host), config, workDir, signal },
          emit: progress.listener,
        });
        return { client: tools.client, cache: tools.cache, signal };
      },
    });
  } finally {
    progress.close();
    await tools?.close();
  }
}

/** How registries are reached: as a build would reach them, or with what the environment has. */
async function readAccess(options: CatalogOptions, host: CliHost) {
  const { retryFor } = options;
  const given = retryFor === undefined ? {} : { retryFor };
  if (options.config === undefined) return { build: { insecureRegistries: [], ...given } };
  const file = resolve(host.cwd, options.config);
  const config = await loadConfig(file, { env: host.env, shownAs: options.config });
  return { ...config, build: { ...config.build, ...given } };
}

function formatList({ packages, warnings }: CatalogList): string {
  const lines = packages.flatMap(({ name, defaultChannel, channels }) => [
    name,
    ...channels.map((channel) => {
      const mark = channel.name === defaultChannel ? '*' : ' ';
      return `  ${mark} ${channel.name.padEnd(20)} ${channel.head ?? 'no head'}`;
    }),
  ]);
  return [...lines, ...formatWarnings(warnings), ''].join('\n');
}

function formatView(view: CatalogView): string {
  const { packages, bundles, relatedImages, warnings } = view;
  return [
    ...packages.flatMap(({ name, defaultChannel, channels }) => [
      name,
      ...channels.map((channel) => {
        const mark = channel.name === defaultChannel ? '*' : ' ';
        const kept = channel.entries.length;
        return `  ${mark} ${channel.name.padEnd(20)} ${channel.head ?? 'no head'}, ${kept} kept`;
      }),
    ]),
    '',
    `bundles ${bundles.length}`,
    ...bundles.map(({ name, version }) => `  ${name}  ${version ?? ''}`.trimEnd()),
    '',
    `images ${relatedImages.length}`,
    ...relatedImages.map((image) => `  ${image}`),
    ...formatWarnings(warnings),
    '',
  ].join('\n');
}

const formatWarnings = (warnings: readonly string[]): readonly string[] =>
  warnings.length === 0 ? [] : ['', ...warnings.map((warning) => `warning: ${warning}`)];
