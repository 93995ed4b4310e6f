import { fileURLToPath } from 'node:url';
import { PassThrough } from 'node:stream';
import type { Command } from 'commander';
import { createProgram } from '../src/cli/program.ts';
import { renderSiteSchema } from './site-schema.ts';
import { renderTemplate } from '../src/config/starter.ts';
import { readSchema, SCHEMA, type SchemaNode } from '../src/shape/json-schema.ts';

/** The documents made from the program itself, by their path in the repository. */
export const DOCUMENTS: readonly { readonly path: string; readonly render: () => string }[] = [
  { path: pathOf('docs/configuration.md'), render: renderConfiguration },
  { path: pathOf('docs/installation-configuration.md'), render: renderInstallation },
  { path: pathOf('docs/cli.md'), render: renderCommandLine },
  { path: pathOf(SCHEMA.site), render: renderSiteSchema },
  { path: pathOf('appliance-config.yaml'), render: () => renderTemplate('minimal') },
];

function pathOf(name: string): string {
  return fileURLToPath(new URL(`../${name}`, import.meta.url));
}

function renderConfiguration(): string {
  const rows = listKeys(readSchema(), '');
  return [
    '# appliance-config.yaml',
    '',
    'Made from `schema/appliance-config.schema.json`; `npx tsx scripts/generate-docs.ts` writes it again.',
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
    'Made from `schema/image-based-installation-config.schema.json`; `npx tsx scripts/generate-docs.ts`',
    'writes it again. What it is for stands in [image-based.md](image-based.md).',
    '',
    'The keys, defaults and rules are those of openshift-install. Unknown keys are refused.',
    '`sealift init --template ibi` writes a file to start from. Relative paths of `file:PATH` start at',
    'the directory of the file.',
    '',
    ...formatTable(listKeys(readSchema(SCHEMA.installation), '')),
  ].join('\n');
}

const formatTable = (rows: readonly string[]): readonly string[] => [
  '| key | type | default | meaning |',
  '|---|---|---|---|',
  ...rows,
  '',
];

function listKeys(schema: SchemaNode, path: string): readonly string[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, child]) => {
    const isList = child.type === 'array';
    const place = `${path === '' ? name : `${path}.${name}`}${isList ? '[]' : ''}`;
    const row = `| \`${place}\` | ${describeType(child)} | ${describeDefault(child, schema, name)} | ${describeMeaning(child)} |`;
    return [row, ...listKeys(child.items ?? child, place)];
  });
}

function describeType({ type, items, enum: values, ...node }: SchemaNode): string {
  if (node.const !== undefined) return `\`${node.const}\``;
  if (values) return values.map((value) => `\`${value}\``).join(', ');
  if (type === 'array') return `list of ${items?.type === 'string' ? 'strings' : 'mappings'}`;
  const range =
    node.maximum === undefined
      ? ` >= ${node.minimum ?? 0}`
      : ` ${node.minimum ?? 0}-${node.maximum}`;
  if (type === 'integer') return `integer${range}`;
  return type === 'object' ? 'mapping' : String(type);
}

function describeDefault(node: SchemaNode, parent: SchemaNode, name: string): string {
  if (parent.required?.includes(name)) return '**required**';
  return node.default === undefined ? '' : `\`${JSON.stringify(node.default)}\``;
}

const describeMeaning = ({ description = '', items }: SchemaNode): string =>
  [description, ...(items?.type === 'string' ? [items.description ?? ''] : [])]
    .join(' ')
    .replaceAll('|', '\\|');

function renderCommandLine(): string {
  const program = createProgram({
    stdout: new PassThrough(),
    stderr: new PassThrough(),
    env: {},
    cwd: '/',
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
  ].join('\n');
}

function listCommands(
  command: Command,
  parents = '',
): readonly { readonly title: string; readonly help: string }[] {
  const title = `${parents} ${command.name()}`.trim();
  return [
    { title, help: renderHelp(command) },
    ...command.commands
      .filter((child) => child.name() !== 'help')
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
