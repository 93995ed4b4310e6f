import { createHash } from 'node:crypto';
import { cp, mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runProcess } from '../../src/base/process.ts';
import type { PushReport } from '../../src/outputs/artifact.ts';
import type { LiveIsoReport } from '../../src/stages/report/live-iso.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { startPlainRegistry, type PlainRegistry } from '../support/plain-registry.ts';
import { buildLayeredImage } from '../support/release.ts';
import { serveMedium } from '../support/served-medium.ts';
import { requireTool } from '../support/tools.ts';

const TOOLS = ['docker-registry', 'skopeo', 'sha256sum', 'genisoimage', 'isohybrid'];
const hasTools = TOOLS.map(requireTool).every(Boolean);

/** Images beside the release; one of them changes every night. */
const COUNT = 20;
const NIGHTS = ['monday', 'tuesday', 'wednesday'];

describe.skipIf(!hasTools)('three nights of one ISO', () => {
  let world: LiveWorld;
  let registry: PlainRegistry;
  const at = (...names: readonly string[]): string => join(world.directory, ...names);
  const run = async <Result>(...args: readonly string[]): Promise<Result> => {
    const { exitCode, stdout, stderr } = await world.run(...args, '-o', 'json');
    expect([args, exitCode, stderr]).toEqual([args, 0, expect.not.stringContaining('"error"')]);
    return JSON.parse(stdout) as Result;
  };
  const sha256 = async (...names: readonly string[]): Promise<string> =>
    (await runProcess('sha256sum', [at(...names)])).stdout.slice(0, 64);

  /** An image of one layer, whose bytes no compression makes smaller. */
  async function putImage(name: string, night: string): Promise<void> {
    const noise = createNoise(`${name} ${night}`, 400_000);
    world.registry.add(
      `team/${name}`,
      await buildLayeredImage([[['opt/noise', noise]]]),
      'nightly',
    );
  }
  const nameOf = (number: number): string => `image-${number}`;

  beforeAll(async () => {
    world = await createLiveWorld();
    registry = await startPlainRegistry(at('registry'));
    for (let number = 0; number < COUNT; number++) await putImage(nameOf(number), 'first');
    const images = Array.from(
      { length: COUNT },
      (_, number) => `  - name: ${world.registry.host}/team/${nameOf(number)}:nightly`,
    );
    await world.writeConfig('additionalImages:', ...images);
    await mkdir(at('archive'));
    await mkdir(at('site'));
  });
  afterAll(async () => {
    await registry.close();
    await world.close();
  });

  it('are built from each other, pushed by their new blobs, and pulled elsewhere unchanged', async () => {
    for (const [night, name] of NIGHTS.entries()) {
      await putImage(nameOf(night), name);
      await rm(at('.sealift'), { recursive: true, force: true }); // a job of CI has no cache
      const built = await run<LiveIsoReport>('build', '--output', 'ove.iso');
      const address = `oci://${registry.host}/nightly/ove:${name}`;
      const { sent } = await run<PushReport>('push', 'ove.iso', address);
      await run('pull', address, '--output', at('archive', `${name}.iso`), '--no-seed');
      expect(await sha256('archive', `${name}.iso`)).toBe(await sha256('ove.iso'));
      if (night === 0) continue;
      expect(built.bytes.fetched / built.payloadSize).toBeLessThan(0.2);
      expect(sent / built.isoSize).toBeLessThan(0.2);
    }
  });

  it('reach a disconnected site as deltas in parts, one of which is lost on the way', async () => {
    await cp(at('archive', 'monday.iso'), at('site', 'ove.iso'));
    for (const [night, name] of NIGHTS.entries()) {
      const before = NIGHTS[night - 1];
      if (before === undefined) continue;
      const delta = at('archive', `${name}.delta`);
      const isos = [at('archive', `${before}.iso`), at('archive', `${name}.iso`)];
      await run('delta', ...isos, '--output', delta, '--max-part-size', '300KiB');
      const parts = (await runProcess('sh', ['-c', `ls ${delta}.*`])).stdout.trim().split('\n');
      expect(parts.length).toBeGreaterThan(2);
      const arrived = parts.filter((part) => !part.endsWith('.1'));
      await run('apply', at('site', 'ove.iso'), ...arrived, '--in-place');
      expect(await sha256('site', 'ove.iso')).toBe(await sha256('archive', `${name}.iso`));
      await run('verify', at('site', 'ove.iso'));
    }
  });

  it('end with an ISO that serves the images of the last night to skopeo', async () => {
    const medium = await serveMedium(at('site', 'ove.iso'), world.directory);
    try {
      const from = `docker://${medium.host}/team/${nameOf(2)}:nightly`;
      await runProcess('skopeo', ['copy', '--src-tls-verify=false', from, `dir:${at('copied')}`]);
      const served = await readFile(at('copied', 'manifest.json'));
      const source = `docker://${world.registry.host}/team/${nameOf(2)}:nightly`;
      const { stdout } = await runProcess('skopeo', [
        ...['inspect', '--raw', '--tls-verify=false', source],
      ]);
      expect(served.toString()).toBe(stdout);
    } finally {
      await medium.close();
    }
  });
});

/** The same bytes for the same seed. */
function createNoise(seed: string, size: number): string {
  const bytes = createHash('shake256', { outputLength: size }).update(seed).digest();
  return bytes.toString('latin1');
}
