import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runProcess } from '../../src/base/process.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { startPlainRegistry, type PlainRegistry } from '../support/plain-registry.ts';
import { buildLayeredImage } from '../support/release.ts';
import { requireTool } from '../support/tools.ts';

const hasTools = ['docker-registry', 'skopeo', 'genisoimage'].map(requireTool).every(Boolean);

const TOOL = 9_000_000;

type Report = {
  readonly isoSize: number;
  readonly bytes: { readonly fetched: number; readonly reused: number; readonly written: number };
};

describe.skipIf(!hasTools)('an ISO that is built into a registry', () => {
  let home: string;
  let world: LiveWorld;
  let registry: PlainRegistry;

  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'sealift-built-artifact-'));
    registry = await startPlainRegistry(home);
    world = await createLiveWorld();
    const layer = [['usr/bin/tool', randomBytes(TOOL)]] as const;
    world.registry.add('team/tool', await buildLayeredImage([layer]), '1');
    const here = [['usr/bin/other', randomBytes(TOOL)]] as const;
    world.registry.add('team/other', await buildLayeredImage([here]), '1');
    await runProcess('skopeo', [
      ...['copy', '--src-tls-verify=false', '--dest-tls-verify=false'],
      `docker://${world.registry.host}/team/other:1`,
      `docker://${registry.host}/team/other:1`,
    ]);
    const names = [`${world.registry.host}/team/tool:1`, `${registry.host}/team/other:1`];
    const list = names.map((name) => `{name: "${name}"}`);
    await world.writeConfig(`additionalImages: [${list.join(', ')}]`);
  }, 60_000);
  afterAll(async () => {
    await registry.close();
    await world.close();
    await rm(home, { recursive: true });
  });

  const run = async (...args: readonly string[]): Promise<string> => {
    const { exitCode, stdout, stderr } = await world.run(...args);
    expect([args, exitCode, stderr]).toEqual([args, 0, expect.not.stringContaining('error')]);
    return stdout;
  };
  const build = async (output: string): Promise<Report> =>
    JSON.parse(
      await run('build', '--output', output, '--base-iso', 'test.iso', '-o', 'json'),
    ) as Report;
  const sha256 = async (name: string): Promise<string> =>
    (await runProcess('sha256sum', [join(world.directory, name)])).stdout.slice(0, 64);

  it('is pulled with the bytes of a local build, without having been on a disk', async () => {
    const address = `oci://${registry.host}/media/appliance:1`;
    const { bytes, isoSize } = await build(address);
    expect(bytes.written).toBeLessThanOrEqual(isoSize);
    // One of the two images is in the registry, and is mounted.
    expect(bytes.fetched).toBeGreaterThan(TOOL);
    expect(bytes.fetched).toBeLessThan(2 * TOOL);
    expect(bytes.reused).toBeGreaterThan(TOOL);
    expect(existsSync(join(world.directory, 'appliance.iso.partial'))).toBe(false);
    const raw = await runProcess('skopeo', [
      ...['inspect', '--raw', '--tls-verify=false'],
      address.replace('oci:', 'docker:'),
    ]);
    expect(JSON.parse(raw.stdout)).toMatchObject({
      artifactType: 'application/vnd.sealift.iso.v1',
    });
    await run('pull', address, '--output', 'pulled.iso');
    await build('local.iso');
    expect(await sha256('pulled.iso')).toBe(await sha256('local.iso'));
  });

  it('sends no layer twice, and fetches no layer that the registry has', async () => {
    const { bytes } = await build(`oci://${registry.host}/media/appliance:2`);
    expect(bytes.written).toBe(0);
    expect(bytes.fetched).toBeLessThan(1_000_000);
  });
});
