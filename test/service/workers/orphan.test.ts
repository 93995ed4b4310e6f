import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const PRIMARY = fileURLToPath(new URL('orphaning-primary.mjs', import.meta.url));
const WORKER = fileURLToPath(new URL('../../../dist/cli/range-worker.mjs', import.meta.url));

it('a worker that is starting ends without a word when the first process is killed', async () => {
  for (let round = 0; round < 5; round += 1) {
    const child = spawn(process.execPath, [PRIMARY, WORKER], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let said = '';
    child.stderr.on('data', (piece: Buffer) => (said += piece.toString()));
    await once(child, 'close'); // the worker has the same stderr, and has closed it
    expect([child.signalCode, said]).toEqual(['SIGKILL', '']);
  }
});
