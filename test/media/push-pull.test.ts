import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runProcess } from '../../src/base/process.ts';
import { registerDiff } from '../../src/cli/medium/diff.ts';
import { registerInspect } from '../../src/cli/medium/inspect.ts';
import { registerLs } from '../../src/cli/medium/inspect.ts';
import { registerPull } from '../../src/cli/medium/artifact.ts';
import { registerPush } from '../../src/cli/medium/artifact.ts';
import { registerVerify } from '../../src/cli/medium/verify.ts';
import type { PullReport } from '../../src/media/pull.ts';
import type { PushReport } from '../../src/outputs/artifact.ts';
import type { Places } from '../../src/iso/extent.ts';
import {
  makeNightlyBase,
  noiseImage,
  writeImageDirectory,
  writeNightly,
} from '../support/nightly-medium.ts';
import { startPlainRegistry, type PlainRegistry } from '../support/plain-registry.ts';
import { runCommand } from '../support/run-command.ts';
import { requireTool } from '../support/tools.ts';

const hasTools = ['docker-registry', 'skopeo', 'genisoimage'].map(requireTool).every(Boolean);

const LAYERS = 40;
/** Directories and links take some 10 KB a blob, which is to be little beside it. */
const LAYER = 1_500_000;
const names = (night: string, changed: number): readonly string[] =>
  Array.from({ length: LAYERS }, (_, at) => (at < changed ? `${night}-${at}` : `layer-${at}`));

