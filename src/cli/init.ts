import { mkdir, writeFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Option, type Command } from 'commander';
import { DiskError, UsageError } from '../base/errors.ts';
import { isErrno } from '../base/files.ts';
import { INSTALLATION_SCHEMA_PATH } from '../config/installation/fields.ts';
import { INSTALLATION_CONFIG_NAME } from '../config/installation/read-installation-config.ts';
import { renderInstallationTemplate } from '../config/installation/template.ts';
import { SCHEMA_PATH } from '../config/schema.ts';
import { renderTemplate } from '../config/template.ts';
import type { CliHost } from './host.ts';
import { writeResult } from './output.ts';

type Template = {
  readonly file: string;
  readonly text: string;
  /** The command that takes the file when it is filled in. */
  readonly next: string;
};

const toUrl = (path: string): string => pathToFileURL(path).href;

const APPLIANCE = { file: 'appliance-config.yaml', next: 'validate' };

const TEMPLATES: Readonly<Record<string, () => Template>> = {
  ove: () => ({ ...APPLIANCE, text: renderTemplate('ove', toUrl(SCHEMA_PATH)) }),
  minimal: () => ({ ...APPLIANCE, text: renderTemplate('minimal', toUrl(SCHEMA_PATH)) }),
  ibi: () => ({
    file: INSTALLATION_CONFIG_NAME,
    text: renderInstallationTemplate(toUrl(INSTALLATION_SCHEMA_PATH)),
    next: 'build installation-iso --base-iso rhcos-live.x86_64.iso',
  }),
};

/** `sealift init [--template ove|minimal|ibi] [DIR]`. */
export function registerInit(program: Command, host: CliHost): void {
  program
    .command('init')
    .description('write a commented configuration to start from')
    .argument('[dir]', 'directory to write it in', '.')
    .addOption(
      new Option('--template <name>', 'what to start from; ibi is for an installation ISO')
        .choices(Object.keys(TEMPLATES))
        .default('minimal'),
    )
    .addHelpText('after', '\nExample:\n  $ sealift init --template ove site-a')
    .action(async (dir: string, options: { readonly template: string }) => {
      const template = TEMPLATES[options.template]?.();
      if (!template) throw new Error(`commander let the template "${options.template}" through`);
      const path = join(resolve(host.cwd, dir), template.file);
      await writeNew(path, template.text);
      const shown = relative(host.cwd, path);
      const secret = relative(host.cwd, join(path, '..', 'pull-secret.json'));
      await writeResult(
        host,
        `wrote ${shown}\nnext: put your pull secret at ${secret}, then run: sealift ${template.next} ${shown}\n`,
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
