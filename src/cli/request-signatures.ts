import { Option, type Command } from 'commander';
import { resolve } from 'node:path';
import { variableOf } from '../base/environment.ts';
import { UsageError } from '../base/errors.ts';
import { isLoopbackHost, readUserInfo } from '../base/http/address.ts';
import { withoutUndefined } from '../base/lists.ts';
import { redactUrl } from '../base/text/redact.ts';
import type { BuildSettings } from '../config/appliance-config.ts';
import type { SignatureGate } from '../stages/1-resolve/verify-release.ts';
import type { CliHost } from './host.ts';

/* This file owns the options by which a release is trusted. */

export type SignatureOptions = {
  readonly signatures?: string;
  readonly signatureUrl?: string;
  readonly signatureKeys?: string;
  readonly allowUnsigned?: boolean;
};

/**
 * Adds the options for finding and judging the signature of a release, for all media that are made
 * from one.
 */
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

/**
 * Reads how signatures are checked. The command line wins over the configuration, and the
 * configuration over the environment.
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
    fromHere(variableOf(env, 'OCP_SIGNATURE_VERIFICATION_PK'));
  const store = readStore(options.signatureUrl ?? variableOf(env, 'OCP_SIGNATURE_URL'));
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
