import { Option, type Command } from 'commander';
import { resolve, join } from 'node:path';
import { hasFile } from '../../base/disk/files.ts';
import { readOwnFile } from '../../base/disk/open-file.ts';
import { ConfigError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { Secret } from '../../base/secret.ts';
import { parseDuration, TIME_FORM } from '../../base/text/words.ts';
import { fileOfReference, readSecretSource } from '../../config/secrets.ts';
import type { CliHost } from '../host.ts';
import { refuseOption } from '../options.ts';
import { writeTexts } from '../terminal/log.ts';
import { createForceOption, createOutputOption, type OutputFormat } from '../terminal/output.ts';
import { requireTrustedFile } from './trusted-file.ts';
import { lineOf, say, writeReport } from '../terminal/report.ts';

/** Registers `sealift token keys|issue`, which decide who may use `sealift serve --auth local`. */
export function registerToken(program: Command, host: CliHost): void {
  const token = program
    .command('token')
    .description('make tokens for "sealift serve --auth local"')
    .addHelpText(
      'after',
      '\nExample:\n  $ sealift token keys --out .\n' +
        '  $ sealift token issue --private-key file:issuer.key --user alice\n' +
        '  $ sealift serve --auth local --auth-keys issuer.pub --data ./service --key file:serve.key',
    );
  registerKeys(token, host);
  registerIssue(token, host);
}

type KeysOptions = {
  readonly out: string;
  readonly force: boolean;
  readonly outputFormat: OutputFormat;
};

function registerKeys(token: Command, host: CliHost): void {
  token
    .command('keys')
    .description('make a pair of keys: issuer.key signs tokens, issuer.pub verifies them')
    .requiredOption('--out <dir>', 'directory to write them to')
    .addOption(createForceOption())
    .addOption(createOutputOption())
    .addHelpText(
      'after',
      '\nAnyone who has issuer.key can issue tokens for every user: keep it off machines with services.\n' +
        'Only its owner can read issuer.key; issuer.pub is public.\n' +
        '\nExample:\n  $ sealift token keys --out .',
    )
    .action(async ({ out, force, ...options }: KeysOptions) => {
      const { createIssuerKeys } = await import('../../service/auth/tokens.ts');
      const { privateKey, publicKey } = createIssuerKeys(
        force ? undefined : await readHalf(resolve(host.cwd, out)),
      );
      const [key = '', pub = ''] = await writeTexts(
        host,
        [
          { path: join(out, 'issuer.key'), text: privateKey },
          { path: join(out, 'issuer.pub'), text: publicKey, mode: 0o644 },
        ],
        { force },
      );
      await writeReport({ host, ...options }, { privateKey: key, publicKey: pub }, () => ({
        title: ['Keys of an issuer of tokens'],
        body: [
          lineOf(say`${key} signs tokens`),
          lineOf(say`${pub} verifies them: give it to --auth-keys`),
        ],
      }));
    });
}

/** The private key of a run that was killed before it wrote the public one. */
async function readHalf(out: string): Promise<Secret | undefined> {
  if (await hasFile(join(out, 'issuer.pub'))) return undefined;
  const key = (await readOwnFile(join(out, 'issuer.key')))?.toString('latin1');
  return key?.startsWith('-----BEGIN PRIVATE KEY-----') === true ? new Secret(key) : undefined;
}

type IssueOptions = {
  readonly privateKey: string;
  readonly user: string;
  readonly org?: string;
  readonly issuer?: string;
  readonly audience?: string;
  /** In milliseconds. */
  readonly lifetime: number;
  readonly outputFormat: OutputFormat;
};

const DAY = 24 * 3_600_000;

function registerIssue(token: Command, host: CliHost): void {
  token
    .command('issue')
    .description('print a token')
    .requiredOption('--private-key <source>', 'key that signs the token: file:PATH or env:NAME')
    .requiredOption('--user <name>', 'user that the token is for', parseName('usage.user'))
    .option(
      '--org <id>',
      'organization whose records the user shares (default: only their own)',
      parseName('usage.org'),
    )
    .option('--issuer <issuer>', 'issuer that --auth-issuer of the service names')
    .option('--audience <audience>', 'audience that --auth-audience of the service names')
    .addOption(
      new Option('--lifetime <duration>', 'how long the token is valid')
        .argParser(parseLifetime)
        .default(DAY, '24h'),
    )
    .addOption(createOutputOption())
    .addHelpText(
      'after',
      '\nThe token is a secret until it expires; nothing else is printed to standard output.\n' +
        '\nExample:\n  $ sealift token issue --private-key file:issuer.key --user alice --lifetime 8h > alice.token',
    )
    .action(async ({ privateKey, lifetime, outputFormat, ...claims }: IssueOptions) => {
      const { issueToken } = await import('../../service/auth/tokens.ts');
      const issued = host.now();
      const expires = issued + lifetime;
      const key = new Secret(readSecret('--private-key', privateKey, host));
      const { user, org, issuer, audience } = claims;
      const about = { user, ...withoutUndefined({ org, issuer, audience }) };
      const value = await issueToken(key, { ...about, issued, expires });
      const result = { token: value, expires: new Date(expires).toISOString(), ...about };
      await writeReport({ host, outputFormat }, result, () => ({
        title: ['Token'],
        body: [lineOf(say`${value}`)],
      }));
    });
}

const parseName =
  (code: 'usage.user' | 'usage.org') =>
  (text: string): string => {
    if (/^[^\p{C}]{1,256}$/u.test(text)) return text;
    throw code === 'usage.user'
      ? refuseOption('usage.user', text, { expected: NAME })
      : refuseOption('usage.org', text, { expected: NAME });
  };

const NAME = '1 to 256 characters, none of them a control character';

function parseLifetime(text: string): number {
  const time = parseDuration(text);
  if (time !== undefined && time >= 1000) return time;
  throw refuseOption('usage.lifetime', text, { expected: TIME_FORM });
}

/** Reads the secret that an option names as file:PATH or env:NAME. */
export function readSecret(option: string, text: string, host: CliHost): string {
  const { cwd: directory, env, redaction } = host;
  const file = fileOfReference(text, directory);
  if (file !== undefined) requireTrustedFile(option, file);
  const reading = readSecretSource(text, { directory, env });
  if (reading.kind === 'value') redaction.add(reading.value);
  if (reading.kind === 'value' && reading.from === 'reference') return reading.value;
  throw new ConfigError(
    'service.secret',
    reading.kind === 'value'
      ? `${option} is neither file:PATH nor env:NAME`
      : `${option}: ${reading.problem}`,
    { hint: `give ${option} as file:PATH or env:NAME` },
  );
}
