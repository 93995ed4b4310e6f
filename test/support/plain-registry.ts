import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export type PlainRegistry = {
  /** `127.0.0.1:port` */
  readonly host: string;
  /** SIGKILL: connections break. */
  readonly kill: () => Promise<void>;
  readonly close: () => Promise<void>;
};

/** Debian's docker-registry by plain HTTP on loopback, on a free port by default; `directory` gets its store. */
export async function startPlainRegistry(
  directory: string,
  address = '127.0.0.1:0',
): Promise<PlainRegistry> {
  await mkdir(directory, { recursive: true });
  const file = join(directory, 'config.yml');
  const config = {
    version: '0.1',
    log: { level: 'info', accesslog: { disabled: true } },
    storage: { filesystem: { rootdirectory: join(directory, 'store') } },
    http: { addr: address },
  };
  await writeFile(file, JSON.stringify(config));
  const child = spawn('docker-registry', ['serve', file], { stdio: ['ignore', 'ignore', 'pipe'] });
  const closed = once(child, 'close');
  const host = await new Promise<string>((resolve, reject) => {
    let told = '';
    child.on('error', reject);
    child.on('close', () => {
      reject(new Error(`docker-registry ended: ${told}`));
    });
    child.stderr.on('data', (piece: Buffer) => {
      told += piece.toString();
      const address = /listening on (127\.0\.0\.1:\d+)/.exec(told)?.[1];
      if (address !== undefined) resolve(address);
    });
  });
  return {
    host,
    async kill() {
      child.kill('SIGKILL');
      await closed;
    },
    async close() {
      child.kill();
      await closed;
    },
  };
}
