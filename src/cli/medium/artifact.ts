import type { Command } from 'commander';
import { resolve, dirname, join } from 'node:path';
import { hexOf } from '../../base/digest.ts';
import { withLease } from '../../base/disk/lease.ts';
import { UsageError } from '../../base/errors.ts';
import { formatSize } from '../../base/text/words.ts';
import { isOurs } from '../../media/open.ts';
import { pullIso } from '../../media/pull.ts';
import { readIsoToPush } from '../../media/push.ts';
import { openReusable } from '../../media/seeds.ts';
import { MOST_LAYERS, pushArtifact } from '../../outputs/artifact.ts';
import { createMountsOf } from '../../outputs/artifact/mounts.ts';
import { claimFile } from '../../outputs/file/claim.ts';
import { parseTaggedAddress, parseArtifactAddress } from '../../outputs/place.ts';
import { formatReference, parseReference } from '../../registry/index.ts';
import type { CliHost } from '../host.ts';
import {
  addAccessOptions,
  useAccess,
  type AccessOptions,
  addTo,
  parseWhole,
  addSeedOptions,
  createWaitOption,
} from '../options.ts';
import { runWithProgress } from '../named-media.ts';
import { createSecretsOption, requireAllowed } from '../secrets-elsewhere.ts';
import {
  createOutputOption,
  type OutputFormat,
  createForceOption,
  formatPath,
} from '../terminal/output.ts';
import { createLogFormatOption, type LogFormat } from '../terminal/progress.ts';
import { say, writeReport, describeWhole } from '../terminal/report.ts';

/* This file owns `push` and `pull`, which move an ISO to and from a registry. */

type Options = AccessOptions & {
  readonly mountFrom: readonly string[];
  readonly maxLayers: number;
  readonly allowSecrets?: boolean;
  readonly outputFormat: OutputFormat;
  readonly logFormat: LogFormat;
};

export function registerPush(program: Command, host: CliHost): void {
  const push = program
    .command('push')
    .description('push an ISO as an OCI artifact; blobs that the registry has are not sent')
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
      'most layers in a manifest; more are split over several manifests under an index',
      parseWhole('usage.max-layers', [16, 20_000]),
      MOST_LAYERS,
    );
  addAccessOptions(push)
    .addOption(createSecretsOption())
    .addOption(createLogFormatOption())
    .addOption(createOutputOption())
    .addHelpText(
      'after',
      '\nThe ISO is read and verified before anything is sent. Its large files and the blobs of its images are\n' +
        'layers, so that the next ISO shares those that stay the same. Blobs are mounted from other\n' +
        'repositories of the registry: those named, and those that the images came from. After an\n' +
        'interruption, run it again to send the rest.\n' +
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
    readIsoToPush(resolve(host.cwd, iso), {
      ...watched,
      onSecrets(kinds) {
        requireAllowed(address, kinds, options);
      },
    }),
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
  await writeReport({ host, ...options }, { reference: name, size, iso: sha256, ...report }, () =>
    describeWhole(name, size, [
      ['digest', say`${report.digest}`],
      [
        'layers',
        say`${report.layers} in ${[report.manifests === 1 ? 'one manifest' : `${report.manifests} manifests`]}`,
      ],
      [
        'bytes',
        say`${formatSize(report.sent)} sent, ${formatSize(report.mounted)} mounted, ${formatSize(report.present)} already there`,
      ],
    ]),
  );
}

function parseNeighbour(text: string, registry: string): string {
  const reference = parseReference(text);
  if (reference.registry === registry) return reference.repository;
  throw new UsageError('usage.mount-from', `--mount-from is "${text}", on another registry`, {
    expected: `a repository of ${registry}`,
    found: reference.registry,
  });
}

type PullOptions = AccessOptions & {
  readonly output: string;
  /** Seeds; false: the replaced ISO is not used either. */
  readonly seed?: readonly string[] | boolean;
  readonly force: boolean;
  readonly wait: boolean;
  readonly outputFormat: OutputFormat;
  readonly logFormat: LogFormat;
};

export function registerPull(program: Command, host: CliHost): void {
  const pull = program
    .command('pull')
    .description('write the ISO that "sealift push" pushed')
    .argument('<address>', 'oci://REGISTRY/REPOSITORY, with :TAG or @DIGEST')
    .requiredOption('--output <file>', 'the ISO to write')
    .addOption(createForceOption())
    .addOption(createWaitOption());
  addAccessOptions(addSeedOptions(pull))
    .addOption(createLogFormatOption())
    .addOption(createOutputOption())
    .addHelpText(
      'after',
      '\nEvery byte is verified, and the ISO is the one that was pushed. After an interruption, run it again\n' +
        'to continue. Blobs of the ISO that is replaced, and of seeds, are not fetched.\n' +
        '\nExample:\n  $ sealift pull oci://registry.example.com/media/appliance:4.21.3 --output appliance.iso',
    )
    .action((address: string, options: PullOptions) => pullTo(address, options, host));
}

async function pullTo(address: string, options: PullOptions, host: CliHost): Promise<void> {
  const reference = parseArtifactAddress(address);
  const output = resolve(host.cwd, options.output);
  const { force, logFormat, seed } = options;
  const paths = Array.isArray(seed) ? seed.map((path: string) => resolve(host.cwd, path)) : [];
  await claimFile(
    { output, force, inputs: paths, workDir: join(dirname(output), '.sealift') },
    isOurs,
  );
  const report = await runWithProgress({ stage: 'pull ISO', logFormat, host }, (watched) =>
    withLease(`${output}.lock`, { ...watched, wait: options.wait }, async () => {
      const { seeds, close } = await openReusable({
        seeds: paths,
        replaced: output,
        takesBlobs: seed !== false,
        keepsPlaces: false,
        trustsRecords: true,
      });
      return useAccess(options, { ...host, ...watched }, (client) =>
        pullIso(reference, { ...watched, client, output, seeds }),
      ).finally(close);
    }),
  );
  const { size, digest, fetched, copied, reused } = report;
  await writeReport({ host, ...options }, { output, ...report }, () =>
    describeWhole(formatPath(output, host), size, [
      ['sha256', say`${hexOf(digest)}`],
      [
        'bytes',
        say`${formatSize(fetched)} fetched, ${formatSize(copied)} from seeds, ${formatSize(reused)} already there`,
      ],
    ]),
  );
}
