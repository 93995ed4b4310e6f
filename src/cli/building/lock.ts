import type { Command } from 'commander';
import { relative } from 'node:path';
import { lockLiveIso } from '../../recipes/live-iso/live-iso.ts';
import type { Lock } from '../../recipes/lock/lock-file.ts';
import { secretsPathOf } from '../../recipes/lock/lock-secrets.ts';
import type { CliHost } from '../host.ts';
import { writeFormatted } from '../terminal/output.ts';
import {
  addLiveOptions,
  findConfigArgument,
  LIVE_ARGUMENTS,
  runLive,
  type LiveCommandOptions,
} from './recipe-command.ts';
import { createLockFileOption, createLockKeyOption } from './requests/lock-options.ts';

const OUTPUT = {
  flags: '--output <file>',
  description: 'the ISO that is built later (default: "appliance.iso")',
};

/** `sealift lock [live-iso] [CONFIG...]`. */
export function registerLock(program: Command, host: CliHost): void {
  addLiveOptions(program.command('lock'), OUTPUT)
    .addOption(createLockFileOption())
    .addOption(createLockKeyOption())
    .description('resolve everything and write it to the lock, by digest, without building')
    .usage('[options] [product] [config...]')
    .argument(...LIVE_ARGUMENTS)
    .addHelpText(
      'after',
      '\nThe lock has release, catalogs, tags, images, base ISO, installer and signatures by digest, and the\n' +
        'places of the ISO: commit it beside the configuration. What is drawn at random goes to\n' +
        'sealift.lock.secrets (mode 0600): never commit that.\n' +
        '\nExample:\n  $ sealift lock appliance-config.yaml && sealift build --locked',
    )
    .action(async (args: readonly string[], options: LiveCommandOptions) => {
      const config = await findConfigArgument(args, ['live-iso'], host);
      const call = { config, options: { ...options, lock: true }, host };
      const written = await runLive(call, async (request, tools) => {
        const lock = await lockLiveIso(request, tools);
        return { path: request.lock?.path ?? '', isSealed: request.lock?.key !== undefined, lock };
      });
      const result = describe(written, relative(host.cwd, written.path));
      await writeFormatted({ host, ...options }, result, formatResult);
    });
}

const describe = ({ lock, isSealed }: { lock: Lock; isSealed: boolean }, file: string) => {
  const { release, images, catalogs, tags, drawn } = lock;
  return {
    file,
    ...(Object.keys(drawn).length > 0 && !isSealed && { secrets: secretsPathOf(file) }),
    release,
    images: images.length,
    catalogs: Object.keys(catalogs).length,
    tags: Object.keys(tags).length,
  };
};

const formatResult = ({ file, secrets, release, ...counts }: ReturnType<typeof describe>): string =>
  [
    `${file} has release ${release.version} ${release.architecture}, ${counts.images} images, ` +
      `${counts.catalogs} catalogs, ${counts.tags} tags`,
    ...(secrets === undefined
      ? []
      : [`${secrets} has what was drawn at random: it is secret, never commit it`]),
    '',
    'next: sealift build --locked',
    '',
  ].join('\n');
