import { fileURLToPath } from 'node:url';
import { PassThrough } from 'node:stream';
import type { Command, Option } from 'commander';
import { createRedaction } from '../src/base/text/redact.ts';
import { createProgram } from '../src/cli/program.ts';
import {
  isRelaxing,
  isRepeated,
  listVariables,
  type OptionOfCommand,
} from '../src/cli/variables.ts';
import { renderApplianceSchema, renderInstallationSchema, renderSiteSchema } from './schemas.ts';
import { groupBy } from '../src/base/lists.ts';
import { renderStarter } from '../src/config/starter.ts';
import { APPLIANCE } from '../src/config/appliance-shape.ts';
import { SCHEMA } from '../src/shape/configuration.ts';
import { coreOf, shapeOf, type RecordNode, type Shape } from '../src/shape/shape.ts';
import { INSTALLATION } from '../src/sites/installation-shape.ts';

/** The documents made from the program itself, by their path in the repository. */
export const DOCUMENTS: readonly { readonly path: string; readonly render: () => string }[] = [
  { path: pathOf('docs/configuration.md'), render: renderConfiguration },
  { path: pathOf('docs/installation-configuration.md'), render: renderInstallation },
  { path: pathOf('docs/cli.md'), render: renderCommandLine },
  { path: pathOf(SCHEMA.appliance), render: renderApplianceSchema },
  { path: pathOf(SCHEMA.installation), render: renderInstallationSchema },
  { path: pathOf(SCHEMA.site), render: renderSiteSchema },
  { path: pathOf('appliance-config.yaml'), render: () => renderStarter('minimal') },
];

function pathOf(name: string): string {
  return fileURLToPath(new URL(`../${name}`, import.meta.url));
}

function renderConfiguration(): string {
  const rows = listKeys(APPLIANCE, '');
  return [
    '# appliance-config.yaml',
    '',
    'Made from `src/config/appliance-shape.ts`; `npx tsx scripts/generate-docs.ts` writes it again.',
    '',
    'Keys are matched without regard to case. Unknown keys are refused. A key without a value counts',
    'as absent. `sealift init` writes a file to start from, `sealift validate` checks one.',
    '',
    '`pullSecret`, `sshKey`, `userCorePass` and `build.embed.pullSecret` are given inline, as',
    '`file:PATH` or as `env:NAME`. Relative paths start at the directory of the file.',
    '',
    'Several files are laid over each other, and `--set` over all: [nightlies.md](nightlies.md).',
    '',
    ...formatTable(rows),
  ].join('\n');
}

function renderInstallation(): string {
  return [
    '# image-based-installation-config.yaml',
    '',
    'Made from `src/sites/installation-shape.ts`; `npx tsx scripts/generate-docs.ts`',
    'writes it again. What it is for stands in [image-based.md](image-based.md).',
    '',
    'The keys, defaults and rules are those of openshift-install. Unknown keys are refused.',
    '`sealift init --template ibi` writes a file to start from. Relative paths of `file:PATH` start at',
    'the directory of the file.',
    '',
    ...formatTable(listKeys(INSTALLATION, '')),
  ].join('\n');
}

const formatTable = (rows: readonly string[]): readonly string[] => [
  '| key | type | default | meaning |',
  '|---|---|---|---|',
  ...rows,
  '',
];

function listKeys(shape: Shape, path: string): readonly string[] {
  const core = coreOf(shape);
  if (core.kind === 'list') return listKeys(core.of, path);
  if (core.kind !== 'record') return [];
  return Object.entries(core.members).flatMap(([name, member]) => {
    const child = shapeOf(member);
    const place = `${path === '' ? name : `${path}.${name}`}${coreOf(child).kind === 'list' ? '[]' : ''}`;
    const row = `| \`${place}\` | ${describeType(coreOf(child))} | ${describeDefault(member)} | ${describeMeaning(child)} |`;
    return [row, ...listKeys(child, place)];
  });
}

function describeType(shape: Shape): string {
  if (shape.kind === 'choice') return shape.words.map((word) => `\`${word}\``).join(', ');
  if (shape.kind === 'list') return `list of ${isText(shape.of) ? 'strings' : 'mappings'}`;
  if (shape.kind === 'integer') {
    const { least = 0, most } = shape;
    return `integer ${most === undefined ? `>= ${least}` : `${least}-${most}`}`;
  }
  if (shape.kind === 'flag') return 'boolean';
  return isText(shape) ? 'string' : 'mapping';
}

