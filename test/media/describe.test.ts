import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { digestOf, hexOf, type Digest } from '../../src/base/digest.ts';
import { runProcess } from '../../src/base/process.ts';
import { openIso } from '../../src/iso/read/open.ts';
import { type BundleFile, compareBundleImage } from '../../src/media/describe.ts';
import { type MediaIndex, readIndex } from '../../src/media/media-index.ts';
import type { Verification } from '../../src/media/verify-contents.ts';
import { directoryTree } from '../../src/registry/layout/tree.ts';
import { TEST_VOLUME_ID } from '../support/iso.ts';
import { buildLayeredImage } from '../support/release.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { startPlainRegistry } from '../support/plain-registry.ts';
import { requireTool } from '../support/tools.ts';

const TOOLS = ['genisoimage', 'isohybrid', 'bsdtar', 'isoinfo', 'skopeo', 'docker-registry'];
const hasTools = TOOLS.map((tool) => requireTool(tool)).every(Boolean);

const NAME = 'ocp-release-bundle-4.21.3-x86_64';

describe.skipIf(!hasTools)('the list of images on a live ISO', () => {
  let world: LiveWorld;
  let index: MediaIndex;
  let original: Buffer;
  const at = (name: string): string => join(world.directory, name);

  beforeAll(async () => {
    world = await createLiveWorld();
    const { registry } = world;
    registry.add('team/tool', await buildLayeredImage([[['usr/bin/tool', 'tool']]]), '1');
    await world.writeConfig(`additionalImages: [{name: "${registry.host}/team/tool:1"}]`);
    const { exitCode, stderr } = await world.run('build', '--output', 'live.iso');
    expect(exitCode, stderr).toBe(0);
    original = await readFile(at('live.iso'));
    const iso = await openIso(at('live.iso'));
    index = (await readIndex(iso)) ?? expect.fail('the ISO has no index');
    await iso.close();
    await runProcess('mkdir', [at('tree')]);
    await runProcess('bsdtar', ['-xf', at('live.iso'), '-C', at('tree')]);
  }, 60_000);
  afterAll(() => world.close());
  beforeEach(() => rm(at('damaged.iso'), { force: true }));

  const readList = async (): Promise<BundleFile> =>
    JSON.parse(await readFile(at('tree/bundle.json'), 'utf8')) as BundleFile;

  it('names the release and every image of the registry by digest', async () => {
    const { release } = world;
    const list = await readList();
    expect(index.base?.osStream).toBe('rhel-9');
    expect(list).toMatchObject({
      format: 1,
      name: NAME,
      version: '4.21.3',
      architecture: 'x86_64',
      release: { image: release.pullspec, digest: release.digest },
    });
    const served = index.images.filter(({ set }) => set !== 'registry');
    expect(list.images.map(({ manifests }) => manifests)).toEqual(
      served.map(({ manifests }) => manifests),
    );
    for (const digest of Object.values(release.components)) {
      expect(list.images).toContainEqual(
        expect.objectContaining({ set: 'release', repository: 'openshift/release', digest }),
      );
    }
    expect(list.images).toContainEqual(
      expect.objectContaining({ set: 'additional', repository: 'team/tool', tags: ['1'] }),
    );
  });

  it('has digests by which skopeo pulls every image from the registry of the medium', async () => {
    await runProcess('mkdir', [at('site')]);
    await runProcess('cp', ['-r', at('tree/registry'), at('site/store')]);
    await runProcess('chmod', ['-R', 'u+w', at('site/store')]);
    const registry = await startPlainRegistry(at('site'));
    const inspect = (name: string): Promise<{ readonly stdout: string }> =>
      runProcess('skopeo', [
        ...['inspect', '--raw', '--tls-verify=false', `docker://${registry.host}/${name}`],
      ]);
    try {
      for (const { repository, digest } of (await readList()).images) {
        await inspect(`${repository}@${digest}`);
      }
      const { stdout } = await inspect(`openshift/release-bundles:${NAME}`);
      expect(JSON.parse(stdout)).toMatchObject({
        annotations: { 'com.openshift.release-image-digest': world.release.digest },
      });
      await runProcess('skopeo', [
        ...['copy', '--src-tls-verify=false'],
        ...[`docker://${registry.host}/openshift/release-bundles:${NAME}`, `dir:${at('bundle')}`],
      ]);
    } finally {
      await registry.close();
    }
    const manifest = JSON.parse(await readFile(at('bundle/manifest.json'), 'utf8')) as {
      layers: [{ digest: Digest }];
    };
    const layer = at(`bundle/${hexOf(manifest.layers[0].digest)}`);
    const { stdout } = await runProcess('tar', ['-xOf', layer, 'bundle.json']);
    expect(`${stdout}\n`).toBe(await readFile(at('tree/bundle.json'), 'utf8'));
  }, 60_000);

  it('does not change the volume label of the base, and adds one release tag to the registry', async () => {
    const { stdout: volume } = await runProcess('isoinfo', ['-d', '-i', at('live.iso')]);
    expect(volume).toContain(`Volume id: ${TEST_VOLUME_ID}\n`);
    const repositories = at('tree/registry/docker/registry/v2/repositories/openshift');
    const tagsOf = async (name: string): Promise<string> =>
      (await runProcess('ls', [join(repositories, name, '_manifests/tags')])).stdout;
    expect(await tagsOf('release-images')).toBe(hexOf(world.release.digest));
    expect(await tagsOf('release-bundles')).toBe(NAME);
  });

  it('is shown by inspect, with its damage if it is damaged', async () => {
    const { stdout } = await world.run('inspect', 'live.iso');
    const count = (await readList()).images.length;
    expect(stdout).toContain(`bundle         ${NAME}, ${count} images by digest\n`);
    await writeDamaged('"format": 1', '"format": 2');
    const damaged = await world.run('inspect', 'damaged.iso');
    expect(damaged.exitCode).toBe(0);
    expect(damaged.stdout).toContain('bundle         damaged: /bundle.json has an unknown format');
  });

  it.each([
    ['"version": "4.21.3"', '"version": "4.21.4"', 'has version 4.21.4 instead of 4.21.3'],
    ['"repository": "team/tool"', '"repository": "team/toll"', 'lists team/toll@sha256:'],
    ['"repository": "team/tool"', '"repository": "team/toll"', 'does not list team/tool@sha256:'],
    [`"name": "${NAME}"`, `"name": "${NAME}"`.replace('.3-', '.9-'), 'not in the registry'],
    ['"images": [', '"images": 1', 'is not JSON'],
  ])('is reported by verify when %s is changed to %s', async (from, to, problem) => {
    await writeDamaged(from, to);
    const { exitCode, stdout } = await world.run('verify', 'damaged.iso', '-o', 'json');
    expect(exitCode).toBe(8);
    const { problems } = JSON.parse(stdout) as Verification;
    const texts = problems.filter(({ kind }) => kind === 'bundle').map(({ problem }) => problem);
    expect(texts).toContainEqual(expect.stringContaining(problem));
  });

  it('must have the digest in the annotation of the release bundle', async () => {
    const tree = directoryTree(at('tree/registry'));
    const list = await readList();
    expect(await compareBundleImage(tree, list)).toEqual([]);
    const digest = digestOf('another release');
    const release = { ...list.release, digest };
    expect(await compareBundleImage(tree, { ...list, release })).toEqual([
      `names release ${digest}, but the release bundle names "${world.release.digest}"`,
    ]);
  });

  /** The ISO after the first such text in it was replaced by one of the same length or less. */
  async function writeDamaged(from: string, to: string): Promise<void> {
    const place = original.indexOf(from, original.indexOf('"architecture": "x86_64",\n  "format"'));
    const found = place === -1 ? original.indexOf(from) : place;
    expect(found).toBeGreaterThan(0);
    const bytes = Buffer.from(original);
    bytes.write(to.padEnd(from.length), found);
    await writeFile(at('damaged.iso'), bytes);
  }
});
