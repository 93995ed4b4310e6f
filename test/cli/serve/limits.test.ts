import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { InterruptedError } from '../../../src/base/errors.ts';
import { registerServe } from '../../../src/cli/serve/serve.ts';
import { runCommand, startCommand } from '../../support/run-command.ts';
import { API, PULL_SECRET } from '../../support/service.ts';

/* Owns the options of `serve` for what clients may have, from the command line to their effect. */

const CLUSTERS = `${API}/v2/clusters`;

describe('an option for what clients may have', () => {
  let cwd: string;
  let end: () => Promise<void>;
  beforeEach(async () => {
    cwd = await mkdtemp(join(tmpdir(), 'sealift-limits-'));
    await writeFile(join(cwd, 'serve.key'), 'k'.repeat(40), { mode: 0o600 });
    end = () => Promise.resolve();
  });
  afterEach(async () => {
    await end();
    await rm(cwd, { recursive: true });
  });
  const WORDS = ['serve', '--listen', '127.0.0.1:0', '--data', 'data', '--key', 'file:serve.key'];

  /** @returns the URL of the service */
  const serve = async (...options: readonly string[]): Promise<string> => {
    const stop = new AbortController();
    const run = startCommand(registerServe, [...WORDS, ...options], { cwd, signal: stop.signal });
    end = async () => {
      stop.abort(new InterruptedError('SIGTERM'));
      expect(await run.exitCode).toBe(143);
    };
    return vi.waitUntil(() => /serving on (\S+);/.exec(run.stderr())?.[1], { timeout: 30_000 });
  };
  /** Numbers of answers by their status. */
  const countStatuses = async (
    url: string,
    forwarded: readonly string[],
  ): Promise<Readonly<Record<number, number>>> => {
    const counts: Record<number, number> = {};
    for (const client of forwarded) {
      const answer = await fetch(url + CLUSTERS, { headers: { 'X-Forwarded-For': client } });
      await answer.arrayBuffer();
      counts[answer.status] = (counts[answer.status] ?? 0) + 1;
    }
    return counts;
  };
  const repeat = (text: string, count = 25): readonly string[] =>
    Array.from({ length: count }, () => text);

  it('--limit-calls bounds the calls of an address, whatever it says of itself', async () => {
    const url = await serve('--limit-calls', '1');
    const names = repeat('').map((_, index) => `192.0.2.${index + 1}`);
    const { 200: good = 0, 429: refused = 0 } = await countStatuses(url, names);
    // Ten at once, and one more for each second that this takes.
    expect(good).toBeGreaterThanOrEqual(10);
    expect(refused).toBeGreaterThan(5);
  });

  it('--trusted-proxy makes the limit that of the client that the proxy names', async () => {
    const url = await serve('--limit-calls', '1', '--trusted-proxy', '127.0.0.0/8');
    const names = repeat('').map((_, index) => `192.0.2.${index + 1}`);
    expect(await countStatuses(url, names)).toEqual({ 200: names.length });
    // The last name that is not a proxy's counts: a client cannot choose it.
    const chosen = names.map((name) => `${name}, 198.51.100.7, 127.0.0.2`);
    const { 429: refused = 0 } = await countStatuses(url, chosen);
    expect(refused).toBeGreaterThan(5);
    expect(await countStatuses(url, ['198.51.100.8'])).toEqual({ 200: 1 });
    // Networks of IPv6 are one client.
    const hosts = names.map((_, index) => `2001:db8::${index + 1}`);
    expect((await countStatuses(url, hosts))[429]).toBeGreaterThan(5);
  });

  it('--limit-bodies-each and --tenant-records refuse what is more, and name the limit', async () => {
    const url = await serve('--limit-bodies-each', '1MiB', '--tenant-records', '1');
    const create = async (more: object = {}): Promise<readonly [number, string]> => {
      const answer = await fetch(`${url}${API}/v2/infra-envs`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ name: 'edge', pull_secret: PULL_SECRET, ...more }),
      });
      return [answer.status, await answer.text()];
    };
    const large = { ignition_config_override: 'x'.repeat(3 << 19) };
    const [status, text] = await create(large);
    expect([status, text]).toEqual([429, expect.stringContaining('1048576 bytes at a time')]);
    expect((await create())[0]).toBe(201);
    const [again, why] = await create();
    expect([again, why]).toEqual([403, expect.stringContaining('there are 1 records already')]);
  });

  it.each([
    ['--limit-connections', '0'],
    ['--limit-address', '-1'],
    ['--limit-tenant', '1.5'],
    ['--limit-calls', '1000001'],
    ['--limit-bodies', '1KiB'],
    ['--limit-bodies-each', 'much'],
    ['--tenant-records', 'all'],
    ['--tenant-bytes', '0'],
    ['--trusted-proxy', 'proxy.example'],
    ['--trusted-proxy', '192.0.2.0/33'],
  ])('%s %s is refused before anything starts', async (option, value) => {
    const { exitCode, stderr } = await runCommand(registerServe, [...WORDS, option, value], {
      cwd,
    });
    expect(exitCode).toBe(2);
    expect(stderr).toContain(`error: ${option} is "${value}" [usage.`);
  });
});
