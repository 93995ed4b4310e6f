import type { Command } from 'commander';
import { readdir } from 'node:fs/promises';
import { WriteStream } from 'node:tty';
import { fileURLToPath } from 'node:url';
import { readFileIfPresent } from '../base/disk/files.ts';
import { UsageError } from '../base/errors.ts';
import { PACKAGE_ROOT } from '../base/program.ts';
import { formatCommand } from '../base/text/shell.ts';
import { listNearestNames, suggestName } from '../base/text/words.ts';
import type { CliHost } from './host.ts';
import { formatMarkdown } from './terminal/markdown.ts';
import {
  createOutputOption,
  writeContent,
  writeMessage,
  type OutputFormat,
} from './terminal/output.ts';
import { formatReport, say, summarize, writeReport, type Report } from './terminal/report.ts';

/* This file owns `help` and `explain`, which print the documents of the package, without network. */

export function registerHelp(program: Command, host: CliHost): void {
  program
    .helpCommand(false)
    .command('help')
    .description('print a guide, or the help of a command; without a topic, list the guides')
    .argument('[topic...]', 'name of a guide, or a command')
    .addHelpText('after', '\nExamples:\n  $ sealift help\n  $ sealift help install | less')
    .action(async (words: readonly string[]) => {
      if (words.length === 0) await writeContent(host, formatTopics(await listTopics()));
      else await printTopic(words, program, host);
    });
}

async function printTopic(
  words: readonly string[],
  program: Command,
  host: CliHost,
): Promise<void> {
  const command = findCommand(program, words);
  const topic = words.join(' ').replace(/^(?:docs\/)?([\w-]+)\.md$/, '$1');
  const topics = await listTopics();
  if (!topics.some(({ name }) => name === topic)) {
    if (command) {
      command.outputHelp();
      return;
    }
    throw new UsageError('usage.unknown-topic', `unknown guide or command "${topic}"`, {
      hint:
        suggestName(
          topic,
          topics.map(({ name }) => name),
        ) ?? 'list the guides with "sealift help", and the commands with "sealift --help"',
    });
  }
  await writeContent(host, drawFor(host, await readDocument(topic)));
  if (command)
    writeMessage(host, `note: options of the command: ${formatCommand(...words, '--help')}\n`);
}

/** Draws a document if stdout is a terminal that knows escapes; otherwise its text is unchanged. */
function drawFor({ stdout, env }: CliHost, text: string): string {
  const isDrawn = stdout instanceof WriteStream && env['TERM'] !== 'dumb';
  return isDrawn ? formatMarkdown(text, stdout.columns) : text;
}

const findCommand = (program: Command, words: readonly string[]): Command | undefined =>
  words.reduce<Command | undefined>(
    (parent, word) => parent?.commands.find((child) => child.name() === word),
    program,
  );

type Topic = { readonly name: string; readonly title: string };

const DOCS = new URL('docs/', PACKAGE_ROOT);

async function listTopics(): Promise<readonly Topic[]> {
  const files = (await readdir(DOCS)).filter((file) => file.endsWith('.md')).sort();
  const names = files.map((file) => file.slice(0, -'.md'.length));
  return Promise.all(
    names.map(async (name) => {
      const [, title = name] = /^# (.*)$/m.exec(await readDocument(name)) ?? [];
      return { name, title };
    }),
  );
}

async function readDocument(name: string): Promise<string> {
  const text = await readFileIfPresent(fileURLToPath(new URL(`${name}.md`, DOCS)));
  if (text === undefined) throw new Error(`the package lacks the guide "${name}"`);
  return text.toString('utf8');
}

function formatTopics(topics: readonly Topic[]): string {
  const summary = topics.map(({ name, title }) => [name, [title]] as const);
  return [
    formatReport({ title: [], body: summarize(summary) }),
    'A guide: sealift help TOPIC. A code of an error: sealift explain CODE.',
    'All commands: sealift --help. Options of a command: sealift COMMAND --help.',
    '',
  ].join('\n');
}

/** A row of `troubleshooting.md`. */
type CodeRow = {
  readonly code: string;
  /** The kind of things that the code is about. */
  readonly area: string;
  readonly exitCodes: readonly number[];
  readonly meaning: string;
  readonly whatToDo: string;
};

/** Registers `sealift explain CODE`; an unknown code is a usage error. */
export function registerExplain(program: Command, host: CliHost): void {
  program
    .command('explain')
    .description('explain the code of an error: its meaning, and what to do')
    .argument('<code>', 'code in the square brackets of a message')
    .addOption(createOutputOption())
    .addHelpText('after', '\nExample:\n  $ sealift explain registry.unauthorized')
    .action(async (given: string, { outputFormat }: { outputFormat: OutputFormat }) => {
      const rows = listCodes(await readDocument('troubleshooting'));
      const code = given.replace(/^\[(.*)\]$/, '$1');
      const row = rows.find((one) => one.code === code) ?? refuseCode(code, rows);
      const exits = listExitCodes(await readDocument('exit-codes'));
      await writeReport({ host, outputFormat }, row, (row) => describeCode(row, exits));
    });
}

function listCodes(text: string): readonly CodeRow[] {
  let area = '';
  return text.split('\n').flatMap((line) => {
    area = /^## [\w-]+: (.*)$/.exec(line)?.[1] ?? area;
    const [code = '', exits = '', meaning = '', whatToDo = ''] = splitCells(line);
    if (!/^`[a-z.0-9-]+`$/.test(code)) return [];
    return [
      {
        code: code.slice(1, -1),
        area,
        exitCodes: exits.split(', ').map(Number),
        meaning,
        whatToDo,
      },
    ];
  });
}

const listExitCodes = (text: string): ReadonlyMap<number, string> =>
  new Map(
    text.split('\n').flatMap((line) => {
      const [code = '', domain = '', meaning = ''] = splitCells(line);
      return /^\d+$/.test(code) ? [[Number(code), `${domain}: ${meaning}`] as const] : [];
    }),
  );

const splitCells = (line: string): readonly string[] =>
  line.startsWith('| ')
    ? line
        .slice(2, -2)
        .split(' | ')
        .map((cell) => cell.trim())
    : [];

function describeCode(
  { code, area, exitCodes, meaning, whatToDo }: CodeRow,
  exits: ReadonlyMap<number, string>,
): Report {
  const summary = [
    ['code', [code]],
    ['about', [area]],
    ['meaning', [meaning]],
    ['what to do', [whatToDo]],
    ...exitCodes.map((exit) => ['exit code', [`${exit}, ${exits.get(exit) ?? ''}`]] as const),
  ] as const;
  return { title: say`Error ${code}`, body: summarize(summary) };
}

/** Most codes that are named as near. */
const MOST_NEAR = 5;

function refuseCode(code: string, rows: readonly CodeRow[]): never {
  const near = listNearCodes(
    code,
    rows.map((row) => row.code),
  ).slice(0, MOST_NEAR);
  throw new UsageError('usage.unknown-code', `unknown error code "${code}"`, {
    hint:
      near.length === 0
        ? 'list all codes with "sealift help troubleshooting"'
        : `did you mean ${near.map((one) => `"${one}"`).join(', ')}?`,
  });
}

/** Codes that are spelled alike, or else those that have a part of the given one. */
function listNearCodes(code: string, known: readonly string[]): readonly string[] {
  const alike = listNearestNames(code, known);
  if (alike.length > 0) return alike;
  const parts = new Set(code.split('.'));
  return known.filter((one) => one.split('.').some((part) => parts.has(part)));
}