const isText = (shape: Shape): boolean => coreOf(shape).kind === 'text';

function describeDefault(member: RecordNode['members'][string]): string {
  if (member.kind !== 'optional') return '**required**';
  return member.value === undefined ? '' : `\`${JSON.stringify(member.value())}\``;
}

function describeMeaning(shape: Shape): string {
  const { description = '' } = shape;
  const core = coreOf(shape);
  const items = core.kind === 'list' && isText(core.of) ? (core.of.description ?? '') : '';
  return `${description}${core.kind === 'list' && isText(core.of) ? ` ${items}` : ''}`.replaceAll(
    '|',
    '\\|',
  );
}

function renderCommandLine(): string {
  const program = createProgram({
    stdout: new PassThrough(),
    stderr: new PassThrough(),
    env: {},
    cwd: '/',
    redaction: createRedaction(),
    isTTY: false,
    signal: new AbortController().signal,
    now: () => 0,
  });
  return [
    '# Command line',
    '',
    'Made from the help of the program; `npx tsx scripts/generate-docs.ts` writes it again. Exit codes',
    'are in [exit-codes.md](exit-codes.md).',
    '',
    ...listCommands(program).flatMap(({ title, help }) => [
      `## ${title}`,
      '',
      '```text',
      help,
      '```',
      '',
    ]),
    ...describeVariables(program),
  ].join('\n');
}

function describeVariables(program: Command): readonly string[] {
  return [
    '## Variables',
    '',
    'Every option has a variable of the environment: its name in capitals, with `_` for `-`, after',
    '`SEALIFT_`. It holds for all commands that have the option. The command line wins over the',
    'variable, the variable over the configuration, and the configuration over the default; other',
    'variables are in [environment.md](environment.md).',
    '',
    '- An option without a value is set by `true`, and by nothing else; `false` leaves it out.',
    '- An option that may be repeated takes one value a line. The command line replaces all of them.',
    '- An option whose value may be left out takes `true` for that.',
    '- A variable that is empty counts as not set. One that the command does not have is ignored, one',
    '  that no command has is warned of.',
    '- An option that excludes another one on the command line gives way to it; two variables that',
    '  exclude each other are refused.',
    '',
    'The variables that were used are named on stderr, in the log, and in an error about what was given.',
    'Those marked with ! relax a check, or name what a check trusts: each is warned of, even with',
    '`--quiet`, and reports repeat the warning as `environment`. Secrets are given by `file:PATH` or',
    '`env:NAME`, as on the command line; let NAME not begin with `SEALIFT_`.',
    '',
    '| variable | | value | commands |',
    '|---|---|---|---|',
    ...[...listVariables(program)]
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .flatMap(([name, options]) => formatVariable(name, options)),
    '',
  ];
}

/** One row for each form of the value. */
function formatVariable(name: string, options: readonly OptionOfCommand[]): readonly string[] {
  const forms = groupBy(options, ({ option }) => describeValue(option));
  return [...forms].map(([value, all]) => {
    const commands = all.map(({ command }) => command || 'all').join(', ');
    const mark = all.some(({ option }) => isRelaxing(option)) ? '!' : '';
    return `| \`${name}\` | ${mark} | ${value.replaceAll('|', '\\|')} | ${commands} |`;
  });
}

function describeValue(option: Option): string {
  const [, value] = /([<[].*)$/.exec(option.flags) ?? [];
  if (value === undefined) return 'true or false';
  const form = option.argChoices?.join(', ') ?? `\`${value.replaceAll(/[<>[\].]/g, '')}\``;
  const more = isRepeated(option) ? '; one a line' : '';
  return `${option.optional ? 'true, or ' : ''}${form}${more}`;
}

function listCommands(
  command: Command,
  parents = '',
): readonly { readonly title: string; readonly help: string }[] {
  const title = `${parents} ${command.name()}`.trim();
  return [
    { title, help: renderHelp(command) },
    ...command
      .createHelp()
      .visibleCommands(command)
      .filter((child) => command.commands.includes(child))
      .flatMap((child) => listCommands(child, title)),
  ];
}

/** With the examples, which commander adds only when it prints; the width does not depend on us. */
function renderHelp(command: Command): string {
  let text = '';
  command.configureOutput({ writeOut: (part) => (text += part), getOutHelpWidth: () => 96 });
  command.outputHelp();
  return text.trimEnd();
}
