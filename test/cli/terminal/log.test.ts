import { once } from 'node:events';
import { mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { createProgress } from '../../../src/cli/terminal/progress.ts';
import { createRunLog } from '../../../src/cli/terminal/log.ts';
import type { BuildEvent } from '../../../src/engine/engine.ts';
import { EVENT_SCHEMA, requireEvent, requireEvents } from '../../support/events.ts';
import { runLine } from '../../support/run-line.ts';

const MAIN = fileURLToPath(new URL('../../../dist/cli/start.cjs', import.meta.url));

/** A registry that is out of order, whatever it is asked. */
let server: Server;
let registry: string;
let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sealift-log-'));
  server = createServer((_request, response) => {
    response.writeHead(418).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  registry = `127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  server.close();
  await rm(directory, { recursive: true });
});

let log: string;
beforeEach(() => {
  log = join(directory, `${Math.random()}.log`);
});

const run = (...args: readonly string[]): ReturnType<typeof runLine> =>
  runLine(args, { cwd: directory });

const list = (...options: readonly string[]): ReturnType<typeof runLine> =>
  run('catalog', 'list', `${registry}/catalog:v1`, ...options);

type Line = Readonly<Record<string, unknown>>;

async function readLog(): Promise<readonly Line[]> {
  const text = await readFile(log, 'utf8');
  requireEvents(text);
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Line);
}

/** One of each type that a run has. */
const EVENTS: { readonly [Type in BuildEvent['type']]: BuildEvent & { type: Type } } = {
  'stage-started': { type: 'stage-started', stage: 'pour', reason: 'inputs-changed' },
  'stage-reused': { type: 'stage-reused', stage: 'fetch' },
  'stage-progress': { type: 'stage-progress', stage: 'pour', bytes: 1, total: 2, note: 'x' },
  'stage-done': { type: 'stage-done', stage: 'pour', milliseconds: 5 },
  'stage-failed': { type: 'stage-failed', stage: 'pour', message: 'no' },
  'retry': { type: 'retry', host: 'quay.io', reason: 'status 429', waitMs: 2000 },
  'retry-waiting': {
    ...{ type: 'retry-waiting', host: 'quay.io', reason: 'status 429' },
    ...{ waitedMs: 1000, retryForMs: 9000 },
  },
  'retry-over': { type: 'retry-over', host: 'quay.io', waitedMs: 1000 },
  'http-request': { type: 'http-request', method: 'GET', url: 'https://quay.io/v2/', status: 401 },
  'warning': { type: 'warning', message: 'careful' },
};

/** What is shown of all of them. */
async function play(options: object, format: 'plain' | 'json'): Promise<string> {
  const stderr = new PassThrough();
  const given = { now: () => 0, redaction: createRedaction() };
  const log = createRunLog(given, () => undefined);
  await log.open(options, directory);
  const signal = new AbortController().signal;
  const host = {
    stdout: stderr,
    stderr,
    env: {},
    cwd: '/',
    isTTY: false,
    ...given,
    signal,
    log,
  };
  const view = createProgress(host, format);
  for (const event of Object.values(EVENTS)) view.listener(event);
  await log.close();
  return String(stderr.read() ?? '');
}

describe('--quiet', () => {
  test('prints only results and errors, before the command and after it', async () => {
    await writeFile(join(directory, 'wrong.yaml'), 'a: 1\n');
    for (const args of [
      ['-q', 'validate', 'wrong.yaml'],
      ['validate', '--quiet', 'wrong.yaml'],
    ]) {
      const { stderr, exitCode } = await run(...args);
      expect(exitCode).toBe(3);
      expect(stderr).toContain('wrong.yaml:1:1: a: no such key');
    }
    expect(await play({ quiet: true }, 'plain')).toBe('');
    expect(await play({ quiet: true }, 'json')).toBe('');
  });

  test('excludes --verbose', async () => {
    const { stderr, exitCode } = await run('-q', 'version', '-v');
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('usage.conflicting-option')]);
  });
});

describe('--verbose', () => {
  test('prints why stages run or are reused, and every request and retry', async () => {
    const text = await play({ verbose: true }, 'plain');
    expect(text.split('\n')).toEqual([
      'pour: started: its inputs or the program have changed',
      'fetch: reused: its inputs and the program are those of its last result',
      'pour: 1 B of 2 B, 50 %, measuring, x',
      'pour: done in 5 ms',
      'pour: failed: no',
      'quay.io is asked again in 2 s: status 429',
      'waiting for quay.io, 1 s of 9 s: status 429',
      'quay.io answers again after 1 s',
      'GET https://quay.io/v2/: 401',
      'warning: careful',
      '',
    ]);
    expect(await play({}, 'plain')).not.toContain('https://quay.io/v2/');
  });

  test('prints every request to a source', async () => {
    const { stderr, exitCode } = await list('-v');
    expect(exitCode).toBe(4);
    expect(stderr).toMatch(
      new RegExp(`^GET https?://${registry}/v2/catalog/manifests/v1: 418$`, 'm'),
    );
    expect((await list()).stderr).not.toContain('GET http');
    const json = await list('-v', '--log-format', 'json');
    expect(json.stderr).toContain('"type":"http-request"');
    expect((await list('--log-format', 'json')).stderr).not.toContain('"type":"http-request"');
  });
});

