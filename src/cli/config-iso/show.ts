import type { Command } from 'commander';
import { resolve } from 'node:path';
import { digestOf } from '../../base/digest.ts';
import { DifferenceError } from '../../base/errors.ts';
import { formatReadableJson } from '../../base/text/json.ts';
import { formatSize, toPrintable, toPrintableLines } from '../../base/text/words.ts';
import type { ConfigIso } from '../../sites/config-iso.ts';
import { DROP_IN_NAME } from '../../sites/state/generations.ts';
import { listGenerations, type ListedGeneration } from '../../stages/report/sites.ts';
import {
  showConfigIso,
  diffConfigIsos,
  type ConfigIsoDifference,
} from '../../stages/report/config-iso-diff.ts';
import type { CliHost } from '../host.ts';
import { createOutputOption, writeFormatted, type OutputFormat } from '../terminal/output.ts';
import { resolveGiven } from './request.ts';

/* This file owns the commands that read finished configuration ISOs: show, diff and generations. */

/** Registers `sealift config-iso show ISO`. */
export function registerConfigIsoShow(parent: Command, host: CliHost): void {
  parent
    .command('show')
    .description('print the contents of a configuration ISO, without its secrets')
    .argument('<iso>', 'configuration ISO of any maker')
    .addOption(createOutputOption())
    .addHelpText('after', '\nExample:\n  $ sealift config-iso show isos/alpha.iso')
    .action(async (iso: string, { outputFormat }: { outputFormat: OutputFormat }) => {
      const value = await showConfigIso(resolve(host.cwd, iso));
      await writeFormatted({ host, outputFormat }, value, (value) => formatIso(iso, value));
    });
}

function formatIso(iso: string, { volumeId, size, entries, manifest }: ConfigIso): string {
  return [
    `${iso}: label ${volumeId}, ${formatSize(size)}`,
    ...entries.map(({ path, size, digest }) =>
      digest === undefined
        ? `  ${toPrintable(path)}`
        : `  ${toPrintable(path)}  ${size} bytes, ${digest}`,
    ),
    'manifest',
    ...toPrintableLines(formatReadableJson(manifest))
      .trimEnd()
      .split('\n')
      .map((line) => `  ${line}`),
    '',
  ].join('\n');
}

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
      await writeFormatted({ host, outputFormat }, { differences }, ({ differences }) =>
        formatDifferences(differences),
      );
      if (differences.length === 0) return;
      throw new DifferenceError(
        'config-iso.differences',
        `${a} and ${b} have ${differences.length} differences`,
      );
    });
}

const formatDifferences = (differences: readonly ConfigIsoDifference[]): string =>
  differences.length === 0
    ? 'no differences\n'
    : differences.map((difference) => `${formatDifference(difference)}\n`).join('');

/** Formats a difference; equal texts are masked secrets that differ. */
function formatDifference({ kind, path, a, b }: ConfigIsoDifference): string {
  const head = `${kind} ${toPrintable(path)}:`;
  if (a === undefined) return `${head} only in B: ${indent(b ?? '')}`;
  if (b === undefined) return `${head} only in A: ${indent(a)}`;
  if (a === b) return `${head} a secret that changed`;
  return `${head}\n  A: ${indent(a)}\n  B: ${indent(b)}`;
}

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

/** Registers `sealift config-iso generations SITE`. */
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
      await writeFormatted({ host, outputFormat }, { site: name, generations }, () =>
        generations.map(formatGeneration).join('\n'),
      );
    });
}

function formatGeneration({ number, isInUse, identity }: ListedGeneration): string {
  const head = `generation ${number}${isInUse ? ', in use' : ''}`;
  if (!identity) return `${head}: damaged: its file is not as it was written\n`;
  const { madeAt, clusterName, baseDomain, clusterId, infraId, fingerprint } = identity;
  return [
    head,
    `  made         ${madeAt}`,
    `  cluster      ${toPrintable(`${clusterName}.${baseDomain}`)}`,
    `  cluster id   ${toPrintable(clusterId)}`,
    `  infra id     ${toPrintable(infraId)}`,
    `  fingerprint  ${fingerprint}`,
    '',
  ].join('\n');
}
