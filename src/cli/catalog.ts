import { Option, type Command } from 'commander';
import { resolve } from 'node:path';
import { openWorkDirectory, type WorkDirectory } from '../base/disk/work-directory.ts';
import { UsageError } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import type { ApplianceConfig } from '../config/appliance-config.ts';
import type { CatalogSelection } from '../fbc/index.ts';
import { parseCatalogSource, type CatalogSource } from '../openshift/catalog/source.ts';
import { platformOf, type RpmArchitecture } from '../openshift/release/bundle.ts';
import { listCatalog, showCatalog, type CatalogRequest, type CatalogView } from '../stages/show.ts';
import { openBuildTools, type BuildTools } from '../stages/tools.ts';
import { hostPlacesOf, type CliHost } from './host.ts';
import { addTo, addAccessOptions, readAccess, readConfig, type AccessOptions } from './options.ts';
import { createOutputOption, type OutputFormat } from './terminal/output.ts';
import { createLogFormatOption, createProgress, type LogFormat } from './terminal/progress.ts';
import { type ReportBlock, gap, lineOf, say, writeReport } from './terminal/report.ts';

type CatalogOptions = AccessOptions & {
  readonly workDir: string;
  readonly arch?: RpmArchitecture;
  readonly outputFormat: OutputFormat;
  readonly logFormat: LogFormat;
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

export function registerCatalog(program: Command, host: CliHost): void {
  const catalog = program
    .command('catalog')
    .description('inspect a catalog of operators')
    .addHelpText('after', '\nExample:\n  $ sealift catalog list file:./configs');
  registerList(catalog, host);
  registerShow(catalog, host);
}

function registerList(parent: Command, host: CliHost): void {
  const list = parent.command('list').description('list packages with their channels and heads');
  addCatalogOptions(list.argument('<catalog>', CATALOG_ARGUMENT))
    .addHelpText(
      'after',
      '\nExample:\n  $ sealift catalog list registry.redhat.io/redhat/redhat-operator-index:v4.21',
    )
    .action(async (name: string, options: CatalogOptions) => {
      const source = parseCatalogSource(name, host.cwd);
      const value = await runCatalog({ name, source, options, host }, listCatalog);
      await writeReport({ host, ...options }, value, ({ packages, warnings }) => ({
        title: say`Packages of ${name}`,
        body: [...packages.flatMap((found) => listPackage(found)), ...listWarnings(warnings)],
      }));
    });
}

function registerShow(parent: Command, host: CliHost): void {
  const show = parent.command('show').description('show what a build would select from a catalog');
  addCatalogOptions(show.argument('[catalog]', `${CATALOG_ARGUMENT}; default: those of --config`))
    .option('--package <name>', 'package to select; may be repeated (default: all)', addTo, [])
    .option('--channel <name>', 'channel of the package to select; may be repeated', addTo, [])
    .option('--min <version>', 'oldest version to select')
    .option('--max <version>', 'newest version to select')
    .option('--full', 'select every version, not only the heads of channels', false)
    .addHelpText(
      'after',
      '\nWith --config and no option that selects, the configuration selects: from this catalog, or from all\n' +
        'of its catalogs if none is named.\n' +
        '\nOf a catalog image, the layers that may have the catalog are fetched: all of them, unless the history\n' +
        'of the image shows what each layer has.\n' +
        '\nExamples:\n  $ sealift catalog show oci:./index --package metallb-operator --channel stable -o json\n' +
        '  $ sealift catalog show --config appliance-config.yaml',
    )
    .action(async (name: string | undefined, options: ShowOptions) => {
      const catalogs: NamedView[] = [];
      for (const { selection, ...wanted } of planShown(name, options, host)) {
        const view = await runCatalog({ ...wanted, options, host }, (request) =>
          showCatalog(request, selection),
        );
        catalogs.push({ catalog: wanted.name, view });
      }
      const { outputFormat } = options;
      const [only] = catalogs;
      if (name !== undefined && catalogs.length === 1 && only) {
        await writeReport({ host, outputFormat }, only.view, (view) => ({
          title: say`Selection from ${name}`,
          body: listView(view),
        }));
      } else {
        const value = { catalogs: catalogs.map(({ catalog, view }) => ({ catalog, ...view })) };
        await writeReport({ host, outputFormat }, value, () => ({
          title: ['Selection from catalogs'],
          body: catalogs.flatMap(({ catalog, view }, index) => [
            ...(index === 0 ? [] : [gap]),
            lineOf(say`# ${catalog}`),
            ...listView(view),
          ]),
        }));
      }
    });
}

type NamedView = { readonly catalog: string; readonly view: CatalogView };

type ShownCatalog = {
  readonly name: string;
  readonly source: CatalogSource;
  readonly selection: CatalogSelection;
  readonly arch?: RpmArchitecture;
};

/** Finds the catalogs to show and what to keep of each. Options win over the configuration. */
function planShown(
  name: string | undefined,
  options: ShowOptions,
  host: CliHost,
): readonly ShownCatalog[] {
  const selection = readSelection(options);
  const isSelecting = selection.full || selection.packages.length > 0;
  const config = isSelecting ? undefined : readConfig(options, host);
  const configured = config === undefined ? [] : listConfigured(config, host.cwd);
  if (name !== undefined) {
    const named = configured.filter((one) => one.name === name);
    if (named.length > 0) return named;
    return [{ name, source: parseCatalogSource(name, host.cwd), selection }];
  }
  if (config !== undefined) return configured;
  throw new UsageError('usage.catalog', 'no catalog is named', {
    hint: 'name a catalog, or give --config and no option that selects',
  });
}

const listConfigured = (
  { operators, ocpRelease: { cpuArchitecture: arch } }: ApplianceConfig,
  cwd: string,
): readonly ShownCatalog[] =>
  operators.map(({ catalog, local, full, packages, dependencies }) => ({
    name: catalog,
    source: local ?? parseCatalogSource(catalog, cwd),
    selection: { full, packages, dependencies },
    ...(arch && { arch }),
  }));

const addCatalogOptions = (command: Command): Command =>
  addAccessOptions(command)
    .option('--work-dir <dir>', 'directory for unpacked catalogs', '.sealift')
    .addOption(
      new Option(
        '--arch <arch>',
        "architecture of the catalog image to read (default: x86_64, or the shown configuration's)",
      ).choices(['x86_64', 'aarch64', 'ppc64le']),
    )
    .addOption(createLogFormatOption())
    .addOption(createOutputOption());

function readSelection(options: ShowOptions): CatalogSelection {
  const { channel: channels, min, max, full } = options;
  const names = options.package;
  const isNarrowed = channels.length > 0 || min !== undefined || max !== undefined;
  if (isNarrowed && names.length !== 1) {
    throw new UsageError('usage.selection', '--channel, --min and --max need one --package', {
      expected: 'one --package',
      found: `${names.length}`,
    });
  }
  const range = withoutUndefined({ minVersion: min, maxVersion: max });
  return {
    full,
    packages: names.map((name) => ({
      name,
      channels: channels.map((channel) => ({ name: channel })),
      ...range,
    })),
  };
}

/** Runs work on a catalog; opens a registry client only if the catalog is in a registry. */
async function runCatalog<Result>(
  call: Omit<ShownCatalog, 'selection'> & {
    readonly options: CatalogOptions;
    readonly host: CliHost;
  },
  work: (request: CatalogRequest) => Promise<Result>,
): Promise<Result> {
  const { name, source, options, host } = call;
  const arch = options.arch ?? call.arch ?? 'x86_64';
  const workDir = resolve(host.cwd, options.workDir);
  const progress = createProgress(host, options.logFormat);
  let tools: BuildTools | undefined;
  let held: WorkDirectory | undefined;
  try {
    return await work({
      name,
      signal: host.signal,
      platform: platformOf(arch),
      source,
      openTools: async () => {
        const config = readAccess(options, host);
        const { signal } = host;
        tools = await openBuildTools({
          ...hostPlacesOf(host),
          config,
          workDir,
          signal,
          emit: progress.listener,
        });
        return { client: tools.client, cache: tools.cache, workDir: tools.workDir, signal };
      },
      openWorkDir: async () => {
        held = await openWorkDirectory(workDir, (message) => {
          progress.listener({ type: 'warning', message });
        });
        return held.path;
      },
    });
  } finally {
    progress.close();
    await tools?.close();
    await held?.close();
  }
}

type ListedPackage = {
  readonly name: string;
  readonly defaultChannel: string | null;
  readonly channels: readonly {
    readonly name: string;
    readonly head?: string | null | undefined;
    readonly entries?: readonly unknown[];
  }[];
};

/** A package with its channels, of which the default one has a star, and how much of each is selected. */
const listPackage = ({ name, defaultChannel, channels }: ListedPackage): readonly ReportBlock[] => [
  lineOf(say`${name}`),
  ...channels.map(({ name, head, entries }) => {
    const mark = name === defaultChannel ? '*' : ' ';
    const selected = entries === undefined ? [] : say`, ${entries.length} selected`;
    return lineOf(
      say`${[mark]} ${name}${[' '.repeat(Math.max(0, 20 - name.length))]} ${head ?? 'no head'}${selected}`,
      2,
    );
  }),
];

export const listView = ({
  packages,
  bundles,
  relatedImages,
  warnings,
}: CatalogView): readonly ReportBlock[] => [
  ...packages.flatMap((found) => listPackage(found)),
  gap,
  lineOf(say`bundles ${bundles.length}`),
  ...bundles.map(({ name, version }) =>
    lineOf(version ? say`${name}  ${version}` : say`${name}`, 2),
  ),
  gap,
  lineOf(say`images ${relatedImages.length}`),
  ...relatedImages.map((image) => lineOf(say`${image}`, 2)),
  ...listWarnings(warnings),
];

const listWarnings = (warnings: readonly string[]): readonly ReportBlock[] =>
  warnings.length === 0
    ? []
    : [gap, ...warnings.map((warning) => lineOf(say`warning: ${warning}`))];
