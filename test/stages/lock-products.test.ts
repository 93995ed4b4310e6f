import { execFileSync } from 'node:child_process';
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SIGNATURE_LINES } from '../../demo/release-signer.ts';
import { readLock, type Lock } from '../../src/stages/resolved/record.ts';
import { writeInstallationConfig } from '../support/installation-iso.ts';
import { createLiveWorld, type LiveWorld, type Outcome } from '../support/live-iso.ts';
import { serveLocally, type LocalServer } from '../support/local-http.ts';
import { addRelease, buildLayeredImage, type TestRelease } from '../support/release.ts';
import { serveByTls, type TlsServer } from '../support/tls-server.ts';
import { requireTool } from '../support/tools.ts';

const hasTools = ['genisoimage', 'isohybrid', 'openssl'].map((tool) => requireTool(tool));
const LOCK = 'sealift.lock.json';
const NOBODY = 'http://127.0.0.1:1/graph';

let world: LiveWorld;
let before: TestRelease;
let graph: LocalServer;
const graphed = [0, 1];
const at = (...names: readonly string[]): string => join(world.directory, ...names);
const tool = (): string => `${world.registry.host}/team/tool:1`;

async function addTool(content: string): Promise<void> {
  const text = Buffer.alloc(40_000, content).toString();
  world.registry.add('team/tool', await buildLayeredImage([[['usr/bin/x', text]]]), '1');
}

async function runWell(...args: readonly string[]): Promise<Outcome> {
  const outcome = await world.run(...args);
  expect(outcome.exitCode, outcome.stderr).toBe(0);
  return outcome;
}

type Report = { readonly isUpToDate: boolean; readonly stages: readonly { stage: string }[] };

/** Whether nothing was planned at all. */
function isKnown({ stdout }: Outcome): boolean {
  const { isUpToDate, stages } = JSON.parse(stdout) as Report;
  return isUpToDate && stages.every(({ stage }) => stage === 'find unchanged ISO');
}

/** cmp(1) ends with an error where they differ. */
const compare = (...names: readonly [string, string]): void => {
  execFileSync(
    'cmp',
    names.map((name) => at(name)),
  );
};

const changeLock = async (folder: string, change: (lock: Lock) => object): Promise<void> => {
  const lock = JSON.parse(await readFile(at(LOCK), 'utf8')) as Lock;
  await writeFile(at(folder, LOCK), JSON.stringify({ ...lock, ...change(lock) }));
};

const resultOf = ({ stdout }: Outcome): unknown =>
  (JSON.parse(stdout) as { readonly result: string }).result;

beforeAll(async () => {
  if (!hasTools.every(Boolean)) return;
  world = await createLiveWorld();
  before = await addRelease(world.registry, { version: '4.20.9', components: ['only-4-20'] });
  const nodes = [
    { version: '4.20.9', payload: before.pullspec },
    { version: '4.21.3', payload: world.release.pullspec },
  ];
  graph = await serveLocally((_, response) => {
    response.end(JSON.stringify({ nodes, edges: [graphed], conditionalEdges: [] }));
  });
  await addTool('first');
}, 60_000);
afterAll(async () => {
  await graph.close();
  await world.close();
});