describe.skipIf(!hasTools)('an ISO as an artifact in docker-registry', () => {
  let home: string;
  let registry: PlainRegistry;
  let other: PlainRegistry;
  const at = (name: string): string => join(home, name);

  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'sealift-oci-'));
    [registry, other] = await Promise.all([
      startPlainRegistry(at('one')),
      startPlainRegistry(at('two')),
    ]);
    const basePath = await makeNightlyBase(home, 'base', 4 << 20);
    let places: Places | undefined;
    for (const [night, changed] of [
      ['monday', 0],
      ['tuesday', 2],
      ['wednesday', 4],
    ] as const) {
      const image = noiseImage(names(night, changed), LAYER);
      const source = `${registry.host}/ocp/release`;
      const images = [{ name: 'everything', source, image }];
      places = await writeNightly(at(`${night}.iso`), { basePath, images, places });
      await writeImageDirectory(at(night), image);
    }
  }, 60_000);
  afterAll(async () => {
    await Promise.all([registry.close(), other.close()]);
    await rm(home, { recursive: true });
  });

  const push = async (iso: string, address: string, ...more: readonly string[]) => {
    const args = ['push', iso, `oci://${address}`, ...more, '-o', 'json'];
    const { exitCode, stdout, stderr } = await runCommand(registerPush, args, { cwd: home });
    expect([args, exitCode, stderr]).toEqual([args, 0, expect.not.stringContaining('error')]);
    return JSON.parse(stdout) as PushReport & { readonly size: number };
  };
  const pull = async (address: string, output: string, ...more: readonly string[]) => {
    const args = ['pull', `oci://${address}`, '--output', output, ...more, '-o', 'json'];
    const { exitCode, stdout, stderr } = await runCommand(registerPull, args, { cwd: home });
    expect([args, exitCode, stderr]).toEqual([args, 0, expect.not.stringContaining('error')]);
    return JSON.parse(stdout) as PullReport;
  };
  const sha256 = async (name: string): Promise<string> =>
    (await runProcess('sha256sum', [at(name)])).stdout.slice(0, 64);
  const skopeo = async (...args: readonly string[]): Promise<string> =>
    (await runProcess('skopeo', args)).stdout;

  it('comes back byte for byte, and sends no layer when it is pushed again', async () => {
    const { sent, layers, size, manifests } = await push(
      'monday.iso',
      `${registry.host}/m/iso:mon`,
    );
    expect([layers >= LAYERS, manifests]).toEqual([true, 1]);
    expect(sent).toBeLessThanOrEqual(size);
    const { digest } = await pull(`${registry.host}/m/iso:mon`, 'back.iso');
    expect(await sha256('back.iso')).toBe(await sha256('monday.iso'));
    expect(digest).toBe(`sha256:${await sha256('monday.iso')}`);
    expect((await push('monday.iso', `${registry.host}/m/iso:again`)).sent).toBe(0);
  });

  it('sends at most 6 % of its size when an earlier nightly is in the repository', async () => {
    const { sent, size, digest } = await push('tuesday.iso', `${registry.host}/m/iso:tue`);
    expect(sent / size).toBeLessThanOrEqual(0.06);
    await pull(`${registry.host}/m/iso@${digest}`, 'tue.iso', '--no-seed');
    expect(await sha256('tue.iso')).toBe(await sha256('tuesday.iso'));
  });

  it('sends at most 1 % of its size when the registry has its images', async () => {
    await skopeo(
      ...['copy', '--dest-tls-verify=false', `dir:${at('wednesday')}`],
      `docker://${registry.host}/ocp/release:wednesday`,
    );
    const { sent, size, mounted } = await push('wednesday.iso', `${registry.host}/m/iso:wed`);
    expect(mounted).toBeGreaterThanOrEqual(4 * LAYER);
    expect(sent / size).toBeLessThanOrEqual(0.01);
  });

  it('is inspected, listed, compared and verified in place, by ranges', async () => {
    const address = `oci://${registry.host}/m/iso:mon`;
    const run = (register: Parameters<typeof runCommand>[0], ...args: readonly string[]) =>
      runCommand(register, args, { cwd: home });
    const inspected = await run(registerInspect, 'inspect', address, '-o', 'json');
    const local = await run(registerInspect, 'inspect', 'monday.iso', '-o', 'json');
    expect([inspected.exitCode, inspected.stdout]).toEqual([0, local.stdout]);
    expect((await run(registerLs, 'ls', address, '/sealift')).stdout).toContain('index.json');
    const verified = await run(registerVerify, 'verify', address);
    expect([verified.exitCode, verified.stderr]).toEqual([0, expect.any(String)]);
    const compared = await run(registerDiff, 'diff', address, 'monday.iso');
    expect(compared.stdout).toContain('no differences');
  });

  it('can be copied to another registry by skopeo, and pulled from there', async () => {
    const { digest } = await push('monday.iso', `${registry.host}/m/iso:mon`);
    const from = `docker://${registry.host}/m/iso`;
    const raw = await skopeo('inspect', '--raw', '--tls-verify=false', `${from}:mon`);
    expect(JSON.parse(raw)).toMatchObject({ artifactType: 'application/vnd.sealift.iso.v1' });
    const tls = ['--src-tls-verify=false', '--dest-tls-verify=false'];
    await skopeo('copy', '--all', ...tls, `${from}:mon`, `docker://${other.host}/copy/iso:mon`);
    expect((await pull(`${other.host}/copy/iso:mon`, 'copied.iso')).manifest).toBe(digest);
    expect(await sha256('copied.iso')).toBe(await sha256('monday.iso'));
  });

  it('becomes several manifests under an index when it has too many layers for one', async () => {
    const address = `${registry.host}/m/iso:many`;
    const { manifests, sent } = await push('monday.iso', address, '--max-layers', '16');
    expect([manifests, sent]).toEqual([4, 0]);
    const from = `docker://${address}`;
    const raw = JSON.parse(await skopeo('inspect', '--raw', '--tls-verify=false', from)) as object;
    expect(raw).toMatchObject({
      mediaType: 'application/vnd.oci.image.index.v1+json',
      artifactType: 'application/vnd.sealift.iso.v1',
    });
    const tls = ['--src-tls-verify=false', '--dest-tls-verify=false'];
    await skopeo('copy', '--all', ...tls, from, `docker://${other.host}/copy/iso:many`);
    await pull(`${other.host}/copy/iso:many`, 'many.iso', '--seed', 'monday.iso');
    expect(await sha256('many.iso')).toBe(await sha256('monday.iso'));
  });
});
