import { Option, type Command } from 'commander';
import { resolve } from 'node:path';
import { hasFile } from '../base/disk/files.ts';
import { UsageError } from '../base/errors.ts';
import { isObject, withoutUndefined } from '../base/lists.ts';
import { pruneCache } from '../base/store/keep.ts';
import { findNearestName } from '../base/text/words.ts';
import type { ConfigNames } from '../config/load.ts';
import { isOurs } from '../media/open.ts';
import { checkHere, claimHere } from '../outputs/output.ts';
import type { IsoPlace } from '../outputs/place.ts';
import { INSTALLATION_CONFIG_NAME } from '../sites/installation.ts';
import { listConfidential } from '../stages/live-iso.ts';
import type { LiveIsoRequest, InstallationIsoRequest } from '../stages/request.ts';
import { drawnFor, pinsOf, type LockUse } from '../stages/resolved/use.ts';
import { type SavedPlan } from '../stages/resolved/saved-plan.ts';
import { openBuildTools, type BuildTools, type ToolsOptions } from '../stages/tools.ts';
import { hostPlacesOf, type CliHost } from './host.ts';
import {
  createConcurrencyOption,
  refuseOption,
  addReuseOptions,
  createRetryOption,
  createSetOption,
  addTo,
  parseAreaSize,
} from './options.ts';
import {
  readInstallationRequest,
  type InstallationRequestOptions,
} from './request-installation.ts';
import { addSignatureOptions } from './request-signatures.ts';
import { readLiveIsoRequest, type LiveIsoOptions } from './request.ts';
import { requireAllowedBuild } from './secrets-elsewhere.ts';
import { type OutputFormat, createOutputOption } from './terminal/output.ts';
import { createProgress, type LogFormat, createLogFormatOption } from './terminal/progress.ts';

/* This file owns how commands run recipes: with their tools, progress, and the options that they share. */

/** Options of every command that plans or builds an ISO. */
export type RecipeOptions = {
  readonly outputFormat: OutputFormat;
  readonly logFormat: LogFormat;
  /** Only for commands that build. */
  readonly verify?: boolean;
  readonly allowSecrets?: boolean;
  readonly rehearse?: boolean;
  /** In bytes. */
  readonly cacheLimit?: number;
  /** Only for commands that write; true if another run of the output is waited for. */
  readonly wait?: boolean;
};

export type RecipeCall<Options extends RecipeOptions> = {
  readonly config: ConfigNames;
  readonly options: Options;
  readonly host: CliHost;
  /** True if the ISO is written, not only planned. */
  readonly isBuild?: boolean;
};

type RecipeRequest = IsoPlace & { readonly saved?: SavedPlan; readonly lock?: LockUse };

/**
 * Runs a recipe with its tools, shows its progress, and closes everything in any case.
 *
 * @param config the part of the configuration that the tools need
 */
export async function runRecipe<Request extends RecipeRequest, Result>(
  { options, host, isBuild = false }: RecipeCall<RecipeOptions>,
  { request, config }: { readonly request: Request; readonly config: ToolsOptions['config'] },
  work: (request: Request, tools: BuildTools) => Promise<Result>,
): Promise<Result> {
  refuseLimit(request, options);
  await (isBuild ? claimHere(request, isOurs) : checkHere(request));
  const progress = createProgress(host, options.logFormat);
  const tools = await openBuildTools({
    ...hostPlacesOf(host),
    config,
    workDir: request.workDir,
    signal: host.signal,
    ...(request.saved && { pinned: pinsOf(request.saved, request.lock) }),
    ...(request.lock && { drawn: drawnFor(request.lock) }),
    ...withoutUndefined({
      reuses: request.reuses,
      wait: options.wait,
      environment: host.environment,
    }),
    emit: progress.listener,
  });
  try {
    if (isBuild) await tools.claimElsewhere(request);
    if (isBuild) host.continuation?.begin();
    const result = await work(request, tools);
    host.continuation?.end();
    await pruneAfter(request, options, host);
    return withEnvironment(result, host);
  } finally {
    progress.close();
    await tools.close();
  }
}

/** A plan or report with the warnings about the environment, if there are any; a list stays as it is. */
const withEnvironment = <Result>(result: Result, { environment = [] }: CliHost): Result =>
  environment.length === 0 || !isObject(result) ? result : { ...result, environment };

function refuseLimit({ reuses }: IsoPlace, { cacheLimit: limit }: RecipeOptions): void {
  if (limit === undefined || reuses?.cache !== undefined) return;
  throw refuseOption('usage.cache-limit', String(limit), { expected: 'also --cache <dir>' });
}

async function pruneAfter(
  { reuses }: IsoPlace,
  { cacheLimit: limit }: RecipeOptions,
  { now }: CliHost,
): Promise<void> {
  if (limit !== undefined && reuses?.cache !== undefined)
    await pruneCache(reuses.cache, limit, now());
}

export type LiveCommandOptions = LiveIsoOptions & RecipeOptions;

const ISO_OUTPUT = {
  flags: '--output <file>',
  description:
    'a file, a block device, s3://BUCKET/KEY, or oci://REGISTRY/REPOSITORY:TAG (default: "appliance.iso")',
};

/**
 * Options that `plan` and `build` share, so that a plan describes the medium that the build makes.
 */
