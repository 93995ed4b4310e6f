import { Option, type Command } from 'commander';
import { dirname, join, basename, resolve } from 'node:path';
import { LossError, formatProblem } from '../base/errors.ts';
import { formatReadableJson } from '../base/text/json.ts';
import { formatCommand } from '../base/text/shell.ts';
import { toPrintable } from '../base/text/words.ts';
import {
  importImageSet,
  renderImportedConfig,
  type ImportedImageSet,
} from '../config/imageset/import.ts';
import { isLoss, type ImportNote } from '../config/imageset/notes.ts';
import { readConfigText } from '../config/load.ts';
import { PLACEHOLDER } from '../config/secrets.ts';
import {
  INSTALLATION_TEMPLATE,
  SITES_STARTER,
  type StarterFile,
  renderStarter,
} from '../config/starter.ts';
import { readSchemaText, SCHEMA } from '../shape/configuration.ts';
import { INSTALLATION_CONFIG_NAME } from '../sites/installation.ts';
import type { CliHost } from './host.ts';
import { writeTexts } from './terminal/log.ts';
import {
  createForceOption,
  writeResult,
  createOutputOption,
  writeMessage,
  type OutputFormat,
} from './terminal/output.ts';

/* This file owns the commands that write a first configuration: `init` and `import imageset`. */

type Template = {
  /** Files of the template; the first is the one to continue with. */
  readonly files: readonly StarterFile[];
  /** Describes the next step, given the path of the first file. */
  readonly next: (first: string) => string;
};

export function registerInit(program: Command, host: CliHost): void {
  program
    .command('init')
    .description('write a commented configuration to start from')
    .argument('[dir]', 'directory to write it in', '.')
    .addOption(
      new Option(
        '--template <name>',
        'what to start from; ibi is for an installation ISO, sites for configuration ISOs',
      )
        .choices(Object.keys(TEMPLATES))
        .default('minimal'),
    )
    .addOption(createForceOption())
    .addHelpText('after', '\nExample:\n  $ sealift init --template ove site-a')
    .action(
      async (dir: string, options: { readonly template: string; readonly force: boolean }) => {
        const template = TEMPLATES[options.template]?.();
        if (!template) throw new Error(`commander let the template "${options.template}" through`);
        const texts = template.files.map(({ path, text }) => ({ path: join(dir, path), text }));
        const shown = await writeTexts(host, texts, options);
        await writeResult(
          host,
          `wrote ${toPrintable(shown.join(', '))}\nnext: ${toPrintable(template.next(shown[0] ?? ''))}\n`,
        );
      },
    );
}

const TEMPLATES: Readonly<Record<string, () => Template>> = {
  ove: () => beginAppliance('ove'),
  minimal: () => beginAppliance('minimal'),
  ibi: () =>
    beginConfig(
      [
        { path: INSTALLATION_CONFIG_NAME, text: INSTALLATION_TEMPLATE },
        schemaFile(SCHEMA.installation),
      ],
      ['build', 'installation-iso', '--base-iso', 'rhcos-live.x86_64.iso'],
    ),
  sites: () => ({
    files: [...SITES_STARTER, schemaFile(SCHEMA.site)],
    next: nextOfSites,
  }),
};

const beginAppliance = (name: 'ove' | 'minimal'): Template =>
  beginConfig(
    [{ path: 'appliance-config.yaml', text: renderStarter(name) }, schemaFile(SCHEMA.appliance)],
    ['validate'],
  );

const beginConfig = (files: readonly StarterFile[], command: readonly string[]): Template => ({
  files,
  next: (first) =>
    `put your pull secret at ${join(dirname(first), 'pull-secret.json')}, ` +
    `then run: ${formatCommand(...command, { path: first })}`,
});

/** The schema as a file next to the others, so that no file names a path of this machine. */
const schemaFile = (path: (typeof SCHEMA)[keyof typeof SCHEMA]): StarterFile => ({
  path,
  text: readSchemaText(path),
});

/** Describes the next step for sites: to replace the one placeholder of the template. */
function nextOfSites(first: string): string {
  const template = join(dirname(first), 'template');
  const file = SITES_STARTER.find(({ text }) => text.includes(PLACEHOLDER));
  const line = (file?.text.split(PLACEHOLDER)[0] ?? '').split('\n').length;
  const shown = join(dirname(first), file?.path ?? '');
  return (
    `name your pull secret in ${shown}:${line}, ` +
    `then run: ${formatCommand('config-iso', 'validate', { path: first }, '--template', { path: template })}`
  );
}

type Options = {
  readonly output?: string;
  readonly outputFormat: OutputFormat;
  readonly allowLosses: boolean;
  readonly force: boolean;
};

/** Registers `sealift import imageset FILE [--output FILE]`: exit code 9 when something is lost. */
export function registerImportImageset(program: Command, host: CliHost): void {
  program
    .command('import')
    .description('import configurations of other programs')
    .addHelpText('after', '\nExample:\n  $ sealift import imageset imageset-config.yaml')
    .command('imageset')
    .description('convert an ImageSetConfiguration of oc-mirror to a configuration')
    .argument('<file>', 'ImageSetConfiguration v2alpha1')
    .option('--output <file>', 'write the configuration to this file, not to stdout')
    .addOption(createForceOption())
    .option('--allow-losses', 'exit with 0 even if something is lost', false)
    .addOption(createOutputOption(['text', 'json']))
    .addHelpText(
      'after',
      '\nSettings without a counterpart are left out and reported on stderr with their line: as "lost" if the\n' +
        'media carry less or something else without them, as "note" if they carry the same. The\n' +
        'configuration is written in both cases; with losses, the exit code is 9.\n' +
        '\nExample:\n  $ sealift import imageset imageset-config.yaml --output appliance-config.yaml',
    )
    .action((file: string, options: Options) => importFile(host, file, options));
}

async function importFile(host: CliHost, file: string, options: Options): Promise<void> {
  const imported = importImageSet(readConfigText(resolve(host.cwd, file)), file);
  const text = renderImportedConfig(imported.config, basename(file));
  const { output, outputFormat } = options;
  const texts = [{ path: output ?? '-', text }];
  const isPrinted = outputFormat === 'json' && output === undefined;
  const written = isPrinted ? [] : await writeTexts(host, texts, { ...options, inputs: [file] });
  if (outputFormat === 'json') {
    await writeResult(host, formatReadableJson(toJson(imported)));
  } else {
    for (const note of imported.notes) writeMessage(host, `${formatNote(note)}\n`);
    for (const path of written)
      await writeResult(
        host,
        `wrote ${toPrintable(path)}\nnext: put your pull secret beside it, ` +
          `then run: ${formatCommand('validate', { path })}\n`,
      );
  }
  if (!options.allowLosses) refuseLosses(file, imported.notes);
}

function refuseLosses(file: string, notes: readonly ImportNote[]): void {
  const losses = notes.filter(isLoss).length;
  if (losses === 0) return;
  const what = losses === 1 ? '1 setting' : `${losses} settings`;
  throw new LossError('import.losses', `${file} is imported without ${what}`, {
    hint: 'read the lines marked "lost", then give --allow-losses if the media do not need them',
  });
}

const toJson = ({ config, notes }: ImportedImageSet) => ({
  config,
  notes: notes.map((note) => ({ ...note, isLoss: isLoss(note) })),
});

const formatNote = (note: ImportNote): string =>
  formatProblem(
    isLoss(note) ? { ...note, severity: 'error', problem: `lost: ${note.problem}` } : note,
  );
