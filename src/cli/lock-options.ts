import { Option, type Command } from 'commander';
import { dirname, join, resolve } from 'node:path';
import { UsageError, ConfigError } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import type { ConfigInput } from '../config/load.ts';
import { LOCK_NAME, readLock, type Lock, readLockSecrets } from '../stages/resolved/record.ts';
import { toSavedPlan, type LockUse } from '../stages/resolved/use.ts';
import { type SavedPlan } from '../stages/resolved/saved-plan.ts';
import type { CliHost } from './host.ts';
import { createWaitOption } from './options.ts';

/** Options of commands that use or write a lock. */
export type LockOptions = {
  readonly lock?: boolean;
  readonly locked?: boolean;
  readonly lockFile?: string;
  /**
   * True if an ISO is compared: without `locked`, no lock is read, and a lock without its secrets
   * is enough.
   */
  readonly compares?: boolean;
};

const createLockFileOption = (): Option =>
  new Option('--lock-file <file>', `the lock (default: ${LOCK_NAME} beside the configuration)`);

/** Creates `--lock-key`, an option of earlier versions, only to refuse it with a hint. */
export const createLockKeyOption = (): Option =>
  new Option('--lock-key <source>').hideHelp().argParser(() => {
    throw new UsageError('usage.lock-key', '--lock-key was removed: a lock has no secrets', {
      hint: 'leave it out, and keep sealift.lock.secrets in the secret store of your CI',
    });
  });

/** Adds the options for locks to commands that build. */
export const addLockOptions = (command: Command): Command =>
  addLockFileOptions(
    command
      .option('--lock', 'also write the lock; a lock that exists is always updated')
      .addOption(
        new Option(
          '--locked',
          'use exactly the contents of the lock, and resolve nothing',
        ).conflicts(['lock', 'plan', 'freshLayout']),
      ),
  );

/** Adds the options for locks to commands that write a lock and no ISO. */
export const addLockFileOptions = (command: Command): Command =>
  command
    .addOption(createLockFileOption())
    .addOption(createLockKeyOption())
    .addOption(createWaitOption());

/**
 * Refuses lock options before the name of another product: they would not apply to it, and the lock
 * would be ignored without a message.
 */
export function refuseLockInFront(command: Command, product: Command): void {
  const { lock, locked, lockFile, wait } = command.opts<LockOptions & { readonly wait: boolean }>();
  const given = { '--lock': lock, '--locked': locked, '--lock-file': lockFile, '--wait': wait };
  const [name] =
    Object.entries(given).find(([, value]) => value !== undefined && value !== false) ?? [];
  if (name === undefined) return;
  throw new UsageError('usage.other-product', `${name} is before ${product.name()}`, {
    expected: `${product.name()} ${name}`,
    found: `${name} ${product.name()}`,
    hint: `put ${name} after the name of the product`,
  });
}

/** The lock that a run reads or writes. */
export type Locking = { readonly lock?: LockUse; readonly saved?: SavedPlan };

/** Lists the lock as an input if it is only read: it must survive the build. */
export const listLockInputs = ({ lock, saved }: Locking): readonly (string | undefined)[] =>
  saved ? [lock?.path] : [];

/**
 * Reads the lock next to the first file of the configuration; undefined if it does not exist and
 * is not required.
 *
 * @throws ConfigError `lock.missing`, `lock.other-product`; errors of `readLock` and
 * `readLockSecrets`
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
    return takeLock(withSecrets({ path, isLocked, held }, options), {
      held,
      product,
      isNamed,
    });
  }
  if (isLocked) throw noLock(path);
  return isWritten ? { lock: withSecrets({ path, isLocked }, options) } : {};
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

/** Takes the lock; the lock of another product is ignored unless an option asks for the lock. */
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

function withSecrets(use: LockUse, { compares = false }: LockOptions): LockUse {
  const secrets = readLockSecrets(use.path);
  const drawsAgain = compares && secrets === undefined;
  return { ...use, drawsAgain, ...withoutUndefined({ secrets }) };
}
