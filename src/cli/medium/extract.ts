import { resolve } from 'node:path';
import type { Command } from 'commander';
import { formatSize } from '../../base/text/quantities.ts';
import { withoutUndefined } from '../../base/members.ts';
import { extractInstaller, type ExtractedInstaller } from '../../media/extract-installer.ts';
import type { CliHost } from '../host.ts';
import { ISO_ARGUMENT, useNamed } from './use-named.ts';
import {
  createForceOption,
  createOutputOption,
  writeFormatted,
  type OutputFormat,
  formatPath,
} from '../terminal/output.ts';

type ExtractOptions = {
  readonly out: string;
  readonly fips?: boolean;
  readonly force: boolean;
  readonly outputFormat: OutputFormat;
};

/** `sealift extract installer MEDIUM --out DIR`. */
export function registerExtract(program: Command, host: CliHost): void {
  program
    .command('extract')
    .description('programs that a medium carries')
    .addHelpText('after', '\nExample:\n  $ sealift extract installer appliance.iso --out .')
    .command('installer')
    .description('write the openshift-install that makes configuration images for a medium')
    .argument('<medium>', `live ${ISO_ARGUMENT}, made by sealift`)
    .requiredOption('--out <dir>', 'directory to write it to')
    .option('--fips', 'the installer for FIPS (default: as the medium boots)')
    .option('--no-fips', 'the usual installer')
    .addOption(createForceOption())
    .addOption(createOutputOption())
    .addHelpText(
      'after',
      '\nReads the registry of the medium: no other network, no pull secret. The file is openshift-install, or\n' +
        'openshift-install-fips, and names the release as the medium does. It runs on machines of the\n' +
        'architecture of the medium.\n' +
        '\nExample:\n  $ sealift extract installer appliance.iso --out .\n' +
        '  $ ./openshift-install agent create config-image --dir site',
    )
    .action(async (medium: string, { out, fips, force, outputFormat }: ExtractOptions) => {
      const directory = resolve(host.cwd, out);
      const value = await useNamed(medium, host, (medium) =>
        extractInstaller({ medium, directory, force, ...withoutUndefined({ fips }) }, host.signal),
      );
      await writeFormatted({ host, outputFormat }, value, (value) => formatInstaller(value, host));
    });
}

function formatInstaller(installer: ExtractedInstaller, { cwd }: CliHost): string {
  const { path, size, digest, releaseImage, version } = installer;
  return [
    `${formatPath(path, { cwd })} is complete: ${formatSize(size)}, OpenShift ${version}`,
    `  sha256    ${digest.slice('sha256:'.length)}`,
    `  release   ${releaseImage}`,
    '',
  ].join('\n');
}
