import type { Command } from 'commander';
import { relative, resolve } from 'node:path';
import { DifferenceError } from '../base/errors.ts';
import { formatCommand } from '../base/text/shell.ts';
import { formatSize } from '../base/text/words.ts';
import type { ConfigNames } from '../config/load.ts';
import type { LayoutDifference } from '../media/compare-layout.ts';
import { useMedium } from '../media/open.ts';
import { isUpgradeLabel } from '../stages/4-lay-out/lay-out-upgrade-iso.ts';
import {
  lockIso,
  type IsoRequest,
  type PrepareIso,
  reproduceIso,
  type Reproduction,
} from '../stages/build.ts';
import { prepareInstallationIso } from '../stages/installation-iso.ts';
import { prepareLiveIso } from '../stages/live-iso.ts';
import { type Lock, secretsPathOf } from '../stages/resolved/record.ts';
import type { BuildTools } from '../stages/tools.ts';
import { prepareUpgradeIso } from '../stages/upgrade-iso.ts';
import {
  addInstallationIsoOptions,
  addOtherProducts,
  isInstallationNamed,
} from './build-installation-iso.ts';
import {
  addUpgradeOptions,
  runUpgrade,
  type UpgradeCommandOptions,
  addFromOption,
} from './build-upgrade-iso.ts';
import type { CliHost } from './host.ts';
import { addLockFileOptions, refuseLockInFront, createLockKeyOption } from './lock-options.ts';
import {
  addLiveOptions,
  findConfigArgument,
  LIVE_ARGUMENTS,
  runInstallation,
  runLive,
  type InstallationCommandOptions,
  type LiveCommandOptions,
  type RecipeOptions,
  type RecipeCall,
} from './run.ts';
import { writeFormatted, formatPath } from './terminal/output.ts';

/* This file owns `lock`, and `reproduce`, which compares a build with an ISO. */

const OUTPUT = {
  flags: '--output <file>',
  description: 'the ISO that is built later (default: "appliance.iso")',
};

/** Registers `sealift lock [live-iso] [CONFIG...]`, and the other products as commands below it. */
export function registerLock(program: Command, host: CliHost): void {
  // Options after the name of another product belong to that product.
  const live = program.enablePositionalOptions().command('lock');
  const lock = addLockFileOptions(addLiveOptions(live, OUTPUT))
    .enablePositionalOptions()
    .helpCommand(false)
    .description('resolve everything and write it to the lock, by digest, without building')
    .usage('[options] [product] [config...]')
    .argument(...LIVE_ARGUMENTS)
    .addHelpText('after', HELP)
    .action(async (args: readonly string[], options: LiveCommandOptions) => {
      const config = await findConfigArgument(args, ['live-iso'], host);
      const call = { config, host, options: { ...options, lock: true } };
      await report(await runLive(call, locking(prepareLiveIso)), call);
    });
  lock.hook('preSubcommand', refuseLockInFront);
  registerOthers(lock, host);
}

const HELP =
  '\nThe lock has release, catalogs, tags, images, base ISO, installer and signatures by digest, and the\n' +
  'places of the bytes on the ISO: commit it next to the configuration. Values drawn at random go to\n' +
  'sealift.lock.secrets (mode 0600): never commit that file.\n' +
  '\nProducts: live-iso (default), and those listed as commands.\n' +
  '\nExample:\n  $ sealift lock appliance-config.yaml && sealift build --locked';

function registerOthers(lock: Command, host: CliHost): void {
  addLockFileOptions(addUpgradeOptions(lock.command('upgrade-iso')))
    .description('the same for an upgrade ISO, with its path in the update graph')
    .addHelpText(
      'after',
      '\nExample:\n  $ sealift lock upgrade-iso --from 4.20.6 && sealift build upgrade-iso --locked',
    )
    .action(async (config: ConfigNames, options: UpgradeCommandOptions) => {
      const call = { config, host, options: { ...options, lock: true } };
      await report(await runUpgrade(call, locking(prepareUpgradeIso)), call);
    });
  addLockFileOptions(addInstallationIsoOptions(lock.command('installation-iso')))
    .description('the same for an installation ISO')
    .addHelpText(
      'after',
      '\nExample:\n  $ sealift lock installation-iso --base-iso rhcos-live.x86_64.iso',
    )
    .action(async (config: string, options: InstallationCommandOptions) => {
      const call = { config: [config] as const, host, options: { ...options, lock: true } };
      const written = await runInstallation(call, locking(prepareInstallationIso));
      await report(written, call);
    });
}

type Written = { readonly path: string; readonly lock: Lock };

/** Locks a request of any product. */
const locking =
  <Request extends IsoRequest>(prepare: PrepareIso<Request>) =>
  async (request: Request, tools: BuildTools): Promise<Written> => {
    const lock = await lockIso(request, tools, prepare);
    return { path: request.lock?.path ?? '', lock };
  };

async function report(
  written: Written,
  { options, host }: { readonly options: RecipeOptions; readonly host: CliHost },
): Promise<void> {
  const result = describe(written, relative(host.cwd, written.path));
  await writeFormatted({ host, ...options }, result, () => formatResult(result, nextOf(host)));
}

/** The build from the lock: the command line of this run, as a build. */
function nextOf({ args = ['lock'] }: CliHost): string {
  const at = args.indexOf('lock');
  return formatCommand(...args.slice(0, at), 'build', ...args.slice(at + 1), '--locked');
}

