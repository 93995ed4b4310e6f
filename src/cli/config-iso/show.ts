import type { Command } from 'commander';
import { resolve } from 'node:path';
import { digestOf } from '../../base/digest.ts';
import { DifferenceError } from '../../base/errors.ts';
import { formatReadableJson } from '../../base/text/json.ts';
import { formatSize, toPrintableLines } from '../../base/text/words.ts';
import type { ConfigIso } from '../../sites/config-iso.ts';
import { DROP_IN_NAME } from '../../sites/state/generations.ts';
import { listGenerations, type ListedGeneration } from '../../stages/report/sites.ts';
import {
  showConfigIso,
  diffConfigIsos,
  type ConfigIsoDifference,
} from '../../stages/report/config-iso-diff.ts';
import type { CliHost } from '../host.ts';
import { createOutputOption, type OutputFormat } from '../terminal/output.ts';
import { resolveGiven } from './request.ts';
import {
  type Phrase,
  type Report,
  type ReportBlock,
  gap,
  lineOf,
  listRows,
  quoteText,
  say,
  writeReport,
} from '../terminal/report.ts';

/* This file owns the commands that read finished configuration ISOs: show, diff and generations. */

export function registerConfigIsoShow(parent: Command, host: CliHost): void {
  parent
    .command('show')
    .description('print the contents of a configuration ISO, without its secrets')
    .argument('<iso>', 'configuration ISO of any maker')
    .addOption(createOutputOption())
    .addHelpText('after', '\nExample:\n  $ sealift config-iso show isos/alpha.iso')
    .action(async (iso: string, { outputFormat }: { outputFormat: OutputFormat }) => {
      const value = await showConfigIso(resolve(host.cwd, iso));
      await writeReport({ host, outputFormat }, value, (value) => describeConfigIso(iso, value));
    });
}

export const describeConfigIso = (
  iso: string,
  { volumeId, size, entries, manifest }: ConfigIso,
): Report => ({
  title: say`Contents of ${iso}`,
  body: [
    lineOf(say`${iso}: label ${volumeId}, ${formatSize(size)}`),
    ...entries.map(({ path, size, digest }) =>
      lineOf(digest === undefined ? say`${path}` : say`${path}  ${size} bytes, ${digest}`, 2),
    ),
    { type: 'title', title: 'manifest' },
    ...quoteText(formatReadableJson(manifest).trimEnd().replaceAll(/^/gm, '  ')),
  ],
});

/** Registers `sealift config-iso diff A B`: exit code 8 when they differ. */
export function registerConfigIsoDiff(parent: Command, host: CliHost): void {
  parent
    .command('diff')
    .description('compare two configuration ISOs, without printing secrets')
    .argument('<a>', 'configuration ISO')
    .argument('<b>', 'configuration ISO')
    .addOption(createOutputOption())
    .addHelpText('after', '\nExample:\n  $ sealift config-iso diff old/alpha.iso new/alpha.iso')
    .action(async (a: string, b: string, { outputFormat }: { outputFormat: OutputFormat }) => {
      const differences = await diffConfigIsos(resolve(host.cwd, a), resolve(host.cwd, b));
      await writeReport({ host, outputFormat }, { differences }, ({ differences }) => ({
        title: say`What changed from ${a} to ${b}`,
        body:
          differences.length === 0
            ? [lineOf(['no differences'])]
            : differences.flatMap(listDifference),
      }));
      if (differences.length === 0) return;
      throw new DifferenceError(
        'config-iso.differences',
        `${a} and ${b} have ${differences.length} differences`,
      );
    });
}

/** Describes a difference; equal texts are masked secrets that differ. */
function listDifference({ kind, path, a, b }: ConfigIsoDifference): readonly ReportBlock[] {
  const head = say`${[kind]} ${path}:`;
  if (a === undefined) return onOneSide(head, 'B', b ?? '');
  if (b === undefined) return onOneSide(head, 'A', a);
  if (a === b) return [lineOf([...head, ' a secret that changed'])];
  return [lineOf(head), ...quoteText(`  A: ${indent(a)}\n  B: ${indent(b)}`)];
}

const onOneSide = (head: Phrase, side: string, text: string): readonly ReportBlock[] => {
  const [first = '', ...more] = indent(text).split('\n');
  return [lineOf(say`${head} only in ${[side]}: ${first}`), ...quoteText(more.join('\n'))];
};

/** Indents a text. PEM is replaced by its digest: people do not compare certificates by eye. */
const indent = (text: string): string =>
  text.startsWith('-----BEGIN ')
    ? `PEM of ${digestOf(text)}`
    : toPrintableLines(text.trimEnd()).replaceAll('\n', '\n     ');

type GenerationsOptions = {
  readonly out: string;
  readonly dropIn: boolean;
  readonly outputFormat: OutputFormat;
};

export function registerConfigIsoGenerations(parent: Command, host: CliHost): void {
  parent
    .command('generations')
    .description('list the present and earlier identities of a site, without their secrets')
    .argument('<site>', 'name of a site; with --drop-in, directory of one site')
    .option('--out <dir>', 'where the site was built', 'config-isos')
    .option('--drop-in', 'SITE is the directory of one site that was built with --drop-in', false)
    .addOption(createOutputOption())
    .addHelpText(
      'after',
      '\nEach generation of keys, ids and password stays until a person removes its file. The one in use\n' +
        'is used again as long as it fits the inputs; "config-iso build --use-generation N" chooses another.\n' +
        '\nExample:\n  $ sealift config-iso generations alpha --out ./isos',
    )
    .action(async (site: string, { out, dropIn, outputFormat }: GenerationsOptions) => {
      const directory = resolveGiven(host.cwd, dropIn ? site : out, dropIn ? 'SITE' : '--out');
      const name = dropIn ? DROP_IN_NAME : site;
      const generations = await listGenerations(directory, name);
      await writeReport({ host, outputFormat }, { site: name, generations }, () => ({
        title: say`Identities of ${name}`,
        body: generations.flatMap((generation, index) => [
          ...(index === 0 ? [] : [gap]),
          ...listGeneration(generation),
        ]),
      }));
    });
}

function listGeneration({ number, isInUse, identity }: ListedGeneration): readonly ReportBlock[] {
  const head = say`generation ${number}${[isInUse ? ', in use' : '']}`;
  if (!identity) return [lineOf([...head, ': damaged: its file is not as it was written'])];
  const { madeAt, clusterName, baseDomain, clusterId, infraId, fingerprint } = identity;
  return [
    lineOf(head),
    ...listRows({ indent: 2, width: 13 }, [
      ['made', say`${madeAt}`],
      ['cluster', say`${`${clusterName}.${baseDomain}`}`],
      ['cluster id', say`${clusterId}`],
      ['infra id', say`${infraId}`],
      ['fingerprint', say`${fingerprint}`],
    ]),
  ];
}