export const addLiveOptions = (command: Command, output = ISO_OUTPUT): Command =>
  addReuseOptions(addSignatureOptions(command))
    .option(output.flags, output.description)
    .option('--work-dir <dir>', 'cache and stage results (default: ".sealift" beside the output)')
    .addOption(createConcurrencyOption())
    .addOption(createRetryOption())
    .addOption(
      new Option('--ignition <how>', 'what renders the unconfigured Ignition config').choices([
        'installer',
        'embedded',
      ]),
    )
    .addOption(
      new Option(
        '--ignition-area <size>',
        'room for the Ignition config with the values of a site, 256KiB to 64MiB (default: 1MiB)',
      ).argParser(parseAreaSize),
    )
    .option('--base-iso <file>', 'use this CoreOS live ISO instead of the one in the payload')
    .option(
      '--allow-incomplete',
      'accept a mirrorPath that lacks images which its catalogs name, with a warning',
    )
    .addOption(createSetOption())
    .addOption(createLogFormatOption())
    .addOption(createOutputOption());

/** Arguments of commands for live ISOs alone; `findConfigArgument` takes them apart. */
export const LIVE_ARGUMENTS = [
  '[args...]',
  'product (live-iso) and configuration files (appliance-config.yaml); later files override earlier ones',
] as const;

/** Runs a recipe of a live ISO. */
export async function runLive<Result>(
  call: RecipeCall<LiveCommandOptions>,
  work: (request: LiveIsoRequest, tools: BuildTools) => Promise<Result>,
): Promise<Result> {
  const request = await readLiveIsoRequest(call.config, call.options, call.host);
  if (call.isBuild === true) requireAllowedBuild(request, listConfidential(request), call.options);
  return runRecipe(call, { request, config: request.config }, work);
}

export type InstallationCommandOptions = InstallationRequestOptions & RecipeOptions;

/** Options that `plan` and `build` have for an installation ISO but not for a live ISO. */
export const addInstallationOptions = (command: Command): Command =>
  command
    .option('--coreos-stream <file|url>', 'take the live ISO that this CoreOS stream (JSON) names')
    .option(
      '--release <pullspec>',
      'take the live ISO and the registry server from this release payload',
    )
    .option('--strict', 'refuse a release or a live ISO that is not of the version of the seed')
    .option('--embed-seed', 'carry the seed image and serve it from the ISO')
    .option('--embed-precached', 'carry the images that the seed names for precaching')
    .option('--embed-release', 'carry all images of --release')
    .option('--embed-image <reference>', 'also carry this image; may be repeated', addTo)
    .option(
      '--registry-image <reference>',
      'registry server on the ISO (default: that of --release)',
    )
    .option(
      '--registries-conf <file>',
      'mirrors to fetch from, instead of the registries.conf of user and system',
    )
    .option('--ca-bundle <file>', 'certificates to trust while fetching, in PEM')
    .option(
      '--insecure-registry <host>',
      'do not verify the certificate of this host, and send passwords to it without encryption; may be repeated',
      addTo,
    );

/** Runs a recipe of an installation ISO. */
export async function runInstallation<Result>(
  call: RecipeCall<InstallationCommandOptions>,
  work: (request: InstallationIsoRequest, tools: BuildTools) => Promise<Result>,
): Promise<Result> {
  const request = await readInstallationRequest(call.config[0], call.options, call.host);
  const { pullSecret } = request.config;
  if (call.isBuild === true) requireAllowedBuild(request, ['pullSecret'], call.options);
  return runRecipe(call, { request, config: { pullSecret, build: request.build } }, work);
}

export const PRODUCTS = ['live-iso', 'installation-iso', 'upgrade-iso'] as const;

/** Default name of the configuration of each product that may be named before it. */
const DEFAULT_CONFIGS = {
  'live-iso': 'appliance-config.yaml',
  'installation-iso': INSTALLATION_CONFIG_NAME,
} as const;

type NamedProduct = keyof typeof DEFAULT_CONFIGS;

/**
 * Finds the files of the configuration in `[product] [config...]`, both of which may be left out.
 * A word that resembles a product and is not a file is a mistyped product.
 *
 * @throws UsageError `usage.product`
 */
export async function findConfigArgument(
  args: readonly string[],
  products: readonly NamedProduct[],
  { cwd }: Pick<CliHost, 'cwd'>,
): Promise<ConfigNames> {
  const product = products.find((name) => name === args[0]);
  const names = product === undefined ? args : args.slice(1);
  const [config = DEFAULT_CONFIGS[product ?? 'live-iso'], ...overlays] = names;
  const meant = nearestProduct(config);
  const isMistyped = meant !== undefined && !(await hasFile(resolve(cwd, config)));
  if (!isMistyped) return [config, ...overlays];
  throw new UsageError('usage.product', `"${config}" is not a product`, {
    expected: PRODUCTS.join(' or '),
    found: config,
    hint: `did you mean "${meant}"?`,
  });
}

/** Finds the product that a word resembles; a word with a dot or a slash is a file name. */
function nearestProduct(word: string): string | undefined {
  if (/[./]/.test(word)) return undefined;
  if (/^config-?isos?$/.test(word)) return 'sealift config-iso build';
  return findNearestName(word, PRODUCTS);
}

/** @throws UsageError `usage.overlays` */
export function refuseOverlays(names: ConfigNames, set: readonly string[] = []): void {
  if (names.length === 1 && set.length === 0) return;
  const found = names.length > 1 ? `${names.length} files` : '--set';
  throw new UsageError('usage.overlays', 'the configuration of an installation ISO is one file', {
    expected: '1 file',
    found,
    hint: 'name one file, without --set',
  });
}
