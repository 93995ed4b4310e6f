import { execFileSync } from 'node:child_process';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestFile, hasFile } from '../../src/base/disk/files.ts';
import type { InstallationIsoReport } from '../../src/stages/report/installation-iso.ts';
import { startSealift } from '../support/child.ts';
import { writeInstallationConfig } from '../support/installation-iso.ts';
import { makeIso } from '../support/iso.ts';
import { createLiveWorld, type LiveWorld, type Outcome } from '../support/live-iso.ts';
import { serveByTls } from '../support/tls-server.ts';
import { requireTool } from '../support/tools.ts';

const hasTools = ['genisoimage', 'isohybrid', 'openssl', 'xz'].map((tool) => requireTool(tool));

describe.skipIf(!hasTools.every(Boolean))('the live ISO of an installation ISO', () => {
  let world: LiveWorld;
  const at = (name: string): string => join(world.directory, name);

  beforeAll(async () => {
    world = await createLiveWorld();
  });
  afterAll(() => world.close());

  const build = (base: string, ...args: string[]): Promise<Outcome> =>
    world.run('build', 'installation-iso', '--base-iso', base, ...args);

  async function buildWell(...args: string[]): Promise<InstallationIsoReport> {
    const { exitCode, stdout, stderr } = await build('test.iso', '-o', 'json', ...args);
    expect(exitCode, stderr).toBe(0);
    return JSON.parse(stdout) as InstallationIsoReport;
  }

  it('is extracted from a release payload', async () => {
    await writeInstallationConfig(world.directory);
    const { exitCode, stdout, stderr } = await world.run(
      ...['build', 'installation-iso', '--output', 'payload.iso', '-o', 'json'],
      ...['--release', world.release.pullspec, '--insecure-registry', world.registry.host],
      ...['--signatures', 'release-signatures', '--signature-keys', 'release-keys.gpg'],
    );
    expect(exitCode, stderr).toBe(0);
    const report = JSON.parse(stdout) as InstallationIsoReport;
    expect(report.base.from).toContain('coreos/coreos-x86_64.iso of ');
    const given = await buildWell('--output', 'given.iso');
    expect(report.digest).toBe(given.digest);
  });

  it('is fetched once from an address, and its digest is compared', async () => {
    await writeInstallationConfig(world.directory);
    const bytes = await readFile(at('test.iso'));
    const server = await serveByTls(world.directory, (_, response) => response.end(bytes));
    const url = `${server.url}/test.iso`;
    const sha256 = (await digestFile(at('test.iso'))).slice('sha256:'.length);
    const buildOn = (hex: string): Promise<Outcome> =>
      world.run(
        ...['build', 'installation-iso', '--output', 'fetched.iso', '--work-dir', 'work-fetched'],
        ...['--ca-bundle', 'server.pem', '--base-iso', `${url}?sha256=${hex}&a=b`],
      );
    try {
      const wrong = await buildOn('0'.repeat(64));
      expect(wrong.stderr).toContain('[download.digest]');
      expect(wrong.exitCode).toBe(5);
      const right = await buildOn(sha256);
      expect(right.exitCode, right.stderr).toBe(0);
      expect(right.stdout).toContain(`base      ${url}?a=b`);
      const asked = server.requests.length;
      expect((await buildOn(sha256)).exitCode).toBe(0);
      expect(server.requests).toHaveLength(asked);
      expect(server.requests.every((request) => request === '/test.iso?a=b')).toBe(true);
    } finally {
      await server.close();
    }
  });

  it('may be compressed, with the same result', async () => {
    await writeInstallationConfig(world.directory);
    const plain = await buildWell('--output', 'plain.iso');
    const bytes = await readFile(at('test.iso'));
    await writeFile(at('packed.iso.gz'), gzipSync(bytes));
    await writeFile(
      at('packed.iso.xz'),
      execFileSync('xz', ['-0'], { input: bytes, maxBuffer: 1 << 26 }),
    );
    for (const base of ['packed.iso.gz', 'packed.iso.xz']) {
      const { exitCode, stdout, stderr } = await world.run(
        ...['build', 'installation-iso', '--base-iso', base, '--output', 'unpacked.iso'],
        ...['-o', 'json'],
      );
      expect(exitCode, stderr).toBe(0);
      const report = JSON.parse(stdout) as InstallationIsoReport;
      expect(report.base).toEqual({ ...plain.base, from: at(base) });
      expect(report.digest).toBe(plain.digest);
    }
  });

  it('may be named by a CoreOS stream, given as a file or address', async () => {
    await writeInstallationConfig(world.directory);
    const bytes = gzipSync(await readFile(at('test.iso')));
    const digest = await digestFile(at('test.iso'));
    let text = '';
    const server = await serveByTls(world.directory, ({ url }, response) =>
      response.end(url === '/stream.json' ? text : bytes),
    );
    const location = `${server.url}/live.x86_64.iso.gz`;
    const disk = { location, 'uncompressed-sha256': digest.slice('sha256:'.length) };
    const metal = { formats: { iso: { disk } } };
    text = JSON.stringify({ architectures: { x86_64: { artifacts: { metal } } } });
    await writeFile(at('stream.json'), text);
    const buildOn = (stream: string, output: string): Promise<Outcome> =>
      world.run(
        ...['build', 'installation-iso', '--coreos-stream', stream, '--output', output],
        ...['--ca-bundle', 'server.pem', '--work-dir', 'work-stream', '-o', 'json'],
      );
    try {
      for (const stream of ['stream.json', `${server.url}/stream.json`]) {
        const { exitCode, stdout, stderr } = await buildOn(stream, 'stream.iso');
        expect(exitCode, stderr).toBe(0);
        const { base } = JSON.parse(stdout) as InstallationIsoReport;
        expect(base).toMatchObject({ digest, from: location });
      }
      expect(server.requests).toEqual(['/live.x86_64.iso.gz', '/stream.json']);
      await writeInstallationConfig(world.directory, { architecture: 'arm64' });
      const { exitCode, stderr } = await buildOn('stream.json', 'none.iso');
      expect(exitCode).toBe(3);
      expect(stderr).toContain('"code":"coreos-stream.no-iso"');
      const absent = await buildOn('absent.json', 'none.iso');
      expect(absent.stderr).toContain('"code":"coreos-stream.missing"');
      const plain = await buildOn('http://a.example/stream.json', 'none.iso');
      expect(plain.stderr).toContain('"code":"usage.coreos-stream"');
    } finally {
      await server.close();
    }
  });

  it('may be the ISO that openshift-install would use', async () => {
    await writeInstallationConfig(world.directory);
    const { code, stdout, stderr } = await startSealift(
      ['build', 'installation-iso', '--output', 'override.iso'],
      { cwd: world.directory, env: { OPENSHIFT_INSTALL_OS_IMAGE_OVERRIDE: 'test.iso' } },
    ).ended;
    expect(code, stderr).toBe(0);
    expect(stdout).toContain(
      'note      the live ISO is taken from OPENSHIFT_INSTALL_OS_IMAGE_OVERRIDE',
    );
  });

  it('is not overwritten under any name, nor is a directory', async () => {
    await writeInstallationConfig(world.directory);
    await symlink('test.iso', at('alias.iso'));
    await mkdir(at('directory'));
    const before = await digestFile(at('test.iso'));
    const refused = {
      'test.iso': 'output.is-input',
      './test.iso': 'output.is-input',
      'alias.iso': 'output.link',
      'directory': 'output.not-a-file',
    };
    for (const [output, code] of Object.entries(refused)) {
      const { exitCode, stderr } = await build('test.iso', '--output', output, '--force');
      expect(stderr, output).toContain(`[${code}]`);
      expect(exitCode).toBe(2);
    }
    expect(await digestFile(at('test.iso'))).toBe(before);
  });

  it('is refused if it cannot be trusted or is not a live ISO', async () => {
    await writeInstallationConfig(world.directory);
    await makeIso(world.directory, { files: { readme: 'no CoreOS' } }, 'plain.iso');
    const cut = (await readFile(at('test.iso'))).subarray(0, 1_000_000);
    await writeFile(at('cut.iso'), cut);
    const reasons = {
      'plain.iso': 'base-iso.not-coreos',
      'image-based-installation-config.yaml': 'iso.not-iso9660',
      'cut.iso': 'iso.truncated',
      'absent.iso': 'base-iso.missing',
      'https://mirror.example/a.iso': 'usage.base-iso',
      'http://mirror.example/a.iso': 'usage.base-iso',
    };
    for (const [base, reason] of Object.entries(reasons)) {
      const { exitCode, stderr } = await world.run(
        ...['build', 'installation-iso', '--output', 'refused.iso', '--base-iso', base],
      );
      expect(stderr, base).toContain(`[${reason}]`);
      expect([2, 3, 5]).toContain(exitCode);
      expect(await hasFile(at('refused.iso'))).toBe(false);
    }
  });
});
