import type { Command } from 'commander';
import { resolve } from 'node:path';
import { withoutUndefined } from '../../base/lists.ts';
import { formatSize } from '../../base/text/words.ts';
import type { IsoImage } from '../../iso/index.ts';
import { openGivenIso } from '../../media/delta/describe.ts';
import { extractInstaller, type ExtractedInstaller } from '../../media/extract-installer.ts';
import {
  extractMinimal,
  extractPxe,
  stemOf,
  type ExtractedFile,
  type ExtractOptions as CoreosOptions,
} from '../../media/extract.ts';
import type { CliHost } from '../host.ts';
import { readSignatureGate, type SignatureOptions } from '../ask-iso.ts';
import { createKeysOption } from '../options.ts';
import { runWithProgress, ISO_ARGUMENT, useNamed, useWatched } from '../named-media.ts';
import {
  createForceOption,
  createOutputOption,
  type OutputFormat,
  formatPath,
} from '../terminal/output.ts';
import { BEGIN_AGAIN } from '../terminal/progress.ts';
import { createLogFormatOption, type LogFormat } from '../terminal/progress.ts';
import { type Report, lineOf, listRows, say, writeReport, rowsOf } from '../terminal/report.ts';

type ExtractOptions = Pick<SignatureOptions, 'signatureKeys' | 'allowUnsigned'> & {
  readonly out: string;
  readonly fips?: boolean;
  readonly force: boolean;
  readonly outputFormat: OutputFormat;
};

/** Registers `sealift extract installer`, and `pxe`, `rootfs` and `minimal-iso` for live ISOs of CoreOS. */
export function registerExtract(program: Command, host: CliHost): void {
  const extract = program
    .command('extract')
    .description('extract what a medium carries: the installer, or files for network boot')
    .addHelpText('after', '\nExample:\n  $ sealift extract installer appliance.iso --out .');
  registerInstaller(extract, host);
  registerPart(extract, host, {
    name: 'pxe',
    description: 'write kernel, initramfs and root file system of a CoreOS live ISO',
    work: (iso, options) => extractPxe(iso, options),
  });
  registerPart(extract, host, {
    name: 'rootfs',
    description: 'write the root file system of a CoreOS live ISO',
    work: (iso, options) => extractPxe(iso, options, (name) => /^rootfs\.img$/i.test(name)),
  });
  registerPart(extract, host, {
    name: 'minimal-iso',
    description: 'write a CoreOS live ISO without its root file system',
    work: async (iso, { rootfsUrl, ...options }) => [await extractMinimal(iso, options, rootfsUrl)],
  }).option('--rootfs-url <url>', 'address from which the ISO fetches the root file system');
}

type PartOptions = Omit<ExtractOptions, 'fips'> & {
  readonly rootfsUrl?: string;
  readonly logFormat: LogFormat;
};

type PartCommand = {
  readonly name: string;
  readonly description: string;
  readonly work: (
    iso: IsoImage,
    options: CoreosOptions & { readonly rootfsUrl?: string },
  ) => Promise<readonly ExtractedFile[]>;
};

const registerPart = (
  extract: Command,
  host: CliHost,
  { name, description, work }: PartCommand,
): Command =>
  extract
    .command(name)
    .description(description)
    .argument('<iso>', `CoreOS live ${ISO_ARGUMENT}; not made by sealift`)
    .requiredOption('--out <dir>', 'directory to write to')
    .addOption(createForceOption())
    .addOption(createLogFormatOption())
    .addOption(createOutputOption())
    .addHelpText(
      'after',
      '\nAn ISO of sealift is refused: its registry is read from the mounted ISO.\n' +
        `\nExample:\n  $ sealift extract ${name} rhcos-live.iso --out .`,
    )
    .action(async (text: string, { out, logFormat, outputFormat, ...options }: PartOptions) => {
      const directory = resolve(host.cwd, out);
      const files = await runWithProgress(
        { stage: `extract ${name}`, logFormat, host, describeLeft: () => BEGIN_AGAIN },
        (watched) =>
          useWatched(text, { ...host, ...watched }, async (source) =>
            work(await openGivenIso(source), {
              ...watched,
              ...options,
              directory,
              stem: stemOf(source.path),
            }),
          ),
      );
      await writeReport({ host, outputFormat }, { files }, () => ({
        title: say`Files of ${text}`,
        body: files.map(({ path, size }) =>
          lineOf(say`${formatPath(path, host)} is complete: ${formatSize(size)}`),
        ),
      }));
    });

function registerInstaller(extract: Command, host: CliHost): void {
  extract
    .command('installer')
    .description('write the openshift-install that makes configuration images for a medium')
    .argument('<medium>', `live ${ISO_ARGUMENT}, made by sealift`)
    .requiredOption('--out <dir>', 'directory to write it to')
    .option('--fips', 'the installer for FIPS (default: as the medium boots)')
    .option('--no-fips', 'the installer without FIPS')
    .addOption(createKeysOption())
    .option('--allow-unsigned', 'accept a release without a signature')
    .addOption(createForceOption())
    .addOption(createOutputOption())
    .addHelpText(
      'after',
      '\nReads the registry of the medium: it needs no other network and no pull secret, and verifies the\n' +
        'signature of the release, which the medium carries. The file is\n' +
        'openshift-install, or openshift-install-fips, and refers to the release as the medium does. It runs on\n' +
        'machines of the architecture of the medium.\n' +
        '\nExample:\n  $ sealift extract installer appliance.iso --out .\n' +
        '  $ ./openshift-install agent create config-image --dir site',
    )
    .action(async (medium: string, options: ExtractOptions) => {
      const { out, fips, force, outputFormat } = options;
      const directory = resolve(host.cwd, out);
      const trust = readSignatureGate(options, host);
      const value = await useNamed(medium, host, (medium) =>
        extractInstaller(
          { medium, directory, force, trust, ...withoutUndefined({ fips }) },
          host.signal,
        ),
      );
      await writeReport({ host, outputFormat }, value, (value) => describeInstaller(value, host));
    });
}

function describeInstaller(installer: ExtractedInstaller, host: CliHost): Report {
  const { path, size, digest, releaseImage, version, signedBy } = installer;
  return {
    title: ['Installer of a medium'],
    body: [
      lineOf(say`${formatPath(path, host)} is complete: ${formatSize(size)}, OpenShift ${version}`),
      ...listRows({ indent: 2, width: 10 }, [
        ['sha256', say`${digest.slice('sha256:'.length)}`],
        ['release', say`${releaseImage}`],
        ...rowsOf('signed', signedBy === undefined ? [] : [say`by ${signedBy}`]),
      ]),
      ...(signedBy === undefined ? [lineOf(['unsigned'], 2)] : []),
    ],
  };
}
