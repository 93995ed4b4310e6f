import { Option, type Command } from 'commander';
import { UsageError } from '../base/errors.ts';
import type { HeldOptions } from '../stages/resolved/held.ts';
import { LOCK_NAME } from '../stages/resolved/record.ts';
import { createWaitOption } from './options.ts';

const createLockFileOption = (): Option =>
  new Option('--lock-file <file>', `the lock (default: ${LOCK_NAME} beside the configuration)`);

/** Creates `--lock-key`, an option of earlier versions, only to refuse it with a hint. */
export const createLockKeyOption = (): Option =>
  new Option('--lock-key <source>').hideHelp().argParser(() => {
    throw new UsageError('usage.lock-key', '--lock-key was removed: a lock has no secrets', {
      hint: 'leave it out, and keep sealift.lock.secrets in the secret store of your CI',
    });
  });

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

/** Refuses lock options before the name of another product: they would be ignored without a message. */
export function refuseLockInFront(command: Command, product: Command): void {
  const { lock, locked, lockFile, wait } = command.opts<HeldOptions & { readonly wait: boolean }>();
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
