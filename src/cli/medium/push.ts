import { resolve } from 'node:path';
import type { Command } from 'commander';
import { UsageError } from '../../base/errors.ts';
import { formatSize } from '../../base/text/words.ts';
import { MOST_LAYERS, pushArtifact, type PushReport } from '../../outputs/artifact.ts';
import { createMountsOf, readIsoToPush } from '../../media/push.ts';
import { formatReference, parseReference } from '../../registry/reference.ts';
import { addAccessOptions, useAccess, type AccessOptions } from '../access-options.ts';
import { addTo, parseWhole } from '../common-options.ts';
import type { CliHost } from '../host.ts';
import { createOutputOption, writeFormatted, type OutputFormat } from '../terminal/output.ts';
import { createLogFormatOption, type LogFormat } from '../terminal/progress.ts';
import { runWithProgress } from '../terminal/run-with-progress.ts';
import { parseTaggedAddress } from '../../outputs/output.ts';

type Options = AccessOptions & {
  readonly mountFrom: readonly string[];
  readonly maxLayers: number;
  readonly outputFormat: OutputFormat;
  readonly logFormat: LogFormat;
};

/** `sealift push ISO oci://REGISTRY/REPOSITORY:TAG`. */
export function registerPush(program: Command, host: CliHost): void {
  const push = program
    .command('push')
    .description('push an ISO as an OCI artifact, without what the registry has')
    .argument('<iso>', 'ISO that sealift made')
    .argument('<address>', 'oci://REGISTRY/REPOSITORY:TAG')
    .option(
      '--mount-from <repository>',
      'REGISTRY/REPOSITORY that has the images, on the same registry; may be repeated',
      addTo,
      [],
    )
    .option(
      '--max-layers <n>',
      'layers of one manifest, from which on there are several under an index',
      parseWhole('usage.max-layers', [16, 20_000]),
      MOST_LAYERS,
    );
  addAccessOptions(push)
    .addOption(createLogFormatOption())
    .addOption(createOutputOption())
    .addHelpText(
      'after',
      '\nThe ISO is read and verified before anything is sent. Its large files and the blobs of its images are\n' +
        'layers, so that the next ISO shares what stays. Blobs that other repositories of the registry have are\n' +
        'mounted: those named, and those that the images came from. Run again after an interruption, it sends\n' +
        'the rest.\n' +
        '\nExample:\n  $ sealift push appliance.iso oci://registry.example.com/media/appliance:4.21.3',
    )
    .action((iso: string, address: string, options: Options) =>
      pushIso({ iso, address }, options, host),
    );
}

async function pushIso(
  { iso, address }: { readonly iso: string; readonly address: string },
  options: Options,
  host: CliHost,
): Promise<void> {
  const reference = parseTaggedAddress(address);
  const mountFrom = options.mountFrom.map((text) => parseNeighbour(text, reference.registry));
  const { logFormat } = options;
  const read = await runWithProgress({ stage: 'read ISO', logFormat, host }, (watched) =>
    readIsoToPush(resolve(host.cwd, iso), watched),
  );
  const report = await runWithProgress({ stage: 'push ISO', logFormat, host }, (watched) =>
    useAccess(options, { ...host, ...watched }, (client) =>
      pushArtifact(read.artifact, {
        ...watched,
        client,
        reference,
        mostLayers: options.maxLayers,
        open: read.open,
        mountsOf: createMountsOf(read, { client, registry: reference.registry, mountFrom }),
      }),
    ),
  );
  const { size, digest: sha256 } = read.artifact;
  const name = formatReference(reference);
  await writeFormatted(
    { host, ...options },
    { reference: name, size, iso: sha256, ...report },
    () => format(name, report, size),
  );
}

/** @throws UsageError `usage.mount-from` */
function parseNeighbour(text: string, registry: string): string {
  const reference = parseReference(text);
  if (reference.registry === registry) return reference.repository;
  throw new UsageError('usage.mount-from', `--mount-from is "${text}", on another registry`, {
    expected: `a repository of ${registry}`,
    found: reference.registry,
  });
}

const format = (name: string, report: PushReport, size: number): string =>
  [
    `${name} is complete: ${formatSize(size)}`,
    `  digest    ${report.digest}`,
    `  layers    ${report.layers} in ${report.manifests === 1 ? 'one manifest' : `${report.manifests} manifests`}`,
    `  bytes     ${formatSize(report.sent)} sent, ${formatSize(report.mounted)} mounted, ${formatSize(report.present)} there before`,
    '',
  ].join('\n');
