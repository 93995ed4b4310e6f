import { resolve } from 'node:path';
import type { Command } from 'commander';
import { UsageError, isErrno } from '../../base/errors.ts';
import { openMedium } from '../../media/open-medium.ts';
import { waitFor } from '../../base/wait.ts';
import type { CliHost } from '../host.ts';
import { writePiece } from '../terminal/output.ts';
import { requireNode } from './ls.ts';

/** `sealift cat ISO PATH`. */
export function registerCat(program: Command, host: CliHost): void {
  program
    .command('cat')
    .description('write a file of an ISO to standard output')
    .argument('<iso>', 'ISO file, of any maker')
    .argument('<path>', 'file in it')
    .addHelpText('after', '\nExample:\n  $ sealift cat appliance.iso /coreos/kargs.json')
    .action(async (path: string, inside: string) => {
      const iso = await openMedium(resolve(host.cwd, path));
      try {
        const node = await requireNode(iso, inside);
        if (node.kind !== 'file') {
          throw new UsageError('iso.not-a-file', `${inside} is a ${node.kind}, not a file`);
        }
        await writeStream(iso.stream(node), host);
      } finally {
        await iso.close();
      }
    });
}

/** Until the reader has taken what was written, or has gone. */
async function drained({ stdout, signal }: CliHost): Promise<void> {
  const events = ['drain', 'close', 'error'];
  let settle = (): void => undefined;
  try {
    await waitFor<undefined>(signal, (resolve) => {
      settle = () => {
        resolve(undefined);
      };
      for (const event of events) stdout.on(event, settle);
    });
  } finally {
    for (const event of events) stdout.off(event, settle);
  }
}

/** A reader that has seen enough (`head`) closes the pipe: no failure. */
async function writeStream(pieces: AsyncIterable<unknown>, host: CliHost): Promise<void> {
  const state = { isClosed: false };
  const onError = (error: unknown): void => {
    if (!isErrno(error, 'EPIPE')) throw error;
    state.isClosed = true;
  };
  host.stdout.on('error', onError);
  try {
    for await (const piece of pieces) {
      host.signal.throwIfAborted();
      if (state.isClosed) return;
      if (writePiece(host, piece as Uint8Array)) continue;
      await drained(host);
    }
  } finally {
    host.stdout.off('error', onError);
  }
}
