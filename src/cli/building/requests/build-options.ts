import { resolve, dirname, join } from 'node:path';
import type { Command } from 'commander';
import { UsageError } from '../../../base/errors.ts';
import { findDevice } from '../../../base/disk/block-device.ts';
import { isLoopbackHost } from '../../../base/http/address.ts';
import { redactUrl } from '../../../base/text/redact.ts';
import { readUserInfo } from '../../../base/http/address.ts';
import { withoutUndefined } from '../../../base/lists.ts';
import { formatS3Address, parseS3Address } from '../../../base/s3/object.ts';
import { parseRepositoryAddress, parseTaggedAddress } from '../../../outputs/output.ts';
import { formatReference } from '../../../registry/reference.ts';
import { isArtifactOutput, isObjectOutput } from '../../../outputs/output.ts';
import type { BuildSettings } from '../../../config/appliance-config.ts';
import type { SignatureGate } from '../../../stages/1-resolve/verify-release.ts';
import type { CliHost } from '../../host.ts';
import type { ConfigInput } from '../../../config/load.ts';
import { listNamedPaths } from '../../../config/load.ts';
import { standInFor } from '../../../outputs/device.ts';
import type { IsoPlace } from '../../../outputs/file.ts';
import { listAuthFiles } from '../../../registry/client/credentials.ts';
import type { IsoReuse } from '../../../media/seeds.ts';
import { isElsewhere } from '../../../outputs/read/open.ts';
import { readSavedPlan, type SavedPlan } from '../../../stages/resolved/use.ts';

type SignatureOptions = {
  readonly signatures?: string;
  readonly signatureUrl?: string;
  readonly signatureKeys?: string;
  readonly allowUnsigned?: boolean;
};

/** How the signature of a release is found and judged, for all media that are made from one. */
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
    .option(
      '--signature-keys <file>',
      'public keys that sign releases (default: OCP_SIGNATURE_VERIFICATION_PK, or those of Red Hat)',
    )
    .option('--allow-unsigned', 'accept a nightly or CI build without a signature');

/**
 * The command line wins over the configuration, and that over the environment.
 *
 * @throws UsageError `usage.signature-url`
 */
export function readSignatureGate(
  options: SignatureOptions,
  { cwd, env }: Pick<CliHost, 'cwd' | 'env'>,
  build: Pick<BuildSettings, 'signatures' | 'signatureKeys' | 'allowUnsigned'> = {
    allowUnsigned: false,
  },
): SignatureGate {
  const fromHere = (path: string | undefined): string | undefined =>
    path === undefined || path === '' ? undefined : resolve(cwd, path);
  const files = fromHere(options.signatures) ?? build.signatures;
  const keys =
    fromHere(options.signatureKeys) ??
    build.signatureKeys ??
    fromHere(env['OCP_SIGNATURE_VERIFICATION_PK']);
  const store = readStore(options.signatureUrl ?? env['OCP_SIGNATURE_URL']);
  return {
    ...withoutUndefined({ files, keys, store }),
    allowUnsigned: options.allowUnsigned ?? build.allowUnsigned,
  };
}

function readStore(text = ''): string | undefined {
  if (text === '') return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url) refuseClearPassword(url);
  if (url && /^https?:$/.test(url.protocol)) return text;
  throw new UsageError('usage.signature-url', 'the signature store is not an address', {
    expected: 'https://HOST/PATH/',
    found: url ? redactUrl(url) : 'no address',
    hint: 'correct --signature-url or OCP_SIGNATURE_URL',
  });
}

function refuseClearPassword(url: URL): void {
  const isSecret = readUserInfo(url) !== undefined;
  if (!isSecret || url.protocol === 'https:' || isLoopbackHost(url.hostname)) return;
  throw new UsageError(
    'usage.signature-url',
    'the password of the signature store would be sent without encryption',
    { expected: 'https://', found: redactUrl(url), hint: 'name the store with https://' },
  );
}

/** What the commands that plan or build an ISO have in common. */
export type BuildOptions = SignatureOptions & {
  readonly output?: string;
  readonly workDir?: string;
  readonly force?: boolean;
  readonly freshLayout?: boolean;
  readonly rehash?: boolean;
  readonly checksum?: boolean;
  readonly cache?: string;
  /** What `--seed` names; false: `--no-seed`. */
  readonly seed?: readonly string[] | boolean;
  /** File with a saved plan, or the report of an earlier build. */
  readonly plan?: string;
  /** `PATH=VALUE`, over the configuration. */
  readonly set?: readonly string[];
  readonly concurrency?: number;
  /** Milliseconds. */
  readonly retryFor?: number;
};

/** @throws what `readSavedPlan` throws */
export const readSaved = (
  { plan }: BuildOptions,
  product: string,
  { cwd }: CliHost,
): SavedPlan | undefined =>
  plan === undefined ? undefined : readSavedPlan(resolve(cwd, plan), product);

type ReuseOptions = Pick<BuildOptions, 'freshLayout' | 'rehash' | 'cache' | 'seed'>;

/** A folder, or a repository. */
const resolveCache = (cwd: string, cache: string): string =>
  isArtifactOutput(cache)
    ? `oci://${formatReference(parseRepositoryAddress(cache))}`
    : resolve(cwd, cache);

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
    ...(cache !== undefined && { cache: resolveCache(cwd, cache) }),
    keepsPlaces: !freshLayout,
    trustsRecords: !rehash,
  };
}

/**
 * Where an ISO goes, and what must survive it.
 *
 * @param inputs of the command line, besides the configuration and what that names; undefined: none
 * @throws UsageError `usage.no-stream`, `usage.empty-path`, `output.not-a-file`, `object-store.address`
 */
export function readIsoPlace(
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
  const named = resolveOutput(cwd, given);
  const device = findDevice(named);
  const beside = device || isObjectOutput(named) ? cwd : dirname(named);
  const place = resolve(cwd, workDir ?? join(beside, '.sealift'));
  const output = device ? standInFor(device, place) : named;
  const { config, inputs } = from;
  const reuses = readReuse(reuse, output, cwd);
  return {
    output,
    ...withoutUndefined({ device }),
    force,
    checksum,
    reuses,
    workDir: place,
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

/** Of what the digests of its tags are stored under. */
export const identifyConfig = ({ files }: ConfigInput): string =>
  files.map(({ path }) => path).join('\n');

function resolveOutput(cwd: string, output: string): string {
  if (isArtifactOutput(output)) return `oci://${formatReference(parseTaggedAddress(output))}`;
  if (isObjectOutput(output)) return formatS3Address(parseS3Address(output));
  if (output === '-') {
    throw new UsageError('usage.no-stream', 'an ISO cannot be written to standard output', {
      hint: 'name a file with --output; it is written out of order and resumable',
    });
  }
  if (output === '') {
    throw new UsageError('usage.empty-path', '--output is empty', { hint: 'name a file' });
  }
  if (!/(?:^|\/)\.{0,2}$/.test(output)) return resolve(cwd, output);
  throw new UsageError('output.not-a-file', `--output "${output}" names a directory`, {
    expected: 'the name of a file',
    found: output,
    hint: `name a file in it, such as ${join(output, 'medium.iso')}`,
  });
}
