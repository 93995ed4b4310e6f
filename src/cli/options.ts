import { Argument, Option, type Command } from 'commander';
import { UsageError, type Problem } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import { DURATION_FORM, parseDuration, parseSize, SIZE_FORM } from '../base/text/words.ts';
import type { ApplianceConfig } from '../config/appliance-config.ts';
import { loadConfig, readConfigFiles } from '../config/load.ts';
import { isAreaSize } from '../config/rules.ts';
import type { EventListener } from '../engine/index.ts';
import type { WritingClient } from '../registry/index.ts';
import { CONCURRENCY, DEFAULT_CONCURRENCY } from '../config/build-shape.ts';
import { openRegistryAccess, type RegistryAccessOptions } from '../stages/registry-access.ts';
import { hostPlacesOf, type CliHost } from './host.ts';

/* This file owns the options that several commands share, and how they are read: reuse, seeds, access to registries. */

/** Creates the refusal of an option's value; unless `option` names it, the code is `usage.` and its name. */
export const refuseOption = (
  code: string,
  found: string,
  {
    option = `--${code.replace('usage.', '')}`,
    ...details
  }: { readonly expected: string; readonly hint?: string; readonly option?: string },
): UsageError => new UsageError(code, `${option} is "${found}"`, { ...details, found });

/** A whole number in the range, both ends included; `option` is its name, if the code does not have it. */
export const parseWhole =
  (code: string, [least, most]: readonly [number, number], option?: string) =>
  (text: string): number => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= least && value <= most) return value;
    const expected = `a whole number from ${least} to ${most}`;
    throw refuseOption(code, text, { expected, ...withoutUndefined({ option }) });
  };

/** Collects the values of an option that may be repeated. */
export const addTo = (value: string, earlier: readonly string[] = []): readonly string[] => [
  ...earlier,
  value,
];

export const createSetOption = (): Option =>
  new Option(
    '--set <path=value>',
    'override a value of the files, as in build.concurrency=4; may be repeated',
  ).argParser(addTo);

export const createStrictOption = (): Option =>
  new Option('--strict', 'treat every warning and note as an error, for pipelines').default(false);

export const harden = <Found extends Problem>(found: Found): Found => ({
  ...found,
  severity: 'error',
});

export const createConfigArgument = (
  description = 'configuration files; later ones override earlier ones',
): Argument =>
  new Argument('[config...]', description).default(
    ['appliance-config.yaml'],
    'appliance-config.yaml',
  );

export const createWaitOption = (): Option =>
  new Option('--wait', 'wait for another run that writes the same output').default(false);

/** Creates `--retry-for`, in milliseconds, for every command that fetches. */
export const createRetryOption = (): Option =>
  new Option(
    '--retry-for <duration>',
    'how long to wait for a host that answered before and now sends nothing (default: 10m)',
  ).argParser((text) => {
    const duration = parseDuration(text);
    if (duration !== undefined) return duration;
    throw refuseOption('usage.retry-for', text, { expected: DURATION_FORM });
  });

export const addSignatureOptions = (command: Command): Command =>
  command
    .option(
      '--signatures <path>',
      'release signatures: a folder sha256=HEX/signature-N, or a file with ConfigMaps',
    )
    .option(
      '--signature-url <url>',
      'signature store to ask before the public ones (default: OCP_SIGNATURE_URL)',
    )
    .addOption(createKeysOption())
    .option('--allow-unsigned', 'accept a nightly or CI build without a signature');

export const createKeysOption = (): Option =>
  new Option(
    '--signature-keys <file>',
    'public keys that sign releases (default: OCP_SIGNATURE_VERIFICATION_PK, or those of Red Hat)',
  );

export const addReuseOptions = (command: Command): Command =>
  addSeedOptions(command)
    .option(
      '--fresh-layout',
      'do not give blobs the places that they have in the ISO that is replaced',
    )
    .addOption(
      new Option('--cache <dir>', 'share blobs with other builds, in a folder').argParser(
        parseCacheFolder,
      ),
    )
    .addOption(
      new Option(
        '--cache-limit <size>',
        'prune --cache to this size after the build (as in 200GiB)',
      ).argParser(parseCacheSize('usage.cache-limit')),
    )
    .option('--checksum', 'compute the digest of the ISO even if an earlier ISO is cloned')
    .option(
      '--rehash',
      'ignore what earlier builds recorded about files: read and hash them again',
    );

