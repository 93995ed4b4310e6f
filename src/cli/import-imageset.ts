import { writeFile } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Command } from 'commander';
import { DiskError, UsageError } from '../base/errors.ts';
import { isErrno } from '../base/errno.ts';
import {
  importImageSet,
  renderImportedConfig,
  type ImportedImageSet,
} from '../config/imageset/import-imageset.ts';
import { readConfigText } from '../config/load-config.ts';
import type { ConfigProblem } from '../config/document/problem.ts';
import { SCHEMA_PATH } from '../config/document/schema.ts';
import type { CliHost } from './host.ts';
import {
  createOutputOption,
  writeFormatted,
  writeResult,
  type OutputFormat,
} from './terminal/output.ts';

type Options = { readonly output?: string; readonly outputFormat: OutputFormat };

/** `sealift import imageset FILE [--output FILE]`. */
export function registerImportImageset(program: Command, host: CliHost): void {
  program
    .command('import')
    .description('configurations of other programs')
    .addHelpText('after', '\nExample:\n  $ sealift import imageset imageset-config.yaml')
    .command('imageset')
    .description('make a configuration of an ImageSetConfiguration of oc-mirror')
    .argument('<file>', 'ImageSetConfiguration v2alpha1')
    .option('--output <file>', 'write the configuration there, not to stdout')
    .addOption(createOutputOption())
    .addHelpText(
      'after',
      '\nWhat has no counterpart is told on stderr, with its line.\n' +
        '\nExample:\n  $ sealift import imageset imageset-config.yaml --output appliance-config.yaml',
    )
    .action((file: string, options: Options) => importFile(host, file, options));
}

async function importFile(host: CliHost, file: string, options: Options): Promise<void> {
  const imported = importImageSet(await readConfigText(resolve(host.cwd, file)), file);
  const text = renderImportedConfig(imported.config, {
    origin: basename(file),
    schema: pathToFileURL(SCHEMA_PATH).href,
  });
  const { output, outputFormat } = options;
  if (output !== undefined) await writeNew(resolve(host.cwd, output), text);
  if (outputFormat === 'json') {
    await writeFormatted(host, 'json', { value: toJson(imported), formatText: () => text });
    return;
  }
  for (const note of imported.notes) host.stderr.write(`${formatNote(note)}\n`);
  const next = 'next: put your pull secret beside it, then run: sealift validate';
  await writeResult(host, output === undefined ? text : `wrote ${output}\n${next} ${output}\n`);
}

const toJson = ({ config, notes }: ImportedImageSet) => ({
  config,
  notes: notes.map(({ file, line, column, path, problem, hint }) => ({
    ...{ file, line, column, path, problem },
    ...(hint !== undefined && { hint }),
  })),
});

function formatNote({ file, line, column, path, problem, hint }: ConfigProblem): string {
  const note = `${file}:${line}:${column}: ${path}: note: ${problem}`;
  return hint === undefined ? note : `${note}\n  hint: ${hint}`;
}

/** Mode 0600: people paste secrets into it. */
async function writeNew(path: string, text: string): Promise<void> {
  try {
    await writeFile(path, text, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if (isErrno(error, 'EEXIST')) {
      const hint = 'choose another file, or remove it first';
      throw new UsageError('import.exists', `${path} is there already`, { hint });
    }
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) {
      throw new UsageError('import.no-directory', `the directory of ${path} does not exist`);
    }
    if (isErrno(error, 'EACCES', 'EROFS', 'ENOSPC', 'EPERM', 'EISDIR')) {
      throw new DiskError('disk.refused', `${path} cannot be written`, { cause: error });
    }
    throw error;
  }
}
