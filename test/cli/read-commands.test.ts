import { copyFile, open, readFile, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runProcess } from '../../src/base/process.ts';
import { runProgram } from '../../src/cli/program.ts';
import { openIso } from '../../src/iso/read/open.ts';
import { type MediaIndex, readIndex } from '../../src/media/media-index.ts';
import { InterruptedError } from '../../src/base/errors.ts';
import { makeIso } from '../support/iso.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { requireTool } from '../support/tools.ts';

const hasTools = requireTool('genisoimage') && requireTool('isohybrid');
const hasSkopeo = requireTool('skopeo') && requireTool('openssl');

describe.skipIf(!hasTools)('a command that reads an ISO', () => {
  let world: LiveWorld;
  let index: Pick<MediaIndex, 'images' | 'extents'>;
  let foreign: string;
  beforeAll(async () => {
    world = await createLiveWorld();
    await world.writeConfig('  kernelArguments: ["debug=1"]');
    const built = await world.run('build', '--output', 'live.iso');
    expect(built.exitCode, built.stderr).toBe(0);
    const iso = await openIso(join(world.directory, 'live.iso'));
    index = (await readIndex(iso)) ?? { images: [], extents: [] };
    await iso.close();
    foreign = await makeIso(world.directory, {
      files: { 'a/b.txt': 'hello\n' },
      args: ['-V', 'FOREIGN', '-r'],
    });
  });
  afterAll(() => world.close());

  it('describes a medium', async () => {
    const { exitCode, stdout } = await world.run('inspect', 'live.iso', '-o', 'json');
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      extensions: { rockRidge: true, joliet: false },
      coreos: { ignition: true, bootstrapIgnition: true, kargAreas: 2 },
      media: { product: 'live-iso', release: { version: '4.21.3' }, images: { release: 7 } },
    });
    const text = await world.run('inspect', 'live.iso');
    expect(text.stdout).toMatch(/kernel args {4}coreos\.liveiso=\S+ .* debug=1\n/);
  });

  it('describes an ISO of another maker as far as possible', async () => {
    const { exitCode, stdout } = await world.run('inspect', foreign);
    expect(exitCode).toBe(0);
    expect(stdout).toContain('volume         FOREIGN');
    expect(stdout).toContain('not a CoreOS live ISO');
    expect((await world.run('verify', foreign)).exitCode).toBe(10);
    expect((await world.run('ls', foreign, '-R')).stdout).toBe('/a/\n/a/b.txt\n');
    expect((await world.run('cat', foreign, '/a/b.txt')).stdout).toBe('hello\n');
    expect((await world.run('cat', foreign, '/a')).exitCode).toBe(2);
    expect((await world.run('ls', foreign, '/none')).exitCode).toBe(2);
    expect((await world.run('ignition', 'show', foreign)).exitCode).toBe(5);
    expect((await world.run('registry', 'serve', foreign)).exitCode).toBe(3);
  });

  it('prints both Ignition configs', async () => {
    const shown = await world.run('ignition', 'show', 'live.iso');
    expect(shown.stdout).toContain('/etc/assisted/interactive-ui');
    const bootstrap = await world.run('ignition', 'show', '--bootstrap', 'live.iso');
    expect(bootstrap.stdout).toContain('start-local-registry.service');
  });

  /** Verifies a copy after something was done to it. */
  async function verifyAfter(damage: (path: string) => Promise<void>): Promise<string> {
    const path = join(world.directory, 'damaged.iso');
    await copyFile(join(world.directory, 'live.iso'), path);
    await damage(path);
    const { exitCode, stdout, stderr } = await world.run('verify', 'damaged.iso');
    expect(exitCode, stdout + stderr).toBe(8);
    return stdout;
  }

  const flip = async (path: string, offset: number): Promise<void> => {
    const file = await open(path, 'r+');
    const byte = Buffer.alloc(1);
    await file.read(byte, 0, 1, offset);
    byte[0] = (byte[0] ?? 0) ^ 1;
    await file.write(byte, 0, 1, offset);
    await file.close();
  };

  it('reports an undamaged medium as whole', async () => {
    const { exitCode, stdout } = await world.run('verify', 'live.iso', '-o', 'json');
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ ok: true, problems: [] });
  });

  it('names a damaged blob, its place and the image that needs it', async () => {
    // The largest: the small ones may be of the list of images, which no image needs.
    const [blob] = index.extents
      .filter(({ paths }) => paths[0]?.endsWith('/data') === true)
      .sort((a, b) => b.size - a.size);
    const offset = (blob?.offset ?? 0) + (blob?.size ?? 0) - 1;
    const told = await verifyAfter((path) => flip(path, offset));
    expect(told).toContain(`content: ${blob?.paths[0] ?? ''}`);
    expect(told).toContain(`bytes ${blob?.offset ?? 0} to ${offset}`);
    expect(told).toMatch(/needed by [a-z]/);
    expect(told).toContain(`expected ${blob?.digest ?? ''}`);
  });

  it.each([
    ['the system area', () => 440],
    ['a volume descriptor', () => 16 * 2048 + 82],
    [
      'directories',
      () =>
        (index.extents.find((e) => e.paths.length === 0 && e.offset > 1_000_000)?.offset ?? 0) + 40,
    ],
  ])('finds a flipped bit in %s', async (_what, offset) => {
    await verifyAfter((path) => flip(path, offset()));
  });

  it('finds an index that contradicts the directories', async () => {
    const extent = index.extents.find(({ paths }) => paths[0] === '/sealift/index.json');
    const text = await readFile(join(world.directory, 'live.iso'));
    const at = text.indexOf('/registry/docker', extent?.offset);
    const told = await verifyAfter((path) => flip(path, at + 1));
    expect(told).toContain('is in the index only');
  });

  it.each(['"digest": "sha256', '"manifests":', '"release":', '"architecture":'])(
    'finds an index whose %s is damaged',
    async (key) => {
      const extent = index.extents.find(({ paths }) => paths[0] === '/sealift/index.json');
      const text = await readFile(join(world.directory, 'live.iso'));
      const at = text.indexOf(key, extent?.offset);
      expect(at).toBeGreaterThan(0);
      const told = await verifyAfter((path) => flip(path, at + 2));
      expect(told).toContain('index:');
    },
  );

  it('finds that a medium is cut off', async () => {
    const told = await verifyAfter((path) => truncate(path, 3_000_000));
    expect(told).toContain('structure');
  });

  it.skipIf(!hasSkopeo)('serves its registry to skopeo with every digest unchanged', async () => {
    const stop = new AbortController();
    const host = world.host(stop.signal);
    const serving = runProgram(['registry', 'serve', 'live.iso', '--port', '0'], host);
    let told = '';
    while (!told.includes('try:')) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      told += String(host.stderr.read() ?? '');
    }
    const where = /http:\/\/(\S+);/.exec(told)?.[1] ?? '';
    const [image] = index.images.filter(({ name }) => name === 'etcd');
    const source = `docker://${where}/${image?.repository ?? ''}`;
    const digest = image?.manifests[0] ?? '';
    const { stdout } = await runProcess('skopeo', [
      ...['inspect', '--tls-verify=false', `${source}:${image?.tags[0] ?? ''}`],
    ]);
    expect(JSON.parse(stdout)).toMatchObject({ Digest: digest });
    await runProcess('skopeo', [
      ...['copy', '--src-tls-verify=false', '--preserve-digests', `${source}@${digest}`],
      `dir:${world.directory}/copy`,
    ]);
    const manifest = await readFile(join(world.directory, 'copy/manifest.json'));
    expect(manifest.length).toBeGreaterThan(100);
    stop.abort(new InterruptedError('SIGINT'));
    expect(await serving).toBe(130);
  });
});