export const addSeedOptions = (command: Command): Command =>
  command
    .option(
      '--seed <source>',
      'take blobs from an ISO (a file or https://), the root of a registry or an OCI layout; may be repeated',
      (value: string, earlier: unknown) =>
        addTo(value, Array.isArray(earlier) ? (earlier as readonly string[]) : []),
    )
    .option('--no-seed', 'take no blobs from the ISO that is replaced');

/** Refuses a repository, which `--cache` took in earlier versions. */
function parseCacheFolder(text: string): string {
  if (!text.startsWith('oci://')) return text;
  throw refuseOption('usage.cache', text, {
    expected: 'a folder',
    hint: 'name a folder on a shared volume, or configure a pull-through registry as a mirror',
  });
}

export const parseCacheSize =
  (code: string) =>
  (text: string): number => {
    const size = parseSize(text);
    if (size !== undefined) return size;
    throw refuseOption(code, text, { expected: SIZE_FORM });
  };

/** Reads `--ignition-area`, which has the range of `build.ignitionArea`. */
export function parseAreaSize(text: string): number {
  const size = parseSize(text);
  if (size !== undefined && isAreaSize(size)) return size;
  throw refuseOption('usage.ignition-area', text, { expected: 'a size from 256KiB to 64MiB' });
}

/** Creates `--concurrency`, which has the range and the default of `build.concurrency`. */
export const createWorkDirOption = (): Option =>
  new Option('--work-dir <dir>', 'cache and stage results (default: ".sealift" beside the output)');

export function createConcurrencyOption(): Option {
  const [least, most] = CONCURRENCY;
  return new Option(
    '--concurrency <n>',
    `extents poured at a time, ${least} to ${most} (default: ${DEFAULT_CONCURRENCY})`,
  ).argParser(parseWhole('usage.concurrency', CONCURRENCY));
}

/** Options that set the access to registries for commands without their own configuration. */
export type AccessOptions = {
  readonly config?: readonly string[];
  readonly set?: readonly string[];
  /** In milliseconds. */
  readonly retryFor?: number;
};

export const addAccessOptions = (command: Command): Command =>
  command
    .option(
      '--config <file>',
      'take pull secret, CA and registries.conf from this configuration; later ones override earlier ones',
      addTo,
    )
    .addOption(createSetOption())
    .addOption(createRetryOption());

/** Reads the access to registries: as for a build, or from the environment. */
export function readAccess(
  options: AccessOptions,
  host: CliHost,
): ApplianceConfig | RegistryAccessOptions['config'] {
  const { retryFor } = options;
  const given = retryFor === undefined ? {} : { retryFor };
  const config = readConfig(options, host);
  if (config === undefined) return { build: { insecureRegistries: [], ...given } };
  return { ...config, build: { ...config.build, ...given } };
}

export function readConfig(
  { config, set }: AccessOptions,
  host: CliHost,
): ApplianceConfig | undefined {
  const [first, ...overlays] = config ?? [];
  if (first !== undefined) {
    return loadConfig(readConfigFiles([first, ...overlays], { set }, host), { env: host.env });
  }
  if (set === undefined) return undefined;
  throw new UsageError('usage.set', '--set has no configuration to change', {
    hint: 'name a file with --config',
  });
}

/** Works with registries, and closes all connections in any case. */
export async function useAccess<Result>(
  options: AccessOptions,
  host: CliHost & { readonly emit: EventListener },
  work: (client: WritingClient) => Promise<Result>,
): Promise<Result> {
  const { emit } = host;
  const config = readAccess(options, host);
  const { client, http } = await openRegistryAccess({ ...hostPlacesOf(host), config, emit });
  try {
    return await work(client);
  } finally {
    await http.close();
  }
}
