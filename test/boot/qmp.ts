import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';

type Answer = {
  readonly return?: unknown;
  readonly error?: { readonly desc: string };
};

type BlockStatistics = readonly {
  readonly device: string;
  readonly stats: { readonly rd_bytes: number };
}[];

/**
 * Asks a running QEMU, by its QMP socket, how many bytes the machine has read from a drive since it
 * began: firmware, boot loader and kernel alike.
 *
 * @throws Error when the socket, the answer or the drive is missing.
 */
export async function readDriveBytes(socketPath: string, drive: string): Promise<number> {
  const socket = connect(socketPath);
  try {
    await once(socket, 'connect');
    const lines = createInterface({ input: socket })[Symbol.asyncIterator]();
    const execute = async (command: string): Promise<unknown> => {
      socket.write(`${JSON.stringify({ execute: command })}\n`);
      return await readAnswer(lines);
    };
    await execute('qmp_capabilities');
    const found = ((await execute('query-blockstats')) as BlockStatistics).find(
      ({ device }) => device === drive,
    );
    if (found === undefined) throw new Error(`QEMU has no drive ${drive}`);
    return found.stats.rd_bytes;
  } finally {
    socket.destroy();
  }
}

/** The greeting and events come in between. */
async function readAnswer(lines: AsyncIterator<string>): Promise<unknown> {
  for (;;) {
    const line = await lines.next();
    if (line.done === true) throw new Error('QEMU closed its QMP socket');
    const answer = JSON.parse(line.value) as Answer;
    if (answer.error) throw new Error(`QEMU refused: ${answer.error.desc}`);
    if ('return' in answer) return answer.return;
  }
}
