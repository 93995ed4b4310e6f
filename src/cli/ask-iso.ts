import { dirname, resolve } from 'node:path';
import { variableOf } from '../base/environment.ts';
import { ConfigError, UsageError } from '../base/errors.ts';
import { isLoopbackHost, readUserInfo } from '../base/http/address.ts';
import { withoutUndefined } from '../base/lists.ts';
import { type Redaction, redactUrl } from '../base/text/redact.ts';
import type { BuildSettings } from '../config/appliance-config.ts';
import { listNamedPaths, type ConfigInput } from '../config/load.ts';
import { LAST_EPOCH } from '../iso/index.ts';
import { parseGraphUrl } from '../openshift/release/update-graph.ts';
import { parseOutput } from '../outputs/output.ts';
import type { IsoPlace, IsoReuse } from '../outputs/place.ts';
import { isElsewhere } from '../outputs/read/open.ts';
import { listAuthFiles } from '../registry/index.ts';
import type { SignatureGate } from '../stages/1-resolve/verify-release.ts';
import type { AskedIso } from '../stages/resolved/describe-asked.ts';
import { readHeld, type HeldOptions } from '../stages/resolved/held.ts';
import type { CliHost } from './host.ts';

/* This file owns the part of a request that all media have: flags, configuration files and environment meet here. */

export type SignatureOptions = {
  readonly signatures?: string;
  readonly signatureUrl?: string;
  readonly signatureKeys?: string;
  readonly allowUnsigned?: boolean;
};

export type BuildOptions = SignatureOptions &
  HeldOptions & {
    readonly output?: string;
    readonly workDir?: string;
    readonly force?: boolean;
    readonly freshLayout?: boolean;
    readonly rehash?: boolean;
    readonly checksum?: boolean;
    readonly cache?: string;
    /** Values of `--seed`; false: `--no-seed`. */
    readonly seed?: readonly string[] | boolean;
    /** Settings `PATH=VALUE`, which win over the configuration. */
    readonly set?: readonly string[];
    readonly concurrency?: number;
    /** In milliseconds. */
    readonly retryFor?: number;
  };

type AskedMedium = {
  readonly product: string;
  /** Default name of the output. */
  readonly output: string;
  readonly files: ConfigInput;
  /** Settings of the configuration by which releases are trusted, if it has them. */
  readonly trust?: Pick<BuildSettings, 'signatures' | 'signatureKeys' | 'allowUnsigned'>;
  /** Paths that are read besides the configuration and the files that it names; undefined ones are ignored. */
  readonly inputs: readonly (string | undefined)[];
};

export function askIso(
  medium: AskedMedium,
  flags: BuildOptions,
  host: CliHost,
): Omit<AskedIso, 'access' | 'confidential'> {
  const { files, product, trust, inputs } = medium;
  const [{ path: configuration }] = files.files;
  const [graphUrl, epoch] = [readGraphUrl(host.env), readEpoch(host.env)];
  const held = readHeld(flags, { product, configuration, cwd: host.cwd });
  const signatures = readSignatureGate(flags, host, trust);
  const { files: signed, keys } = signatures;
  // A lock that is only read must survive the build.
  const lock = held.locked && held.lock?.path;
  const named = [...inputs, flags.plan, signed, keys, lock];
  return {
    ...readIsoPlace(
      { ...flags, output: flags.output ?? medium.output },
      { config: files, inputs: named },
      host,
    ),
    configuration: identifyConfig(files),
    held,
    signatures,
    ...withoutUndefined({ graphUrl, epoch }),
  };
}

/** The place of an ISO, and the files that must survive it. */
function readIsoPlace(
  {
    output: given,
    workDir,
    force = false,
    checksum = false,
    ...reuse
  }: Pick<BuildOptions, 'workDir' | 'force' | 'checksum'> &
    ReuseOptions & { readonly output: string },
  from: { readonly config: ConfigInput; readonly inputs: readonly (string | undefined)[] },
  { cwd, env }: CliHost,
): IsoPlace {
  const place = parseOutput(given, { cwd, workDir });
  const { output } = place;
  const { config, inputs } = from;
  const reuses = readReuse(reuse, output, cwd);
  return {
    ...place,
    force,
    checksum,
    reuses,
    inputs: [
      ...config.files.map(({ path }) => path),
      ...reuses.seeds.filter((path) => path !== output && !isElsewhere(path)),
      ...inputs.flatMap((path) => (path === undefined ? [] : [resolve(cwd, path)])),
      ...config.files.flatMap(({ path, text }) => listNamedPaths(text, dirname(path))),
      ...config.settings.flatMap((text) => listNamedPaths(text.replace(/^[^=]*=/, ''), cwd)),
      ...listAuthFiles(env).map((path) => resolve(cwd, path)),
    ],
  };
}

