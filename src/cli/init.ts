import { dirname, join } from 'node:path';
import { Option, type Command } from 'commander';
import { toPrintable } from '../base/text/words.ts';
import { INSTALLATION_CONFIG_NAME } from '../sites/installation.ts';
import { INSTALLATION_TEMPLATE } from '../config/starter.ts';
import { PLACEHOLDER } from '../config/secrets.ts';
import { readSchemaText, SCHEMA } from '../shape/document.ts';
import { SITES_STARTER, type StarterFile } from '../config/starter.ts';
import { renderTemplate } from '../config/starter.ts';
import type { CliHost } from './host.ts';
import { createForceOption, writeResult, formatShellPath } from './terminal/output.ts';
import { writeTexts } from './write-texts.ts';

type Template = {
  /** The first is the one to go on with. */
  readonly files: readonly StarterFile[];
  /** What to do next with the first file. */
  readonly next: (first: string) => string;
};

/** The schema goes beside, so that no file names a path of this machine. */
const schemaFile = (path: (typeof SCHEMA)[keyof typeof SCHEMA]): StarterFile => ({
  path,
  text: readSchemaText(path),
});

const beginConfig = (files: readonly StarterFile[], command: string): Template => ({
  files,
  next: (first) =>
    `put your pull secret at ${join(dirname(first), 'pull-secret.json')}, ` +
    `then run: sealift ${command} ${formatShellPath(first)}`,
});

const beginAppliance = (name: 'ove' | 'minimal'): Template =>
  beginConfig(
    [{ path: 'appliance-config.yaml', text: renderTemplate(name) }, schemaFile(SCHEMA.appliance)],
    'validate',
  );

const TEMPLATES: Readonly<Record<string, () => Template>> = {
  ove: () => beginAppliance('ove'),
  minimal: () => beginAppliance('minimal'),
  ibi: () =>
    beginConfig(
      [
        { path: INSTALLATION_CONFIG_NAME, text: INSTALLATION_TEMPLATE },
        schemaFile(SCHEMA.installation),
      ],
      'build installation-iso --base-iso rhcos-live.x86_64.iso',
    ),
  sites: () => ({
    files: [...SITES_STARTER, schemaFile(SCHEMA.site)],
    next: nextOfSites,
  }),
};

/** The one line without which no site can be made. */
function nextOfSites(first: string): string {
  const template = join(dirname(first), 'template');
  const file = SITES_STARTER.find(({ text }) => text.includes(PLACEHOLDER));
  const line = (file?.text.split(PLACEHOLDER)[0] ?? '').split('\n').length;
  const shown = join(dirname(first), file?.path ?? '');
  return (
    `name your pull secret in ${shown}:${line}, ` +
    `then run: sealift config-iso validate ${formatShellPath(first)} --template ${formatShellPath(template)}`
  );
}

/** `sealift init [--template ove|minimal|ibi|sites] [DIR]`. */
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
