import { dirname, join, resolve } from 'node:path';
import { Option, type Command } from 'commander';
import { ConfigError, UsageError } from '../../../base/errors.ts';
import { withoutUndefined } from '../../../base/lists.ts';
import { rememberSecret } from '../../../base/text/redact.ts';
import type { ConfigInput } from '../../../config/load.ts';
import { Secret } from '../../../base/secret.ts';
import { isReference, readSecretSource } from '../../../config/secrets.ts';
import { LOCK_NAME, readLock, type Lock } from '../../../stages/resolved/record.ts';
import { readLockSecrets } from '../../../stages/resolved/record.ts';
import { unsealSecrets } from '../../../stages/resolved/sealed.ts';
import { toSavedPlan, type LockUse } from '../../../stages/resolved/use.ts';
import type { SavedPlan } from '../../../stages/resolved/use.ts';
import type { CliHost } from '../../host.ts';

/** Of commands that use or write a lock. */
export type LockOptions = {
  readonly lock?: boolean;
  readonly locked?: boolean;
  readonly lockFile?: string;
  /** `file:PATH` or `env:NAME`. */
  readonly lockKey?: string;
  /** Whether an ISO is compared: without `locked` no lock is read, and one without its secrets will do. */
  readonly compares?: boolean;
};

const createLockFileOption = (): Option =>
  new Option('--lock-file <file>', `the lock (default: ${LOCK_NAME} beside the configuration)`);

export const createLockKeyOption = (): Option =>
  new Option(
    '--lock-key <source>',
    'file:PATH or env:NAME: what was drawn at random is in the lock, encrypted with this',
  );

/** Of commands that build. */
export const addLockOptions = (command: Command): Command =>
  addLockFileOptions(
    command
      .option('--lock', 'also write the lock; where it is there already, it is written in any case')
      .addOption(
        new Option('--locked', 'take exactly what the lock has, and resolve nothing').conflicts([
          'lock',
          'plan',
          'freshLayout',
        ]),
      ),
  );

/** Of commands that write a lock and no ISO. */
export const addLockFileOptions = (command: Command): Command =>
  command.addOption(createLockFileOption()).addOption(createLockKeyOption());

/** Options in front of another product are not that product's: a lock must not be lost without a word. */
export function refuseLockInFront(command: Command, product: Command): void {
  const { lock, locked, lockFile, lockKey } = command.opts<LockOptions>();
  const given = { '--lock': lock, '--locked': locked, '--lock-file': lockFile };
  const all = Object.entries({ ...given, '--lock-key': lockKey });
  const [name] = all.find(([, value]) => value !== undefined && value !== false) ?? [];
  if (name === undefined) return;
  throw new UsageError('usage.other-product', `${name} stands in front of ${product.name()}`, {
    expected: `${product.name()} ${name}`,
    found: `${name} ${product.name()}`,
    hint: `put ${name} behind the name of the product`,
  });
}

/** What a run takes from its lock, or writes to it. */
export type Locking = { readonly lock?: LockUse; readonly saved?: SavedPlan };

/** A lock that is only read must survive the build. */
export const listLockInputs = ({ lock, saved }: Locking): readonly (string | undefined)[] =>
  saved ? [lock?.path] : [];

/**
 * The lock beside the first file of the configuration; undefined where nothing is there and none is asked for.
 *
 * @throws ConfigError `lock.missing`, `lock.other-product`; what `readLock` and `readLockSecrets` throw
 */
export function readLockUse(
  options: LockOptions,
  { product, config }: { readonly product: string; readonly config: ConfigInput },
  host: CliHost,
): Locking {
  const { lock: isWritten = false, locked: isLocked = false, lockFile } = options;
  if (!isLocked && options.compares) return {};
  const path = findLockPath(options, config, host);
  const held = readLock(path);
  if (held) {
    const isNamed = isWritten || isLocked || lockFile !== undefined;
    return takeLock(withSecrets({ path, isLocked, held }, options, host), {
      held,
      product,
      isNamed,
    });
  }
  if (isLocked) throw noLock(path);
  return isWritten ? { lock: withSecrets({ path, isLocked }, options, host) } : {};
}

const findLockPath = (
  { lockFile }: LockOptions,
  { files }: ConfigInput,
  { cwd }: CliHost,
): string => resolve(cwd, lockFile ?? join(dirname(files[0].path), LOCK_NAME));

const noLock = (path: string): ConfigError =>
  new ConfigError('lock.missing', `lock "${path}" does not exist`, {
    hint: 'write it with "sealift lock", or name another file with --lock-file',
  });

/** The lock of another product that nobody asked for is left alone. */
function takeLock(
  lock: LockUse,
  given: { readonly held: Lock; readonly product: string; readonly isNamed: boolean },
): Locking {
  const { held, product, isNamed } = given;
  if (held.product === product) {
    return { lock, ...(lock.isLocked && { saved: toSavedPlan(held) }) };
  }
  if (!isNamed) return {};
  throw new ConfigError('lock.other-product', `"${lock.path}" is the lock of another product`, {
    expected: product,
    found: held.product,
    hint: 'name another file with --lock-file',
  });
}

function withSecrets(
  use: LockUse,
  { compares = false, lockKey }: LockOptions,
  host: CliHost,
): LockUse {
  const { path, held } = use;
  const key = lockKey === undefined ? undefined : readLockKey(lockKey, host);
  const isSealed = key && held?.secrets !== undefined;
  const secrets = isSealed ? unsealSecrets(held.secrets, key, path) : readLockSecrets(path);
  const drawsAgain = compares && secrets === undefined;
  return { ...use, drawsAgain, ...withoutUndefined({ secrets, key }) };
}

/** Characters: shorter ones are found by trying. */
const SHORTEST_KEY = 16;

/** @throws UsageError `usage.lock-key` */
function readLockKey(source: string, { cwd, env }: CliHost): Secret {
  if (!isReference(source)) throw wrongKey('is not file:PATH or env:NAME', 'file:PATH or env:NAME');
  const reading = readSecretSource(source, { directory: cwd, env });
  if (reading.kind !== 'value') throw wrongKey(`${source}: ${reading.problem}`, 'a key');
  const { value } = reading;
  if (value.length >= SHORTEST_KEY) {
    rememberSecret(value);
    return new Secret(value);
  }
  throw wrongKey(`${source} has ${value.length} characters`, `at least ${SHORTEST_KEY}`);
}

const wrongKey = (problem: string, expected: string): UsageError =>
  new UsageError('usage.lock-key', `--lock-key ${problem}`, {
    expected,
    hint: 'make one with "openssl rand -hex 32", and name it as file:PATH or env:NAME',
  });
