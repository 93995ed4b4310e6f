import type { Command } from 'commander';
import { maxOf } from '../base/lists.ts';
import { formatSize, toPrintable } from '../base/text/words.ts';
import type { ConfigNames } from '../config/load.ts';
import { prepareInstallationIso } from '../stages/installation-iso.ts';
import { prepareLiveIso } from '../stages/live-iso.ts';
import {
  summarizeInstallationPlan,
  type InstallationIsoPlan,
} from '../stages/report/installation-iso.ts';
import { summarizePlan, type LiveIsoPlan } from '../stages/report/live-iso.ts';
import { addOtherProducts, isInstallationNamed, formatRoom } from './build-installation-iso.ts';
import { registerUpgradePlan } from './build-upgrade-iso.ts';
import type { CliHost } from './host.ts';
import { formatImagePolicy, formatSignatures } from './report-lines.ts';
import { INSTALLATION_OUTPUT } from './request-installation.ts';
import {
  runInstallation,
  type InstallationCommandOptions,
  addLiveOptions,
  runLive,
  type LiveCommandOptions,
  findConfigArgument,
} from './run.ts';
import { writeFormatted } from './terminal/output.ts';

type Options = LiveCommandOptions & InstallationCommandOptions;

const OUTPUT = {
  flags: '--output <file>',
  description: `the ISO to write (default: "appliance.iso", for an installation ISO "${INSTALLATION_OUTPUT}")`,
};

/**
 * Registers `sealift plan [CONFIG]`: everything that is known before the first payload byte moves.
 */
export function registerPlan(program: Command, host: CliHost): void {
  // Options after the name of another product belong to that product.
  const command = addLiveOptions(program.enablePositionalOptions().command('plan'), OUTPUT);
  const refuseOthers = addOtherProducts(command);
  command
    .enablePositionalOptions()
    .helpCommand(false)
    .description('resolve everything and report the exact size, without fetching the payload')
    .usage('[options] [product] [config...]')
    .argument(
      '[args...]',
      'product (live-iso or installation-iso) and configuration files (appliance-config.yaml); later files override earlier ones',
    )
    .addHelpText('after', HELP)
    .action(async (args: readonly string[], options: Options) => {
      const config = await findConfigArgument(args, ['live-iso', 'installation-iso'], host);
      const isInstallation = isInstallationNamed(config, host);
      refuseOthers(isInstallation ? 'installation-iso' : 'live-iso');
      await (isInstallation ? planInstallation : planLive)(config, options, host);
    });
  registerUpgradePlan(command, host);
}

const HELP =
  '\nReads manifests, the release metadata, and what the layout depends on: the base ISO and the\n' +
  'installer, which stay in the cache for the build. Of a catalog image, it reads the layers that may\n' +
  'have the catalog: all of them, unless the history of the image shows what each layer has.\n' +
  '\nSOURCE_DATE_EPOCH, in seconds since 1970, is the time of the ISO and of all files on it; without\n' +
  'it, they have the time at which the release was made.\n' +
  '\nExamples:\n  $ sealift plan -o json | jq .isoSize\n' +
  '  $ sealift plan image-based-installation-config.yaml --base-iso rhcos-live.x86_64.iso';

async function planLive(config: ConfigNames, options: Options, host: CliHost): Promise<void> {
  const value = await runLive({ config, options, host }, async (request, tools) =>
    summarizePlan(request, await prepareLiveIso(request, tools)),
  );
  await writeFormatted({ host, ...options }, value, formatPlan);
}

async function planInstallation(
  config: ConfigNames,
  options: Options,
  host: CliHost,
): Promise<void> {
  const value = await runInstallation({ config, options, host }, async (request, tools) =>
    summarizeInstallationPlan(request, await prepareInstallationIso(request, tools)),
  );
  await writeFormatted({ host, ...options }, value, formatInstallationPlan);
}

