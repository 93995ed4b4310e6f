import { mkdir, mkdtemp, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { registerDiff } from '../../../src/cli/medium/diff.ts';
import { registerCat, registerLs } from '../../../src/cli/medium/inspect.ts';
import { registerWhy } from '../../../src/cli/why.ts';
import { registerInspect } from '../../../src/cli/medium/inspect.ts';
import { registerVerify } from '../../../src/cli/medium/verify.ts';
import { freePort } from '../../support/local-http.ts';
import { makeMedium, type TestMedium } from '../../support/medium.ts';
import { startNginx, type Nginx } from '../../support/nginx.ts';
import { runCommand } from '../../support/run-command.ts';
import { fakeDigest, fakeImage, writeSparseMedium } from '../../support/sparse-medium.ts';
import { makeTinyIso } from '../../support/tiny-iso.ts';
import { requireTool } from '../../support/tools.ts';

const hasNginx = requireTool('nginx');

let directory: string;
let files: string;
let url: string;
let nginx: Nginx;
let medium: TestMedium;
beforeAll(async () => {
  if (!hasNginx) return;
  directory = await mkdtemp(join(tmpdir(), 'sealift-remote-'));
  files = join(directory, 'files');
  await mkdir(files);
  medium = await makeMedium(files);
  const port = await freePort();
  nginx = await startNginx(directory, port, `access_log ${directory}/access.log combined;`);
  url = `http://127.0.0.1:${port}`;
});
afterAll(async () => {
  if (!hasNginx) return;
  await nginx.kill();
  await rm(directory, { recursive: true, force: true });
});

/** Bytes that nginx sent, by its own log. */
async function countSent(): Promise<number> {
  const log = await readFile(join(directory, 'access.log'), 'utf8');
  return [...log.matchAll(/" \d{3} (\d+) "/g)].reduce((sum, [, size]) => sum + Number(size), 0);
}

/** Runs a command in this process; bytes that nginx sent for it, and seconds of CPU time. */
async function measure(register: Parameters<typeof runCommand>[0], args: readonly string[]) {
  const [before, cpuBefore] = [await countSent(), process.cpuUsage()];
  const run = await runCommand(register, args, { cwd: directory });
  const [after, { user, system }] = [await countSent(), process.cpuUsage(cpuBefore)];
  return {
    ...run,
    bytes: after - before,
    cpu: (user + system) / 1e6,
  };
}

describe.skipIf(!hasNginx)('a medium that nginx serves', () => {
  const address = (): string => `${url}/medium.iso`;
  const run = (register: Parameters<typeof runCommand>[0], ...args: readonly string[]) =>
    runCommand(register, args, { cwd: files });

  it('is read by each command like the same file on this machine', async () => {
    const path =
      medium.index.extents.find(({ paths }) => paths[0]?.includes('/blobs/'))?.paths[0] ?? '';
    for (const [register, command, ...more] of [
      [registerInspect, 'inspect', '-o', 'json'],
      [registerLs, 'ls', '-R', '-l'],
      [registerCat, 'cat', path],
      [registerVerify, 'verify', '-o', 'json'],
    ] as const) {
      const local = await run(register, command, 'medium.iso', ...more);
      const remote = await run(register, command, address(), ...more);
      expect(local.exitCode, local.stderr).toBe(0);
      expect(remote.stdout).toBe(local.stdout);
      expect(remote.exitCode, remote.stderr).toBe(0);
    }
    const [local, remote] = await Promise.all(
      ['medium.iso', address()].map((iso) => run(registerWhy, 'why', 'a', '--iso', iso)),
    );
    expect(local?.exitCode, local?.stderr).toBe(0);
    expect(remote?.stdout).toBe(local?.stdout);
  });

  it('is reported as damaged when it is cut off', async () => {
    await truncate(join(files, 'medium.iso'), (await stat(join(files, 'medium.iso'))).size - 1e6);
    const { exitCode, stdout } = await run(registerVerify, 'verify', address());
    expect(exitCode).toBe(8);
    expect(stdout).toContain('ISO image is incomplete');
  });
});

describe.skipIf(!hasNginx)('two media of 40 GB that nginx serves', () => {
  beforeAll(async () => {
    const tiny = join(directory, 'tiny.iso');
    await writeFile(tiny, makeTinyIso());
    const names = Array.from({ length: 600 }, (_, at) => `image-${at}`);
    const small = names.flatMap((name) => [
      { digest: fakeDigest(`${name} 1`), size: 2500 }, // the manifest
      { digest: fakeDigest(`${name} config`), size: 8000 },
      { digest: fakeDigest(`${name} layer`), size: 300_000 },
    ]);
    const large = Array.from({ length: 2000 }, (_, at) => ({
      digest: fakeDigest(`blob ${at}`),
      size: 20_000_000 + at,
    }));
    const images = names.map((name) => fakeImage(name));
    const release = { version: '4.21.3', reference: 'quay.io/r@sha256:3', architecture: 'amd64' };
    const shared = { release, images, catalogs: [] };
    await writeSparseMedium(join(files, 'a.iso'), tiny, { ...shared, blobs: [...small, ...large] });
    const next = [{ digest: fakeDigest('new'), size: 2_000_000_000 }, ...large.slice(100)];
    await writeSparseMedium(join(files, 'b.iso'), tiny, { ...shared, blobs: [...small, ...next] });
    expect((await stat(join(files, 'a.iso'))).size).toBeGreaterThan(40e9);
  });

  it('are each inspected by reading 20 MB at most', async () => {
    const { exitCode, stdout, bytes } = await measure(registerInspect, ['inspect', `${url}/a.iso`]);
    expect(exitCode).toBe(0);
    expect(stdout).toContain('images         release: 600');
    expect(bytes).toBeLessThan(20e6);
  });

  it('are compared in two seconds of CPU time by reading 20 MB at most', async () => {
    const { exitCode, stdout, bytes, cpu } = await measure(registerDiff, [
      'diff',
      `${url}/a.iso`,
      `${url}/b.iso`,
    ]);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^bytes +1\.9 GiB new/m);
    expect(bytes).toBeLessThan(20e6);
    expect(cpu).toBeLessThan(2);
  });
});
