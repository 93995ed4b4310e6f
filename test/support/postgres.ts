import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const ROOT = '/usr/lib/postgresql';
const version = existsSync(ROOT) ? readdirSync(ROOT).sort().at(-1) : undefined;
const bin = version === undefined ? undefined : join(ROOT, version, 'bin');

export const hasPostgres = bin !== undefined && existsSync(join(bin, 'initdb'));

export type Postgres = {
  /** Of a database of its own, which is empty. */
  readonly createDatabase: () => string;
  /** SIGKILL, and up again. */
  readonly crash: (meanwhile?: () => Promise<void>) => Promise<void>;
  readonly stop: () => Promise<void>;
};

/** A server of Debian's PostgreSQL on a socket in a folder of its own; it never runs as root. */
export async function startPostgres(): Promise<Postgres> {
  const directory = await mkdtemp(join(tmpdir(), 'sealift-pg-'));
  await chmod(directory, 0o777);
  const data = join(directory, 'data');
  const as = process.getuid?.() === 0 ? ['runuser', '-u', 'postgres', '--'] : [];
  const run = (program: string, ...args: string[]): void => {
    const [file = '', ...rest]: string[] = [...as, join(bin ?? '', program), ...args];
    execFileSync(file, rest, { cwd: directory, stdio: ['ignore', 'ignore', 'pipe'] });
  };
  run('initdb', '-D', data, '-U', 'postgres', '--auth=trust', '--no-sync', '--no-locale');
  let server = await start();
  let count = 0;

  /** Behind a SIGKILL, those that it started may hold its memory for a while: it ends then, and is started again. */
  async function start(): Promise<ChildProcess> {
    const words = [...as, join(bin ?? '', 'postgres'), '-D', data, '-k', directory];
    const [file = '', ...rest]: string[] = [...words, '-c', 'listen_addresses='];
    const said: string[] = [];
    for (let attempt = 0; attempt < 100; attempt += 1) {
      const child = spawn(file, rest, { cwd: directory, stdio: ['ignore', 'ignore', 'pipe'] });
      for await (const piece of child.stderr) {
        if (String(piece).includes('ready to accept connections')) return child;
        said.push(String(piece));
      }
      await sleep(200);
    }
    throw new Error(`PostgreSQL does not start: ${said.slice(-20).join('')}`);
  }
  /** The server itself, not runuser before it. */
  const kill = async (signal: 'INT' | 'KILL'): Promise<void> => {
    const ended = once(server, 'exit');
    const pid = execFileSync('head', ['-1', join(data, 'postmaster.pid')], { encoding: 'utf8' });
    process.kill(Number(pid), `SIG${signal}`);
    await ended;
  };
  return {
    createDatabase() {
      count += 1;
      run('createdb', '-h', directory, '-U', 'postgres', `d${count}`);
      return `postgres:///d${count}?host=${directory}&user=postgres`;
    },
    async crash(meanwhile) {
      await kill('KILL');
      await meanwhile?.();
      server = await start();
    },
    async stop() {
      await kill('INT');
      await rm(directory, { recursive: true, force: true });
    },
  };
}