describe.skipIf(!hasTools.every(Boolean))('an upgrade ISO', () => {
  const build = (...args: readonly string[]): Promise<Outcome> =>
    runWell('build', 'upgrade-iso', '-o', 'json', ...args);

  async function configure(...lines: readonly string[]): Promise<void> {
    const text = [
      ...['apiVersion: v1beta1', 'kind: ApplianceConfig', 'ocpRelease:', '  version: "4.21.3"'],
      `pullSecret: '{"auths":{"quay.io":{"auth":"dXNlcjpzZWNyZXQtd29yZA=="}}}'`,
      `additionalImages: [{name: "${tool()}"}]`,
      'build:',
      `  insecureRegistries: ["${world.registry.host}"]`,
      ...[...SIGNATURE_LINES, ...lines, ''],
    ];
    await writeFile(at('appliance-config.yaml'), text.join('\n'));
  }

  /** A folder with what a build reads, but for its work directory. */
  async function copyInputs(folder: string): Promise<void> {
    await mkdir(at(folder), { recursive: true });
    for (const name of ['appliance-config.yaml', 'release-signatures', 'release-keys.gpg', LOCK]) {
      await cp(at(name), at(folder, name), { recursive: true });
    }
  }

  beforeAll(async () => {
    world.env['UPDATE_URL_OVERRIDE'] = graph.url;
    await configure();
    await runWell('lock', 'upgrade-iso', '--from', '4.20.9');
  });
  afterAll(() => {
    delete world.env['UPDATE_URL_OVERRIDE'];
  });

  it('has the same bytes from a lock in another folder, where neither tags nor the update graph answer', async () => {
    const { path, base, signatures } = readLock(at(LOCK)) ?? {};
    expect(path).toMatchObject({ from: '4.20.9', hops: [{ version: '4.21.3', risks: [] }] });
    expect([base, Object.keys(signatures ?? {})]).toEqual([undefined, ['4.21.3']]);
    await build('--locked', '--from', '4.20.9', '--output', 'locked.iso');
    await addTool('moved');
    world.registry.breakPath('/v2/team/tool/manifests/1', 403);
    world.env['UPDATE_URL_OVERRIDE'] = NOBODY;
    await copyInputs('elsewhere');
    const config = at('elsewhere/appliance-config.yaml');
    await build(config, '--locked', '--output', 'elsewhere/u.iso');
    compare('locked.iso', 'elsewhere/u.iso');
    const lock = ['--config', config, '--lock', at('elsewhere', LOCK)];
    const again = await runWell('reproduce', 'locked.iso', '-o', 'json', ...lock);
    expect(resultOf(again)).toBe('equal');
    world.registry.breakPath('/v2/team/tool/manifests/1');
    world.env['UPDATE_URL_OVERRIDE'] = graph.url;
    const now = ['reproduce', 'locked.iso', '-o', 'json', '--from', '4.20.9'];
    expect(resultOf(await world.run(...now))).toBe('different');
  });

  it.each<[string, readonly string[], (lock: Lock) => object]>([
    ['path.from', ['--from', '4.20.8'], () => ({})],
    ['path.hops.0.image', [], changeHop],
    ['product', [], () => ({ product: 'live-iso' })],
    ['release.channel', [], ({ release }) => ({ release: { ...release, channel: 'fast' } })],
    ['signatures["4.21.3"]', [], () => ({ signatures: {} })],
    ['images["', [], ({ images }) => ({ images: images.slice(1) })],
  ])('is not built from a lock that differs in %s', async (field, args, change) => {
    await copyInputs('changed');
    await changeLock('changed', change);
    const config = at('changed/appliance-config.yaml');
    const { exitCode, stderr } = await world.run(
      ...['build', 'upgrade-iso', config, '--locked', '--output', 'changed/u.iso', ...args],
    );
    expect(stderr).toContain(field === 'product' ? 'lock.other-product' : 'lock.mismatch');
    expect(stderr).toContain(field);
    expect(exitCode).toBe(3);
  });

  it('is not planned again until its path, a tag or a file next to it changes', async () => {
    await rm(at(LOCK));
    const again = (): Promise<Outcome> => build('--from', '4.20.9', '--output', 'same.iso');
    await again();
    const asked = world.registry.requests.length;
    expect(isKnown(await again())).toBe(true);
    const tags = world.registry.requests.slice(asked).filter((line) => !line.endsWith('/v2/'));
    expect(tags).toEqual([expect.stringContaining('/v2/team/tool/manifests/1')]);
    const { stdout } = await build('--from', '4.20.9', '--output', 'same.iso', '--verify');
    expect(JSON.parse(stdout)).toMatchObject({ isUpToDate: true, verified: { images: 8 } });
    await rm(at('upgrade-4.21.3.yaml'));
    expect(isKnown(await again())).toBe(false);
    expect(isKnown(await again())).toBe(true);
    expect(await readFile(at('upgrade-4.21.3.yaml'), 'utf8')).toContain('# Made by sealift');
    await addTool('another night');
    expect(isKnown(await again())).toBe(false);
    graphed.reverse(); // the order of updates, so that there is no path
    const { exitCode, stderr } = await world.run(
      ...['build', 'upgrade-iso', '--from', '4.20.9', '--output', 'same.iso'],
    );
    expect([exitCode, stderr]).toEqual([3, expect.stringContaining('upgrade.no-path')]);
  });
});

const changeHop = ({ path, images: [image] }: Lock): object => ({
  path: { ...path, hops: path?.hops.map((hop) => ({ ...hop, image })) },
});

