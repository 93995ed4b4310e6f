import type { Command } from 'commander';
import { relative, resolve } from 'node:path';
import { DifferenceError } from '../base/errors.ts';
import { formatCommand } from '../base/text/shell.ts';
import { formatSize } from '../base/text/words.ts';
import type { ConfigNames } from '../config/load.ts';
import type { LayoutDifference } from '../media/compare-layout.ts';
import { recognizeMedium } from '../media/recognize.ts';
import type { Reproduction } from '../stages/build.ts';
import { secretsPathOf } from '../stages/resolved/record.ts';
import { addOtherProducts, findConfigArgument, productArgument, toNames } from './find-product.ts';
import type { CliHost } from './host.ts';
import { addLockFileOptions, refuseLockInFront, createLockKeyOption } from './lock-options.ts';
import type { ProductRow, ProductTable } from './product.ts';
import type { ProductFlags } from './product.ts';
import { formatPath } from './terminal/output.ts';
import {
  type Phrase,
  type Report,
  gap,
  lineOf,
  listShown,
  nextStep,
  say,
  writeReport,
} from './terminal/report.ts';

/* This file owns `lock`, and `reproduce`, which compares a build with an ISO. */

const OUTPUT = {
  flags: '--output <file>',
  description: 'the ISO that is built later (default: "appliance.iso")',
};

/** Registers `sealift lock [live-iso] [CONFIG...]`, and the other products as commands below it. */
export function registerLock(program: Command, host: CliHost, products: ProductTable): void {
  const [first, ...others] = products;
  const act = async (row: ProductRow, config: ConfigNames, options: ProductFlags) => {
    const written = await row.lock({ config, host, options: { ...options, lock: true } });
    await report(written, options, host);
  };
  // Options after the name of another product belong to that product.
  const lock = addLockFileOptions(
    first.addOptions(program.enablePositionalOptions().command('lock'), OUTPUT),
  )
    .enablePositionalOptions()
    .helpCommand(false)
    .description('resolve everything and write it to the lock, by digest, without building')
    .usage('[options] [product] [config...]')
    .argument(...productArgument([first]))
    .addHelpText('after', HELP)
    .action(async (args: readonly string[], options: ProductFlags) => {
      await act(first, await findConfigArgument(args, { products, named: [first] }, host), options);
    });
  lock.hook('preSubcommand', refuseLockInFront);
  for (const row of others) {
    addLockFileOptions(row.addOptions(lock.command(row.name)))
      .description(row.words?.lock.description ?? '')
      .addHelpText('after', row.words?.lock.help ?? '')
      .action((config: string | ConfigNames, options: ProductFlags) =>
        act(row, toNames(config), options),
      );
  }
}

const HELP =
  '\nThe lock has release, catalogs, tags, images, base ISO, installer and signatures by digest, and the\n' +
  'places of the bytes on the ISO: commit it next to the configuration. Values drawn at random go to\n' +
  'sealift.lock.secrets (mode 0600): never commit that file.\n' +
  '\nProducts: live-iso (default), and those listed as commands.\n' +
  '\nExample:\n  $ sealift lock appliance-config.yaml && sealift build --locked';

type Written = Awaited<ReturnType<ProductRow['lock']>>;

async function report(written: Written, options: ProductFlags, host: CliHost): Promise<void> {
  const result = describe(written, relative(host.cwd, written.path));
  await writeReport({ host, ...options }, result, () => describeLocked(result, nextOf(host)));
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

export const describeLocked = (
  { file, secrets, release, ...counts }: ReturnType<typeof describe>,
  next: string,
): Report => ({
  title: say`Lock ${file}`,
  body: [
    lineOf(
      say`${file} has ${release ? say`release ${release.version} ${release.architecture}, ` : []}${counts.images} images, ${counts.catalogs} catalogs, ${counts.tags} tags`,
    ),
    ...(secrets === undefined
      ? []
      : [
          lineOf(
            say`${secrets} has the values drawn at random: they are secret, never commit them`,
          ),
        ]),
    gap,
    nextStep(next),
  ],
});

const CONFIG = {
  flags: '--config <file...>',
  description:
    'configuration files; later ones override earlier ones (default: "appliance-config.yaml")',
};

type ReproduceOptions = Omit<ProductFlags, 'lock'> & {
  readonly config?: ConfigNames;
  readonly lock?: string;
};

/** Registers `sealift reproduce ISO`: exit code 8 if a build would make other bytes. */
export function registerReproduce(program: Command, host: CliHost, products: ProductTable): void {
  const [first, ...others] = products;
  const command = first
    .addOptions(program.command('reproduce'), CONFIG)
    .description(
      'compare an ISO or a disk image with what a build makes from the same configuration and lock',
    )
    .option('--lock <file>', 'the lock that the ISO was built with')
    .addOption(createLockKeyOption())
    .argument('<iso>', 'ISO or disk image made by sealift');
  const refuseOthers = addOtherProducts(command, products, others);
  command
    .addHelpText('after', REPRODUCE_HELP)
    .action(async (iso: string, options: ReproduceOptions) => {
      const { config = [first.config], lock, ...given } = options;
      const output = resolve(host.cwd, iso);
      const medium = await recognizeMedium(output);
      const product =
        others.find(({ marks }) => marks?.ofConfig?.(config, host)) ??
        others.find(({ marks }) => marks?.ofMedium?.(medium)) ??
        first;
      refuseOthers(product);
      const locking = lock === undefined ? {} : { locked: true, lockFile: lock };
      const result = await product.reproduce({
        config,
        options: { ...given, output, compares: true, ...locking },
        host,
      });
      const name = formatPath(output, host);
      await writeReport({ host, ...options }, result, (result) => describeReproduced(name, result));
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

/** Most entries shown of each kind; `-o json` has all. */
const SHOWN = 20;

export function describeReproduced(
  name: string,
  { result, size, differences, notCompared }: Reproduction,
): Report {
  const { found, expected } = size;
  const bytes = (sum: readonly LayoutDifference[]): string =>
    formatSize(sum.reduce((total, { size }) => total + size, 0));
  return {
    title: say`Reproduction of ${name}`,
    body: [
      ...(found === expected ? [] : [lineOf(say`size: ${found} bytes, a build makes ${expected}`)]),
      ...listShown(
        differences.map((difference) => lineOf(describeDifference(difference))),
        SHOWN,
      ),
      ...(result === 'equal'
        ? [lineOf(say`${name} is equal: a build makes the same ${formatSize(expected)}`)]
        : []),
      ...(result === 'equal-as-compared'
        ? [
            lineOf(say`${name} is equal in base, blobs and directories`),
            lineOf(
              say`not compared: ${bytes(notCompared)} that depend on values drawn at random, which are not known here`,
            ),
          ]
        : []),
    ],
  };
}

const describeDifference = ({ part, offset, size, paths }: LayoutDifference): Phrase =>
  say`${part}: ${size} bytes at ${offset} differ${paths[0] === undefined ? [] : say`: ${paths[0]}`}`;
