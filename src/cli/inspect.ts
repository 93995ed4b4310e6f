import { resolve } from 'node:path';
import type { Command } from 'commander';
import { formatSize } from '../base/format-size.ts';
import { inspectIso, type Inspection } from '../recipes/inspect-iso.ts';
import type { CliHost } from './host.ts';
import { createOutputOption, writeFormatted, type OutputFormat } from './output.ts';

/** `sealift inspect ISO`. */
export function registerInspect(program: Command, host: CliHost): void {
  program
    .command('inspect')
    .description('tell what an ISO is: volume, boot, kernel arguments, release')
    .argument('<iso>', 'ISO file, of any maker')
    .addOption(createOutputOption())
    .addHelpText(
      'after',
      '\nExample:\n  $ sealift inspect appliance.iso -o json | jq .coreos.kargs',
    )
    .action(async (iso: string, options: { outputFormat: OutputFormat }) => {
      const value = await inspectIso(resolve(host.cwd, iso));
      await writeFormatted(host, options.outputFormat, { value, formatText: formatInspection });
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
    ...formatCoreos(inspection.coreos),
    ...formatMedia(inspection.media),
    '',
  ].join('\n');
}

function formatCoreos(coreos: Inspection['coreos']): string[] {
  if (!coreos) return ['coreos         no live ISO of CoreOS'];
  const { embedArea } = coreos;
  const state = coreos.ignition ? 'a config is embedded' : 'no config is embedded';
  return [
    `embed area     ${formatSize(embedArea.size)} in ${embedArea.file}${embedArea.grown ? ', grown' : ''}: ${state}`,
    `bootstrap      ${coreos.bootstrapIgnition ? 'a config in an initrd of its own' : 'none'}`,
    `kernel args    ${coreos.kargs}`,
    ...(coreos.kargs === coreos.defaultKargs ? [] : [`  default      ${coreos.defaultKargs}`]),
  ];
}

function formatMedia(media: Inspection['media']): string[] {
  if (!media) return ['made by        not sealift'];
  const { release } = media;
  const images = Object.entries(media.images).map(([set, count]) => `${set} ${count}`);
  return [
    `made by        sealift: ${media.product}`,
    `release        ${release.version} ${release.architecture}`,
    `               ${release.reference}`,
    `images         ${images.join(', ')}`,
    `extents        ${media.extents}`,
  ];
}
