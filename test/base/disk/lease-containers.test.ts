import { spawn, spawnSync, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { formatHolder, readSelf } from '../../../src/base/disk/holder.ts';
import { takeLease } from '../../../src/base/disk/lease.ts';
import { bundleProgram } from '../../support/bundle-program.ts';

const ALONE = ['--pid', '--fork', '--kill-child', '--mount-proc'];
const isAllowed = spawnSync('unshare', [...ALONE, 'true']).status === 0;
const { signal } = new AbortController();

let program: string;
let directory: string;
let lock: string;
const started: ChildProcessByStdio<null, Readable, null>[] = [];
beforeAll(async () => {
  program = await bundleProgram('lease-user', { workers: ['pour/hash-worker.mjs'] });
});
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'sealift-containers-'));
  lock = join(directory, 'out.iso.lock');
});
afterEach(async () => {
  for (const child of started.splice(0)) await kill(child);
  rmSync(directory, { recursive: true, force: true });
});

async function kill(child: ChildProcessByStdio<null, Readable, null>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}

/** Starts a process with process ids of its own, as a container has them. */
function start(...args: readonly string[]) {
  const words = [process.execPath, program, ...args];
  const child = spawn('unshare', [...ALONE, ...words], { stdio: ['ignore', 'pipe', 'inherit'] });
  started.push(child);
  const lines: string[] = [];
  const reader = createInterface(child.stdout);
  reader.on('line', (line) => lines.push(line));
  const first = once(reader, 'line');
  const ended = once(reader, 'close').then(() => lines);
  return { child, first, ended };
}

describe.runIf(isAllowed)('a lease that a process of another container holds', () => {
  it('is refused with host, namespace and time while that process renews it', async () => {
    await start('hold', lock, '1800').first;
    const warnings: string[] = [];
    const taken = takeLease(lock, { signal, limit: 1800, warn: (text) => warnings.push(text) });
    await expect(taken).rejects.toMatchObject({
      code: 'output.locked',
      message: expect.stringMatching(
        new RegExp(
          String.raw`^process \d+ on host ${hostname()} \(pid namespace \d+\), since 2\d{3}-\S+Z is already`,
        ),
      ) as string,
      hint: expect.stringContaining('--wait') as string,
    });
    expect(warnings).toEqual([expect.stringContaining('takes over')]);
  }, 60_000);

  it('is taken over, with a line that says so, when that process was killed and the limit has passed', async () => {
    const { child, first } = start('hold', lock, '1800');
    await first;
    await kill(child);
    const warnings: string[] = [];
    const before = performance.now();
    const lease = await takeLease(lock, {
      signal,
      limit: 1800,
      warn: (text) => warnings.push(text),
    });
    expect(performance.now() - before).toBeGreaterThan(1700);
    expect(warnings).toEqual([
      expect.stringMatching(/takes over if that process gives no sign of life for 2 s$/),
    ]);
    await lease.requireHeld();
    await lease.release();
    expect(readdirSync(directory)).toEqual([]);
  }, 60_000);

  it('ends the wait for it with the signal', async () => {
    const { child, first } = start('hold', lock, '90000');
    await first;
    await kill(child);
    const stop = new AbortController();
    const warn = (): void => {
      stop.abort(new Error('stopped'));
    };
    await expect(takeLease(lock, { signal: stop.signal, warn })).rejects.toThrow('stopped');
  }, 60_000);

  it('goes to one after the other of ten containers that wait for it', async () => {
    const { child, first } = start('hold', lock, '3000');
    await first;
    await kill(child);
    const users = Array.from({ length: 10 }, () => start('share', lock, '3000'));
    const lines = (await Promise.all(users.map(({ ended }) => ended))).flat();
    expect(lines.filter((line) => line === 'held')).toHaveLength(10);
    expect(lines).not.toContain('clash');
    expect(readdirSync(directory).filter((name) => !name.endsWith('.tmp'))).toEqual([]);
  }, 180_000);
});

describe('a lease whose holder is a zombie', () => {
  it('is free at once', async () => {
    const parent = spawn('sh', ['-c', 'sleep 60 & echo $!; exec sleep 60'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    started.push(parent);
    const [line] = (await once(createInterface(parent.stdout), 'line')) as [string];
    const nameOf = (): string => readFileSync(`/proc/${parent.pid}/comm`, 'utf8');
    while (nameOf() !== 'sleep\n') await new Promise(setImmediate); // a shell would reap it
    process.kill(Number(line));
    const statOf = (): string[] => readFileSync(`/proc/${line}/stat`, 'utf8').split(') ');
    while (statOf()[1]?.[0] !== 'Z') await new Promise(setImmediate);
    const begun = statOf()[1]?.split(' ')[19] ?? '';
    const self = { ...(await readSelf()), pid: Number(line), start: begun };
    writeFileSync(lock, formatHolder(self, { nonce: '00', since: Date.now() }));
    const warn = (): never => expect.fail('nothing is waited for');
    const lease = await takeLease(lock, { signal, warn });
    await lease.release();
  });
});

describe.runIf(isAllowed)('two pours of one output in two containers whose lock is lost', () => {
  it('publish only their own bytes: the first is told that it has lost the output', async () => {
    const iso = join(directory, 'out.iso');
    const first = start('pour', iso, 'a');
    await first.first;
    const second = start('pour', iso, 'b');
    const [lost, won] = await Promise.all([first.ended, second.ended]);
    expect(lost.at(-1)).toMatch(/^output\.lost /);
    expect(won.at(-1)).toBe('published');
    expect(won).toContainEqual(expect.stringContaining('begins another file'));
    const expected = Array.from({ length: 8 }, (_, at) => Buffer.alloc(1 << 20, `b${at}`));
    expect(readFileSync(iso).equals(Buffer.concat(expected))).toBe(true);
    expect(readdirSync(directory)).toEqual(['out.iso']);
  }, 120_000);
});