function formatPlan(plan: LiveIsoPlan): string {
  const { release } = plan;
  return [
    `release        ${release.version} ${release.architecture}`,
    `               ${release.reference}`,
    ...formatSignatures(plan.signatures, 'signature      '),
    ...formatImagePolicy(plan.imagePolicy, 'image policy   '),
    `base ISO       ${formatSize(plan.base.size)} from ${plan.base.from}`,
    ...(plan.base.osStream === undefined ? [] : [`OS stream      ${plan.base.osStream}`]),
    `Ignition area  ${formatSize(plan.ignitionArea.used)} of ${formatSize(plan.ignitionArea.size)} used`,
    `images         ${plan.images}`,
    `unique blobs   ${plan.blobs}, ${formatSize(plan.payloadSize)}`,
    `shared         ${formatSize(plan.dedupeSaved)} that are not fetched twice`,
    `to fetch       ${formatSize(plan.bytesToFetch)}`,
    `already cached ${formatSize(plan.bytesReused)}`,
    `ISO size       ${formatSize(plan.isoSize)}, exactly ${plan.isoSize} bytes`,
    `free space     ${formatSize(plan.freeBytes)}, ${formatSize(plan.neededBytes)} needed`,
    ...(plan.registriesConf.length === 0
      ? []
      : [`mirrors from   ${plan.registriesConf.join(', ')}`]),
    `cluster        ${formatInternalRelease(plan)}`,
    ...(plan.extras.length === 0
      ? []
      : [`not named      ${plan.extras.length} images of the mirror: ${plan.extras.join(', ')}`]),
    `on the media   ${plan.secretsOnMedia.join(', ') || 'no secret'}`,
    '',
    ...formatParts(plan.parts),
    ...formatAdditions(plan.additions),
    ...plan.warnings.map((warning) => `warning: ${warning}`),
    ...plan.catalogs.flatMap(({ warnings }) => warnings.map((warning) => `warning: ${warning}`)),
    '',
    'largest blobs',
    ...plan.largestBlobs.map(
      ({ digest, size, users }) =>
        `${formatSize(size).padStart(10)}  ${digest.slice(0, 19)}  ${formatUsers(users)}`,
    ),
    '',
  ].join('\n');
}

/** Formats which registry the installed cluster uses. */
export function formatInternalRelease({
  internalReleaseImage: served,
}: Pick<LiveIsoPlan, 'internalReleaseImage'>): string {
  if (served === null) return 'no InternalReleaseImage: hosts use the registry of the media';
  return `InternalReleaseImage ${served.version}${served.isPreview ? ', a technology preview' : ''}`;
}

/**
 * Formats a table of the parts. Names may be of any length: a catalog is named by its reference.
 */
function formatParts(parts: LiveIsoPlan['parts']): readonly string[] {
  const title = 'part of the configuration';
  const width = maxOf([title, ...parts.map(({ part }) => `  ${part}`)].map(lengthOf));
  return [
    `${title.padEnd(width)}  images        size  saved if omitted`,
    ...parts.map(({ part, images, size, marginalSize }) =>
      [
        `  ${part}`.padEnd(width),
        String(images).padStart(8),
        formatSize(size).padStart(12),
        formatSize(marginalSize).padStart(18),
      ].join(''),
    ),
  ];
}

/** Formats the additions, by which a part of the configuration may have grown. */
function formatAdditions(additions: LiveIsoPlan['additions']): readonly string[] {
  if (additions.length === 0) return [];
  return [
    '',
    'added by dependencies',
    ...additions.flatMap(({ bundle, channel, images, size, marginalSize, ...added }) => [
      `  ${bundle} of package ${added.package}, channel ${channel}: ${images} images, ` +
        `${formatSize(size)}, ${formatSize(marginalSize)} saved if omitted`,
      `    required by ${added.requiredBy.bundle}: ${added.reason}`,
    ]),
    '',
  ];
}

const lengthOf = (text: string): number => text.length;

function formatUsers(users: readonly string[]): string {
  const shown = users.slice(0, 3).join(', ');
  return users.length > 3 ? `${shown} and ${users.length - 3} more` : shown;
}

/**
 * Formats the plan. Values of the configuration may hold anything, but must not control the
 * terminal.
 */
function formatInstallationPlan(plan: InstallationIsoPlan): string {
  const { embedded } = plan;
  return [
    `seed           ${toPrintable(plan.seedImage)}, version ${toPrintable(plan.seedVersion)}`,
    `disk           ${toPrintable(plan.installationDisk)}`,
    `base ISO       ${formatSize(plan.base.size)} from ${plan.base.from}`,
    `config         ${formatRoom(plan.embedArea)}`,
    ...(embedded
      ? [
          `images         ${embedded.images.length}, served on the ISO by ${embedded.registryImage}`,
          `unique blobs   ${embedded.blobs}, ${formatSize(embedded.payloadSize)}`,
          `to fetch       ${formatSize(plan.bytesToFetch)}`,
          `already cached ${formatSize(plan.bytesReused)}`,
        ]
      : []),
    `ISO size       ${formatSize(plan.isoSize)}, exactly ${plan.isoSize} bytes`,
    `free space     ${formatSize(plan.freeBytes)}, ${formatSize(plan.neededBytes)} needed`,
    ...formatSignatures(plan.signatures, 'release        '),
    ...plan.registriesConf.map((file) => `mirrors from   ${file}`),
    `on the media   ${plan.secretsOnMedia.join(', ')}`,
    ...plan.unverifiedTls.map(
      (host) =>
        `warning        TLS of ${host} is not verified, and passwords are sent to it without encryption`,
    ),
    ...plan.notes.map((note) => `note           ${toPrintable(note)}`),
    '',
  ].join('\n');
}