describe('--log-file', () => {
  test('records everything, with times, regardless of what is shown', async () => {
    const { stderr } = await list('-q', '--log-file', log);
    expect(stderr).toMatch(/^error: /);
    const lines = await readLog();
    expect(lines.map(({ type }) => type)).toEqual([
      'run-started',
      ...lines.slice(1, -2).map(() => 'http-request'),
      'error',
      'run-done',
    ]);
    expect(lines[0]).toMatchObject({
      command: 'catalog list',
      time: expect.stringMatching(/Z$/) as string,
    });
    expect(lines.at(-1)).toMatchObject({ exitCode: 4 });
    expect((await stat(log)).mode & 0o777).toBe(0o600);
  });

  test('continues the file of earlier runs, and of runs at the same time', async () => {
    await run('version', '--log-file', log);
    await Promise.all([1, 2, 3].map(() => run('version', '--log-file', log)));
    const lines = await readLog();
    expect(lines.filter(({ type }) => type === 'run-done')).toHaveLength(4);
    expect(lines).toHaveLength(8);
  });

  test('replaces no file that is not a log', async () => {
    const text = 'apiVersion: v1beta1\n';
    await writeFile(log, text);
    expect(await run('version', '--log-file', log)).toMatchObject({ exitCode: 2, stdout: '' });
    expect(await readFile(log, 'utf8')).toBe(text);
    const link = `${log}.link`;
    await symlink(log, link);
    expect((await run('version', '--log-file', link)).stderr).toContain('[output.link]');
    expect((await run('version', '--log-file', directory)).exitCode).toBe(2);
    expect((await run('version', '--log-file', '')).stderr).toContain('[usage.empty-path]');
  });

  test('records no secret', async () => {
    const redaction = createRedaction();
    redaction.add('sesame-open-please');
    const args = ['validate', 'sesame-open-please.yaml', '--log-file', log];
    await runLine(args, { cwd: directory, redaction });
    const text = await readFile(log, 'utf8');
    expect(text).toContain('[redacted].yaml');
    expect(text).not.toContain('sesame');
  });

  test('warns once if the file takes no more, and the run continues', async () => {
    const first = '{"time":"2026-01-01T00:00:00.000Z","type":"message","message":"';
    await writeFile(log, `${first}${'x'.repeat(1000 - first.length)}"}\n`);
    // Of one KiB, as ulimit counts in sh of bash; a full disk fails the same write.
    const script = 'ulimit -f 1; exec "$0" "$@"';
    const command = [process.execPath, MAIN, 'version', '--log-file', log];
    const { stdout, stderr, exitCode } = await execa('bash', ['-c', script, ...command]);
    expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/^sealift|^\d/)]);
    expect(stderr).toMatch(/^warning: the log file is not complete: EFBIG/);
    expect(stderr.split('\n')).toHaveLength(1);
  });
});

test('the schema of events has every event of a run, and each of its types once', () => {
  for (const event of Object.values(EVENTS)) requireEvent(event);
  const types = EVENT_SCHEMA.oneOf.map(
    ({ properties }) => (properties['type'] as { const: string }).const,
  );
  expect(new Set(types).size).toBe(types.length);
  expect(() => {
    requireEvent({ type: 'warning', message: 'x', more: 1 });
  }).toThrow('does not have this one');
});
