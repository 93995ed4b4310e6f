import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { startSealift, type Child } from '../../support/child.ts';
import { INSTALLER } from '../../support/installer-script.ts';
import { createLiveWorld, type LiveWorld } from '../../support/live-iso.ts';
import { API, PULL_SECRET, SSH_KEY } from '../../support/service.ts';
import { findJudge } from '../find-judge.ts';

const run = promisify(execFile);
const python = findJudge('assisted', '../venv/bin/python');
const aicli = findJudge('assisted', 'aicli') ?? '';
const schemathesis = findJudge('assisted', 'schemathesis') ?? '';
const VERSION = '4.21.3';

describe.skipIf(python === undefined)('sealift serve', () => {
  let world: LiveWorld;
  let folder: string;
  let child: Child;
  let url: string;
  beforeAll(async () => {
    world = await createLiveWorld({ installer: INSTALLER });
    await world.writeConfig();
    const output = ['--output', 'store/appliance.iso'];
    const built = await world.run('build', 'live-iso', '--ignition', 'installer', ...output);
    expect(built).toMatchObject({ exitCode: 0 });
    folder = await mkdtemp(join(tmpdir(), 'sealift-assisted-'));
    await writeFile(join(folder, 'key'), 'k'.repeat(40));
    await writeFile(join(folder, 'pull-secret'), PULL_SECRET);
    await mkdir(join(folder, '.ssh'));
    await writeFile(join(folder, '.ssh/id_rsa.pub'), `${SSH_KEY}\n`);
    const args = ['--data', 'data', '--key', 'file:key', '--listen', '127.0.0.1:0'];
    const store = join(world.directory, 'store');
    child = startSealift(['serve', ...args, '--store', store], { cwd: folder });
    let told = '';
    child.process.stderr?.on('data', (piece: Buffer) => (told += piece.toString()));
    url = await vi.waitUntil(() => /serving on (\S+);/.exec(told)?.[1], { timeout: 60_000 });
  });
  afterAll(async () => {
    child.process.kill();
    expect((await child.ended).code).toBe(143);
    await rm(folder, { recursive: true });
    await world.close();
  });

  it('answers every call of the flow of assisted-service-client, which accepts each answer', async () => {
    const flow = new URL('flow.py', import.meta.url).pathname;
    const { stdout } = await run(python ?? '', [flow, url, PULL_SECRET, VERSION]);
    const lines = stdout.trim().split('\n');
    const calls = lines.map((line) => JSON.parse(line) as { call: string; error?: string });
    const failed = calls.filter(({ error }) => error !== undefined);
    console.log(
      `assisted-service-client: ${calls.length - failed.length} of ${calls.length} calls`,
    );
    expect(failed).toEqual([]);
    expect(calls.length).toBe(26);
  });

  it('answers every call of the flow of aicli', async () => {
    const cluster = await fetch(`${url}${API}/v2/clusters/disconnected`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ name: 'edge', openshift_version: '4.21' }),
    });
    expect(cluster.status).toBe(201);
    const values = ['pull_secret=pull-secret', 'cluster=edge', 'openshift_version=4.21'].flatMap(
      (each) => ['-P', each],
    );
    const flow: readonly (readonly string[])[] = [
      ['list', 'clusters'],
      ['info', 'cluster', 'edge'],
      ['create', 'infraenv', 'edge', ...values, '-P', 'image_type=disconnected-iso'],
      ['list', 'infraenvs'],
      ['info', 'infraenv', 'edge'],
      ['update', 'infraenv', 'edge', '-P', 'additional_ntp_sources=192.0.2.1'],
      ['info', 'iso', 'edge'],
      ['download', 'iso', 'edge', '-p', folder],
      ['list', 'hosts'],
      ['delete', 'infraenv', 'edge', '-y'],
      ['delete', 'cluster', 'edge', '-y'],
    ];
    const failed: string[] = [];
    for (const args of flow) {
      const where = ['--url', url, ...args];
      const env = { ...process.env, HOME: folder, http_proxy: '', https_proxy: '' };
      await run(aicli, where, { cwd: folder, env }).catch((error: unknown) => {
        failed.push(`${args.join(' ')}: ${String(error)}`);
      });
    }
    console.log(`aicli: ${flow.length - failed.length} of ${flow.length} calls`);
    expect(failed).toEqual([]);
    expect((await stat(join(folder, 'edge.iso'))).size).toBeGreaterThan(1 << 16);
  });

  it('answers as its OpenAPI document says, also to values that the document forbids', async () => {
    const checks = [
      'not_a_server_error',
      'status_code_conformance',
      'content_type_conformance',
      'response_schema_conformance',
      'response_headers_conformance',
    ].join(',');
    const options = ['--seed', '1', '--generation-database', 'none', '--max-examples', '10'];
    const limits = ['--phases', 'examples,coverage,fuzzing', '--max-time', '150', '--no-color'];
    const document = `${url}${API}/openapi.json`;
    const { stdout } = await run(
      schemathesis,
      ['run', document, '--url', url, '--checks', checks, ...options, ...limits],
      { cwd: folder, maxBuffer: 1 << 26 },
    ).catch((error: unknown) => {
      const { stdout: text = '' } = error as { stdout?: string };
      throw new Error(text.slice(-20_000), { cause: error });
    });
    console.log(`schemathesis: ${/\d+ generated[^\n]*/.exec(stdout)?.[0] ?? stdout}`);
  });
});
