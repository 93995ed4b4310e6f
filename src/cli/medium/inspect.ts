import type { Command } from 'commander';
import { formatSize } from '../../base/text/words.ts';
import { inspectIso, type Inspection } from '../../media/inspect.ts';
import type { CliHost } from '../host.ts';
import { ISO_ARGUMENT, useNamed } from './use-named.ts';
import { createOutputOption, writeFormatted, type OutputFormat } from '../terminal/output.ts';

/** `sealift inspect ISO`. */
export function registerInspect(program: Command, host: CliHost): void {
  program
    .command('inspect')
    .description('tell what an ISO is: volume, boot, kernel arguments, release')
    .argument('<iso>', `${ISO_ARGUMENT}, of any maker`)
    .addOption(createOutputOption())
    .addHelpText(
      'after',
      '\nExample:\n  $ sealift inspect appliance.iso -o json | jq .coreos.kargs',
    )
    .action(async (iso: string, options: { outputFormat: OutputFormat }) => {
      const value = await useNamed(iso, host, inspectIso);
      await writeFormatted({ host, ...options }, value, formatInspection);
    });
}

function formatInspection(inspection: Inspection): string {
  const { volume, extensions, size } = inspection;
  const names = [extensions.rockRidge && 'Rock Ridge', extensions.joliet && 'Joliet'];
  return [
    `volume         ${volume.id}, ${formatSize(volume.size)} of ${formatSize(size)}`,
    `extensions     ${names.filter(Boolean).join(', ') || 'none'}`,
    ...inspection.bootEntries.map(
      ({ platform, loadSectors, offset }) =>
        `boot           ${platform}: ${loadSectors} sectors from byte ${offset}`,
    ),
    ...inspection.partitions.map(
      (partition) =>
        `partition      ${partition.table} ${partition.type}: ${formatSize(partition.size)} from byte ${partition.offset}`,
    ),
    ...formatProblem('partitions', inspection.partitionsProblem),
    ...formatCoreos(inspection),
    ...formatMedia(inspection),
    '',
  ].join('\n');
}

const formatProblem = (what: string, problem: string | undefined): readonly string[] =>
  problem === undefined ? [] : [`${what.padEnd(15)}damaged: ${problem}`];

function formatCoreos({ coreos, notCoreos }: Inspection): string[] {
  if (!coreos) return [`coreos         not a CoreOS live ISO: ${notCoreos ?? 'no sign of one'}`];
  const { embedArea, bootstrapProblem } = coreos;
  const bootstrap = coreos.bootstrapIgnition ? 'a config in an initrd of its own' : 'none';
  return [
    `embed area     ${formatSize(embedArea.used)} of ${formatSize(embedArea.size)} used in ` +
      `${embedArea.file}${embedArea.grown ? ', grown' : ''}: ${describeEmbedded(coreos)}`,
    ...(bootstrapProblem === undefined ? [`bootstrap      ${bootstrap}`] : []),
    ...formatProblem('bootstrap', bootstrapProblem),
    `kernel args    ${coreos.kargs}`,
    ...(coreos.kargs === coreos.defaultKargs ? [] : [`  default      ${coreos.defaultKargs}`]),
  ];
}

function describeEmbedded({ embedArea, ignition }: NonNullable<Inspection['coreos']>): string {
  if (embedArea.problem !== undefined) return `damaged: ${embedArea.problem}`;
  return ignition ? 'a config is embedded' : 'no config is embedded';
}

function formatMedia({ media, mediaProblem }: Inspection): readonly string[] {
  if (!media) {
    return mediaProblem === undefined
      ? ['made by        not sealift']
      : formatProblem('index', mediaProblem);
  }
  const { release, sizes } = media;
  return [
    `made by        sealift: ${media.product}`,
    `release        ${release.version} ${release.architecture}`,
    `               ${release.reference}`,
    ...(media.unsigned ?? []).map((version) => `signature      ${version} is unsigned`),
    ...Object.entries(media.images).map(
      ([set, count]) => `images         ${set}: ${count}, ${formatSize(sizes[set] ?? 0)}`,
    ),
    `payload        ${formatSize(media.payloadSize)}, what images share counted once`,
    ...(media.bundle
      ? [`bundle         ${media.bundle.name}, ${media.bundle.images} images by digest`]
      : formatProblem('bundle', media.bundleProblem)),
    `extents        ${media.extents}`,
    `index          ${media.indexDigest ?? 'has no digest of its own'}`,
  ];
}
