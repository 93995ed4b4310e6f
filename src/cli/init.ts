import { mkdir, writeFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Option, type Command } from 'commander';
import { DiskError, UsageError } from '../base/errors.ts';
import { isErrno } from '../base/errno.ts';
import { SCHEMA_PATH } from '../config/schema.ts';
import { renderTemplate, type TemplateName } from '../config/template.ts';
import type { CliHost } from './host.ts';
import { writeResult } from './output.ts';

/** `sealift init [--template ove|minimal] [DIR]`. */
export function registerInit(program: Command, host: CliHost): void {
  program
    .command('init')
    .description('write a commented appliance-config.yaml to start from')
    .argument('[dir]', 'directory to write it in', '.')
    .addOption(
      new Option('--template <name>', 'what to start from')
        .choices(['ove', 'minimal'])
        .default('minimal'),
    )
    .addHelpText('after', '\nExample:\n  $ sealift init --template ove site-a')
    .action(async (dir: string, options: { template: TemplateName }) => {
      const path = join(resolve(host.cwd, dir), 'appliance-config.yaml');
      await writeNew(path, renderTemplate(options.template, pathToFileURL(SCHEMA_PATH).href));
      const shown = relative(host.cwd, path);
      const secret = relative(host.cwd, join(path, '..', 'pull-secret.json'));
      await writeResult(
        host,
        `wrote ${shown}\nnext: put your pull secret at ${secret}, then run: sealift validate ${shown}\n`,
      );
    });
}

/** Mode 0600: people paste secrets into it. */
async function writeNew(path: string, text: string): Promise<void> {
  try {
    await mkdir(join(path, '..'), { recursive: true });
    await writeFile(path, text, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if (isErrno(error, 'EEXIST', 'ENOTDIR')) {
      const hint = 'choose another directory, or remove the file first';
      throw new UsageError('init.exists', `${path} cannot be written: something is there`, {
        hint,
      });
    }
    if (isErrno(error, 'EACCES', 'EROFS', 'ENOSPC', 'EPERM')) {
      throw new DiskError('disk.refused', `${path} cannot be written`, { cause: error });
    }
    throw error;
  }
}
