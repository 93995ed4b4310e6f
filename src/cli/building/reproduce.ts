import { resolve } from 'node:path';
import type { Command } from 'commander';
import { DifferenceError } from '../../base/errors.ts';
import { formatSize } from '../../base/text/words.ts';
import type { ConfigNames } from '../../config/load.ts';
import { useMedium } from '../../media/open.ts';
import type { LayoutDifference } from '../../media/compare-layout.ts';
import { isUpgradeLabel } from '../../stages/4-lay-out/lay-out-upgrade-iso.ts';
import { prepareInstallationIso } from '../../stages/installation-iso.ts';
import { prepareLiveIso } from '../../stages/live-iso.ts';
import { reproduceIso, type Reproduction } from '../../stages/build.ts';
import { prepareUpgradeIso } from '../../stages/upgrade-iso.ts';
import type { CliHost } from '../host.ts';
import { formatPath, writeFormatted } from '../terminal/output.ts';
import { createLockKeyOption } from './requests/lock-options.ts';
import { addFromOption, runUpgrade, type UpgradeCommandOptions } from './build-upgrade-iso.ts';
import { addOtherProducts, isInstallationNamed } from './other-products.ts';
import {
  addLiveOptions,
  runInstallation,
  runLive,
  type InstallationCommandOptions,
  type LiveCommandOptions,
  type RecipeCall,
} from './recipe-command.ts';

const CONFIG = {
  flags: '--config <file...>',
  description: 'configuration files, later ones laid over (default: "appliance-config.yaml")',
};

type ReproduceOptions = Omit<
  LiveCommandOptions & UpgradeCommandOptions & InstallationCommandOptions,
  'lock'
> & {
  readonly config?: ConfigNames;
  readonly lock?: string;
};

/** `sealift reproduce ISO`: exit code 8 where a build would make other bytes. */
export function registerReproduce(program: Command, host: CliHost): void {
  const command = addLiveOptions(program.command('reproduce'), CONFIG)
    .description('compare an ISO with what a build makes of the same configuration and lock')
    .option('--lock <file>', 'the lock that the ISO was built with')
    .addOption(createLockKeyOption())
    .argument('<iso>', 'ISO made by sealift');
  const refuseOthers = addOtherProducts(command, addFromOption);
  command.addHelpText('after', HELP).action(async (iso: string, options: ReproduceOptions) => {
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

const HELP =
  '\nDecides every byte again and reads the ISO once; nothing is written, and no blob is fetched.\n' +
  'Without the lock, or without the sealift.lock.secrets beside it, what the installer draws at\n' +
  'random is not known: then base, blobs and directories are compared. Give the options that the build\n' +
  'was given; --from of an upgrade ISO is in the lock, too.\n' +
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

/** An installation ISO has the label of its base, so only its configuration tells what it is. */
async function findProduct(
  output: string,
  config: ConfigNames,
  host: CliHost,
): Promise<keyof typeof REPRODUCE> {
  const label = await useMedium(output, ({ volume }) => Promise.resolve(volume.volumeId));
  if (isInstallationNamed(config, host)) return 'installation-iso';
  return isUpgradeLabel(label) ? 'upgrade-iso' : 'live-iso';
}

/** Of each kind; `-o json` has all. */
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
