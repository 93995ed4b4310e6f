import type { Command } from 'commander';
import { relative } from 'node:path';
import type { ConfigNames } from '../../config/load.ts';
import { lockIso, type IsoRequest, type PrepareIso } from '../../stages/build.ts';
import type { BuildTools } from '../../stages/tools.ts';
import { prepareInstallationIso } from '../../stages/installation-iso.ts';
import { prepareLiveIso } from '../../stages/live-iso.ts';
import type { Lock } from '../../stages/resolved/record.ts';
import { secretsPathOf } from '../../stages/resolved/record.ts';
import { prepareUpgradeIso } from '../../stages/upgrade-iso.ts';
import type { CliHost } from '../host.ts';
import { writeFormatted } from '../terminal/output.ts';
import { addInstallationIsoOptions } from './build-installation-iso.ts';
import { addUpgradeOptions, runUpgrade, type UpgradeCommandOptions } from './build-upgrade-iso.ts';
import {
  addLiveOptions,
  findConfigArgument,
  LIVE_ARGUMENTS,
  runInstallation,
  runLive,
  type InstallationCommandOptions,
  type LiveCommandOptions,
  type RecipeOptions,
} from './recipe-command.ts';
import { addLockFileOptions, refuseLockInFront } from './requests/lock-options.ts';

const OUTPUT = {
  flags: '--output <file>',
  description: 'the ISO that is built later (default: "appliance.iso")',
};

/** `sealift lock [live-iso] [CONFIG...]`, and the other products as commands below it. */
export function registerLock(program: Command, host: CliHost): void {
  // Options behind the name of another product belong to that product.
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
      await report(await runLive(call, locking(prepareLiveIso)), '', call);
    });
  lock.hook('preSubcommand', refuseLockInFront);
  registerOthers(lock, host);
}

const HELP =
  '\nThe lock has release, catalogs, tags, images, base ISO, installer and signatures by digest, and the\n' +
  'places of the ISO: commit it beside the configuration. What is drawn at random goes to\n' +
  'sealift.lock.secrets (mode 0600): never commit that.\n' +
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
      await report(await runUpgrade(call, locking(prepareUpgradeIso)), 'upgrade-iso ', call);
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
      await report(written, 'installation-iso ', call);
    });
}

type Written = { readonly path: string; readonly isSealed: boolean; readonly lock: Lock };

/** What is done with a request of any product. */
const locking =
  <Request extends IsoRequest>(prepare: PrepareIso<Request>) =>
  async (request: Request, tools: BuildTools): Promise<Written> => {
    const lock = await lockIso(request, tools, prepare);
    return { path: request.lock?.path ?? '', isSealed: request.lock?.key !== undefined, lock };
  };

async function report(
  written: Written,
  product: string,
  { options, host }: { readonly options: RecipeOptions; readonly host: CliHost },
): Promise<void> {
  const result = describe(written, relative(host.cwd, written.path));
  await writeFormatted({ host, ...options }, result, () => formatResult(result, product));
}

const describe = ({ lock, isSealed }: Written, file: string) => {
  const { release, images, catalogs, tags, drawn } = lock;
  return {
    file,
    ...(Object.keys(drawn).length > 0 && !isSealed && { secrets: secretsPathOf(file) }),
    ...(release && { release }),
    images: images.length,
    catalogs: Object.keys(catalogs).length,
    tags: Object.keys(tags).length,
  };
};

const formatResult = (
  { file, secrets, release, ...counts }: ReturnType<typeof describe>,
  product: string,
): string =>
  [
    `${file} has ${release ? `release ${release.version} ${release.architecture}, ` : ''}` +
      `${counts.images} images, ${counts.catalogs} catalogs, ${counts.tags} tags`,
    ...(secrets === undefined
      ? []
      : [`${secrets} has what was drawn at random: it is secret, never commit it`]),
    '',
    `next: sealift build ${product}--locked`,
    '',
  ].join('\n');