type ReuseOptions = Pick<BuildOptions, 'freshLayout' | 'rehash' | 'cache' | 'seed'>;

function readReuse(
  { freshLayout = false, rehash = false, cache, seed = true }: ReuseOptions,
  output: string,
  cwd: string,
): IsoReuse {
  const named = typeof seed === 'boolean' ? [] : seed;
  return {
    seeds: named.map((path) => (isElsewhere(path) ? path : resolve(cwd, path))),
    replaced: output,
    takesBlobs: seed !== false,
    ...(cache !== undefined && { cache: resolve(cwd, cache) }),
    keepsPlaces: !freshLayout,
    trustsRecords: !rehash,
  };
}

/** The command line wins over the configuration, and the configuration over the environment. */
export function readSignatureGate(
  options: SignatureOptions,
  { cwd, env, redaction }: Pick<CliHost, 'cwd' | 'env' | 'redaction'>,
  build: NonNullable<AskedMedium['trust']> = { allowUnsigned: false },
): SignatureGate {
  const fromHere = (path: string | undefined): string | undefined =>
    path === undefined || path === '' ? undefined : resolve(cwd, path);
  const files = fromHere(options.signatures) ?? build.signatures;
  const keys =
    fromHere(options.signatureKeys) ??
    build.signatureKeys ??
    fromHere(variableOf(env, 'OCP_SIGNATURE_VERIFICATION_PK'));
  const store = readStore(options.signatureUrl ?? variableOf(env, 'OCP_SIGNATURE_URL'), redaction);
  return {
    ...withoutUndefined({ files, keys, store }),
    allowUnsigned: options.allowUnsigned ?? build.allowUnsigned,
  };
}

function readStore(text = '', redaction: Redaction): string | undefined {
  if (text === '') return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url) refuseClearPassword(url, redaction);
  if (url && /^https?:$/.test(url.protocol)) return text;
  throw new UsageError('usage.signature-url', 'the signature store is not an address', {
    expected: 'https://HOST/PATH/',
    found: url ? redactUrl(url) : 'no address',
    hint: 'correct --signature-url or OCP_SIGNATURE_URL',
  });
}

function refuseClearPassword(url: URL, redaction: Redaction): void {
  const isSecret = readUserInfo(url, redaction) !== undefined;
  if (!isSecret || url.protocol === 'https:' || isLoopbackHost(url.hostname)) return;
  throw new UsageError(
    'usage.signature-url',
    'the password of the signature store would be sent without encryption',
    { expected: 'https://', found: redactUrl(url), hint: 'name the store with https://' },
  );
}

/** Identifies the configuration under which the digests of its tags are stored. */
const identifyConfig = ({ files }: ConfigInput): string => files.map(({ path }) => path).join('\n');

/**
 * Reads SOURCE_DATE_EPOCH, seconds since 1970; undefined if it is not set.
 * reproducible-builds.org/specs/source-date-epoch: whole seconds, in decimal.
 */
export function readEpoch(env: NodeJS.ProcessEnv): number | undefined {
  const text = variableOf(env, 'SOURCE_DATE_EPOCH');
  if (text === undefined) return undefined;
  if (/^\d{1,10}$/.test(text) && Number(text) <= LAST_EPOCH) return Number(text);
  throw new ConfigError(
    'env.source-date-epoch',
    `SOURCE_DATE_EPOCH is "${text}", not whole seconds that an ISO can hold`,
    { expected: `0 to ${LAST_EPOCH}, the end of the year 2155 (ECMA-119 9.1.5)`, found: text },
  );
}

/** Reads UPDATE_URL_OVERRIDE, a variable of openshift-install; undefined if it is not set. */
export function readGraphUrl(env: NodeJS.ProcessEnv): string | undefined {
  const text = variableOf(env, 'UPDATE_URL_OVERRIDE');
  if (text !== undefined) parseGraphUrl(text);
  return text;
}