describe.skipIf(!hasTools.every(Boolean))('an installation ISO', () => {
  let stream: TlsServer;
  let isServed = true;
  const access = (): readonly string[] => [
    ...['--release', world.release.pullspec, '--insecure-registry', world.registry.host],
    ...['--signatures', 'release-signatures', '--signature-keys', 'release-keys.gpg'],
  ];
  const carrying = (): readonly string[] => [...access(), '--embed-image', tool()];
  const fromStream = (): readonly string[] => [
    ...['--coreos-stream', `${stream.url}/stream.json`, '--ca-bundle', 'server.pem'],
  ];
  const build = (...args: readonly string[]): Promise<Outcome> =>
    runWell('build', 'installation-iso', '-o', 'json', ...args);

  beforeAll(async () => {
    await writeInstallationConfig(world.directory);
    const iso = await readFile(at('test.iso'));
    const [sha256] = execFileSync('sha256sum', [at('test.iso')], { encoding: 'utf8' }).split(' ');
    stream = await serveByTls(world.directory, ({ url }, response) => {
      const disk = { location: `${stream.url}/test.iso`, sha256 };
      const architectures = { x86_64: { artifacts: { metal: { formats: { iso: { disk } } } } } };
      if (url === '/test.iso') response.end(iso);
      else response.writeHead(isServed ? 200 : 404).end(JSON.stringify({ architectures }));
    });
  });
  afterAll(() => stream.close());

  it('has the same bytes from a lock elsewhere, with the images that tags named then', async () => {
    await addTool('first');
    await build('--lock', '--output', 'first.iso', ...carrying());
    const held = readLock(at(LOCK));
    expect(held).toMatchObject({ product: 'installation-iso', seed: { version: '4.21.3' } });
    expect(Object.keys(held?.tags ?? {})).toContain(tool());
    await addTool('moved');
    world.registry.breakPath('/v2/team/tool/manifests/1', 403);
    const locked = [...carrying(), '--locked', '--work-dir', 'other-work'];
    await build('--output', 'again.iso', ...locked);
    compare('first.iso', 'again.iso');
    const lock = ['--config', 'image-based-installation-config.yaml', '--lock', LOCK];
    const args = ['reproduce', 'first.iso', '-o', 'json', ...lock, ...carrying()];
    expect(resultOf(await runWell(...args))).toBe('equal');
    world.registry.breakPath('/v2/team/tool/manifests/1');
    await writeInstallationConfig(world.directory, { seedVersion: '4.21.4' });
    const other = await world.run('build', 'installation-iso', ...locked);
    await writeInstallationConfig(world.directory);
    expect(other.exitCode).toBe(3);
    expect(other.stderr).toContain('seed.version differs from the lock');
  });

  it('is built on the live ISO that a CoreOS stream named for the lock, without the stream', async () => {
    await runWell('lock', 'installation-iso', ...fromStream());
    const { base, places } = readLock(at(LOCK)) ?? {};
    expect([base?.url, places]).toEqual([`${stream.url}/test.iso`, undefined]);
    isServed = false;
    const locked = ['--locked', ...fromStream(), '--work-dir', 'new-work'];
    await build('--output', 'stream.iso', ...locked);
    await build('--output', 'given.iso', '--base-iso', 'test.iso');
    compare('stream.iso', 'given.iso');
    await changeLock('.', () => ({ base: { digest: `sha256:${'0'.repeat(64)}` } }));
    isServed = true;
    const other = await world.run('build', 'installation-iso', ...locked);
    await rm(at(LOCK));
    expect([other.exitCode, other.stderr]).toEqual([3, expect.stringContaining('base.digest')]);
  });

  it('is not planned again until a tag or the ISO of the stream changes', async () => {
    const images = (): Promise<Outcome> => build('--output', 'same.iso', ...carrying());
    await images();
    expect(isKnown(await images())).toBe(true);
    await addTool('another night');
    expect(isKnown(await images())).toBe(false);
    const live = (): Promise<Outcome> => build('--output', 'live.iso', ...fromStream());
    await live();
    const asked = stream.requests.length;
    expect(isKnown(await live())).toBe(true);
    expect(stream.requests.slice(asked)).toEqual(['/stream.json']);
    await writeInstallationConfig(world.directory, { installationDisk: '/dev/vdb' });
    expect(isKnown(await live())).toBe(false);
  });
});
