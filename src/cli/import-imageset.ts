import { basename, resolve } from 'node:path';
import type { Command } from 'commander';
import { LossError } from '../base/errors.ts';
import { formatProblem } from '../base/errors.ts';
import { toPrintable } from '../base/text/words.ts';
import {
  importImageSet,
  renderImportedConfig,
  type ImportedImageSet,
} from '../config/imageset/import.ts';
import { readConfigText } from '../config/load.ts';
import { isLoss, type ImportNote } from '../config/imageset/parts.ts';
import type { CliHost } from './host.ts';
import {
  createForceOption,
  createOutputOption,
  writeFormatted,
  writeMessage,
  writeResult,
  type OutputFormat,
} from './terminal/output.ts';
import { writeTexts } from './write-texts.ts';

type Options = {
  readonly output?: string;
  readonly outputFormat: OutputFormat;
  readonly allowLosses: boolean;
  readonly force: boolean;
};

/** `sealift import imageset FILE [--output FILE]`: exit code 9 when something is lost. */
export function registerImportImageset(program: Command, host: CliHost): void {
  program
    .command('import')
    .description('configurations of other programs')
    .addHelpText('after', '\nExample:\n  $ sealift import imageset imageset-config.yaml')
    .command('imageset')
    .description('make a configuration of an ImageSetConfiguration of oc-mirror')
    .argument('<file>', 'ImageSetConfiguration v2alpha1')
    .option('--output <file>', 'write the configuration there, not to stdout')
    .addOption(createForceOption())
    .option('--allow-losses', 'end with 0 although something is lost', false)
    .addOption(createOutputOption())
    .addHelpText(
      'after',
      '\nWhat has no counterpart is left out and reported on stderr, with its line: as "lost" where the\n' +
        'media carry less or something else without it, as "note" where they carry the same. The\n' +
        'configuration is written either way; with losses the exit code is 9.\n' +
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
    await writeFormatted({ host, outputFormat }, toJson(imported), () => text);
  } else {
    for (const note of imported.notes) writeMessage(host, `${formatNote(note)}\n`);
    const next = 'next: put your pull secret beside it, then run: sealift validate';
    for (const path of written)
      await writeResult(host, `wrote ${toPrintable(path)}\n${next} ${toPrintable(path)}\n`);
  }
  if (!options.allowLosses) refuseLosses(file, imported.notes);
}

/** @throws LossError `import.losses` */
function refuseLosses(file: string, notes: readonly ImportNote[]): void {
  const losses = notes.filter(isLoss).length;
  if (losses === 0) return;
  const what = losses === 1 ? '1 setting' : `${losses} settings`;
  throw new LossError('import.losses', `${file} is imported without ${what}`, {
    hint: 'read the lines marked "lost", then give --allow-losses if the media may go without',
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
