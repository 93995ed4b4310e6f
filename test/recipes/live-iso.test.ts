import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestFile, hasFile } from '../../src/base/files.ts';
import type { CliHost } from '../../src/cli/host.ts';
import { runProgram } from '../../src/cli/program.ts';
import { serveImages, type ImageRegistry } from '../support/image-registry.ts';
import { makeCoreosIso } from '../support/iso.ts';
import { addRelease, type TestRelease } from '../support/release.ts';
import { requireTool } from '../support/tools.ts';

type Outcome = { readonly exitCode: number; readonly stdout: string; readonly stderr: string };

describe.skipIf(!requireTool('genisoimage') || !requireTool('isohybrid'))('a live ISO', () => {
  let directory: string;
  let registry: ImageRegistry;
  let release: TestRelease;

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sealift-live-'));
    registry = await serveImages();
    const base = await makeCoreosIso(directory);
    release = await addRelease(registry, { iso: await readFile(base) });
  });
  afterAll(async () => {
    await registry.close();
    await rm(directory, { recursive: true, force: true });
  });

  async function run(...args: string[]): Promise<Outcome> {
    const stdout = new PassThrough();
    const stderr = new PassThrough();
    const host: CliHost = {
      ...{ stdout, stderr, cwd: directory, isTTY: false, now: Date.now },
      env: { HOME: directory },
      signal: new AbortController().signal,
    };
    const exitCode = await runProgram(args, host);
    const text = (stream: PassThrough): string => String(stream.read() ?? '');
    return { exitCode, stdout: text(stdout), stderr: text(stderr) };
  }

  async function writeConfig(extra = ''): Promise<void> {
    await writeFile(
      join(directory, 'appliance-config.yaml'),
      [
        'apiVersion: v1beta1',
        'kind: ApplianceConfig',
        'ocpRelease:',
        '  version: "4.21.3"',
        `  url: ${release.pullspec}`,
        `pullSecret: '{"auths":{"quay.io":{"auth":"dXNlcjpzZWNyZXQtd29yZA=="}}}'`,
        'sshKey: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1x1r0h0mXr3ZbU0Z5m5sWg8c2v6H1p0y8tQ2mC3sKd me',
        'enableInteractiveFlow: true',
        'build:',
        '  ignition: embedded',
        `  insecureRegistries: ["${registry.host}"]`,
        extra,
        '',
      ].join('\n'),
    );
  }

  it('has exactly the size that the plan told, and the same bytes when it is built again', async () => {
    await writeConfig();
    const plan = await run('plan', '-o', 'json');
    expect(plan.stderr).not.toContain('secret-word');
    expect(plan.exitCode, plan.stderr).toBe(0);
    const planned = JSON.parse(plan.stdout) as { isoSize: number; bytesToFetch: number };
    const first = await run('build', '--output', 'one.iso');
    expect(first.exitCode, first.stderr).toBe(0);
    const iso = await readFile(join(directory, 'one.iso'));
    expect(iso.length).toBe(planned.isoSize);
    expect(first.stdout).toContain('next: sealift verify one.iso');
    const second = await run('build', 'live-iso', '--output', 'two/two.iso', '--work-dir', 'other');
    expect(second.exitCode, second.stderr).toBe(0);
    expect(await digestFile(join(directory, 'two/two.iso'))).toBe(
      await digestFile(join(directory, 'one.iso')),
    );
    const sum = await readFile(join(directory, 'one.iso.sha256'), 'utf8');
    expect(sum).toBe(`${(await digestFile(join(directory, 'one.iso'))).slice(7)}  one.iso\n`);
    const report = await readFile(join(directory, 'one.iso.report.json'), 'utf8');
    expect(report).not.toMatch(/secret-word|dXNlcjpz/);
    expect(iso.includes('secret-word')).toBe(false);
    expect(iso.includes('dXNlcjpz')).toBe(false);
    expect(await hasFile(join(directory, 'one.iso.partial'))).toBe(false);
  });
});