const describe = ({ lock }: Written, file: string) => {
  const { release, images, catalogs, tags, drawn } = lock;
  return {
    file,
    ...(Object.keys(drawn).length > 0 && { secrets: secretsPathOf(file) }),
    ...(release && { release }),
    images: images.length,
    catalogs: Object.keys(catalogs).length,
    tags: Object.keys(tags).length,
  };
};

const formatResult = (
  { file, secrets, release, ...counts }: ReturnType<typeof describe>,
  next: string,
): string =>
  [
    `${file} has ${release ? `release ${release.version} ${release.architecture}, ` : ''}` +
      `${counts.images} images, ${counts.catalogs} catalogs, ${counts.tags} tags`,
    ...(secrets === undefined
      ? []
      : [`${secrets} has the values drawn at random: they are secret, never commit them`]),
    '',
    `next: ${next}`,
    '',
  ].join('\n');

const CONFIG = {
  flags: '--config <file...>',
  description:
    'configuration files; later ones override earlier ones (default: "appliance-config.yaml")',
};

type ReproduceOptions = Omit<
  LiveCommandOptions & UpgradeCommandOptions & InstallationCommandOptions,
  'lock'
> & {
  readonly config?: ConfigNames;
  readonly lock?: string;
};

/** Registers `sealift reproduce ISO`: exit code 8 if a build would make other bytes. */
export function registerReproduce(program: Command, host: CliHost): void {
  const command = addLiveOptions(program.command('reproduce'), CONFIG)
    .description('compare an ISO with what a build makes from the same configuration and lock')
    .option('--lock <file>', 'the lock that the ISO was built with')
    .addOption(createLockKeyOption())
    .argument('<iso>', 'ISO made by sealift');
  const refuseOthers = addOtherProducts(command, addFromOption);
  command
    .addHelpText('after', REPRODUCE_HELP)
    .action(async (iso: string, options: ReproduceOptions) => {
      const { config = ['appliance-config.yaml'], lock, ...given } = options;
      const output = resolve(host.cwd, iso);
      const product = await findProduct(output, config, host);
      refuseOthers(product);
      const locking = lock === undefined ? {} : { locked: true, lockFile: lock };
      const call = { config, options: { ...given, output, compares: true, ...locking }, host };
      const result = await REPRODUCE[product](call);
      const name = formatPath(output, host);
      await writeFormatted({ host, ...options }, result, (result) => format(name, result));
      if (result.result !== 'different') return;
      throw new DifferenceError('reproduce.differences', `${name} is not what a build makes`, {
        hint: 'give the configuration, lock, base ISO and environment that it was built with',
      });
    });
}

const REPRODUCE_HELP =
  '\nPlans every byte again and reads the ISO once; nothing is written, and no blob is fetched. Without\n' +
  'the lock, or without the sealift.lock.secrets next to it, the values that the installer draws at\n' +
  'random are not known: then base, blobs and directories are compared. Give the options of the build;\n' +
  '--from of an upgrade ISO is also in the lock.\n' +
  '\nExample:\n  $ sealift reproduce ove.iso --config appliance-config.yaml --lock sealift.lock.json';

type ReproduceCall = RecipeCall<
  LiveCommandOptions & UpgradeCommandOptions & InstallationCommandOptions
>;

const REPRODUCE = {
  'live-iso': (call: ReproduceCall) =>
    runLive(call, (...given) => reproduceIso(...given, prepareLiveIso)),
  'upgrade-iso': (call: ReproduceCall) =>
    runUpgrade(call, (...given) => reproduceIso(...given, prepareUpgradeIso)),
  'installation-iso': (call: ReproduceCall) =>
    runInstallation(call, (...given) => reproduceIso(...given, prepareInstallationIso)),
} as const;

/**
 * Finds the product; an installation ISO has the label of its base, so only its configuration
 * identifies it.
 */
async function findProduct(
  output: string,
  config: ConfigNames,
  host: CliHost,
): Promise<keyof typeof REPRODUCE> {
  const label = await useMedium(output, ({ volume }) => Promise.resolve(volume.volumeId));
  if (isInstallationNamed(config, host)) return 'installation-iso';
  return isUpgradeLabel(label) ? 'upgrade-iso' : 'live-iso';
}

/** Most entries shown of each kind; `-o json` has all. */
const SHOWN = 20;

function format(name: string, { result, size, differences, notCompared }: Reproduction): string {
  const { found, expected } = size;
  const bytes = (sum: readonly LayoutDifference[]): string =>
    formatSize(sum.reduce((total, { size }) => total + size, 0));
  return [
    ...(found === expected ? [] : [`size: ${found} bytes, a build makes ${expected}`]),
    ...differences.slice(0, SHOWN).map(formatDifference),
    ...(differences.length > SHOWN
      ? [`and ${differences.length - SHOWN} more; -o json lists all`]
      : []),
    ...(result === 'equal'
      ? [`${name} is equal: a build makes the same ${formatSize(expected)}`]
      : []),
    ...(result === 'equal-as-compared'
      ? [
          `${name} is equal in base, blobs and directories`,
          `not compared: ${bytes(notCompared)} that depend on values drawn at random, which are not known here`,
        ]
      : []),
    '',
  ].join('\n');
}

const formatDifference = ({ part, offset, size, paths }: LayoutDifference): string =>
  `${part}: ${size} bytes at ${offset} differ${paths[0] === undefined ? '' : `: ${paths[0]}`}`;
