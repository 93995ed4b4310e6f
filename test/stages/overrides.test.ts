import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { requireTool } from '../support/tools.ts';

type Shown = {
  readonly storage: { readonly files: readonly { path: string; contents: { source: string } }[] };
};

const hasTools = [requireTool('genisoimage'), requireTool('isohybrid')].every(Boolean);

describe.skipIf(!hasTools)('mirror/registries.conf next to a configuration', () => {
  let world: LiveWorld;
  beforeAll(async () => {
    world = await createLiveWorld();
    await world.writeConfig();
    await mkdir(join(world.directory, 'mirror'));
  }, 60_000);
  afterAll(() => world.close());

  const write = (text: string): Promise<void> =>
    writeFile(join(world.directory, 'mirror', 'registries.conf'), text);

  async function buildAndRead(output: string): Promise<{ text: string; stderr: string }> {
    const built = await world.run('build', '--output', output);
    expect(built.exitCode, built.stderr).toBe(0);
    const shown = await world.run('ignition', 'show', '--bootstrap', output);
    const { files } = (JSON.parse(shown.stdout) as Shown).storage;
    const file = files.find(({ path }) => path === '/etc/containers/registries.conf');
    const [, base64 = ''] = (file?.contents.source ?? '').split('base64,');
    return { text: Buffer.from(base64, 'base64').toString('utf8'), stderr: built.stderr };
  }

  it('reaches the nodes, and is refused before a blob is fetched if it would hide images', async () => {
    const { text: rendered, stderr } = await buildAndRead('first.iso');
    expect(stderr).not.toContain('replaces the rendered');
    await write(rendered);
    const same = await buildAndRead('second.iso');
    expect(same.text).toBe(rendered);
    expect(same.stderr).not.toContain('replaces the rendered');

    const own = `${rendered}\n[[registry]]\n  location = "registry.example.com"\n  insecure = true\n`;
    await write(own);
    const changed = await buildAndRead('third.iso');
    expect(changed.text).toBe(own);
    expect(changed.stderr).toContain('mirror/registries.conf replaces the rendered');

    await write('unqualified-search-registries = []\n');
    const { requests } = world.registry;
    const before = requests.length;
    const refused = await world.run('build', '--output', 'fourth.iso');
    expect(refused.exitCode).toBe(3);
    expect(refused.stderr).toContain('override.mirrors-missing');
    expect(requests.slice(before).filter((line) => line.includes('/blobs/'))).toEqual([]);
  });
});
