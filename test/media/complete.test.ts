import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Digest, hexOf } from '../../src/base/digest.ts';
import { textFile } from '../../src/ignition/index.ts';
import { parseResolved } from '../../src/ignition/resolve.ts';
import type { IsoImage } from '../../src/iso/index.ts';
import { openIso } from '../../src/iso/read/open.ts';
import { findIncomplete, mayBeLeftOut } from '../../src/media/complete.ts';
import { readIndex, type MediaIndex } from '../../src/media/media-index.ts';
import { findNamingParts, listNamedImages, readShelf } from '../../src/media/named-images.ts';
import { readBootstrapIgnition } from '../../src/media/open.ts';
import { isoRegistryTree } from '../../src/media/tree.ts';
import type { Verification } from '../../src/media/verify-contents.ts';
import { formatReference, type RegistryTree } from '../../src/registry/index.ts';
import { addCatalog, buildStandIn, makeOperator } from '../support/catalog.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { requireTool } from '../support/tools.ts';

const hasTools = [requireTool('genisoimage'), requireTool('isohybrid')].every(Boolean);
const signal = new AbortController().signal;

describe.skipIf(!hasTools)('the images that a medium names', () => {
  let world: LiveWorld;
  let iso: IsoImage;
  let index: MediaIndex | undefined;
  let tree: RegistryTree;
  const build = async (name: string, ...lines: string[]): Promise<IsoImage> => {
    await world.writeConfig(
      `additionalImages: [{name: "${world.registry.host}/rhel9/tools:1"}]`,
      'operators:',
      `  - catalog: ${world.registry.host}/redhat/index:v4.21`,
      ...lines,
    );
    const built = await world.run('build', '--output', name, '--force');
    expect(built.exitCode, built.stderr).toBe(0);
    return openIso(join(world.directory, name));
  };

  beforeAll(async () => {
    world = await createLiveWorld();
    const { registry } = world;
    const alpha = await makeOperator(
      { registry, host: registry.host },
      { name: 'alpha', channels: { stable: ['1.0.0', '1.1.0'] } },
    );
    await addCatalog(registry, 'redhat/index', {
      tag: 'v4.21',
      files: { 'a/catalog.json': alpha },
    });
    registry.add('rhel9/tools', await buildStandIn('tools'), '1');
    iso = await build('names.iso');
    index = await readIndex(iso);
    tree = isoRegistryTree(iso, '/registry');
  }, 120_000);
  afterAll(async () => {
    await iso.close();
    await world.close();
  });

  it('are those of its release, catalogs, catalog sources and additional images', async () => {
    const config = parseResolved((await readBootstrapIgnition(iso)) ?? '', 'bootstrap');
    const parts = await findNamingParts({ tree, index, config });
    const { named, unread } = await listNamedImages(parts, signal);
    expect(unread).toEqual([]);
    const needs = named.map(({ image, neededBy }) => [formatReference(image), neededBy] as const);
    const parted = new Set(needs.map(([, { part }]) => part));
    expect([...parted].sort()).toEqual([
      'CatalogSource cs-index-v4-21',
      'additional images',
      'alpha',
      'release 4.21.3',
    ]);
    const { host } = world.registry;
    expect(needs).toContainEqual([
      `${host}/ocp/art-dev@${world.release.components['etcd'] ?? ''}`,
      { part: 'release 4.21.3', component: 'etcd' },
    ]);
    expect(needs).toContainEqual([`${host}/rhel9/tools:1`, { part: 'additional images' }]);
    expect(needs.filter(([, { bundle }]) => bundle === 'alpha.v1.1.0')).toHaveLength(2);
  });

  it('are found on a medium as it was built, without its index too', async () => {
    for (const known of [index, undefined]) {
      const found = await findIncomplete(iso, { tree, index: known }, signal);
      expect(found).toEqual({ absent: [], unread: [] });
    }
  });

  it('are named with what needs them when their links are gone', async () => {
    const etcd = world.release.components['etcd'] ?? '';
    const without: RegistryTree = {
      ...tree,
      list: async (path) =>
        (await tree.list(path))?.filter((name) => `sha256:${name}` !== etcd && name !== '1'),
    };
    expect((await readShelf(without)).size).toBeLessThan((await readShelf(tree)).size);
    const { absent } = await findIncomplete(iso, { tree: without, index }, signal);
    const { host } = world.registry;
    expect(absent).toEqual([
      {
        image: `${host}/rhel9/tools:1`,
        neededBy: [{ part: 'additional images' }],
        asked: ['rhel9/tools'],
      },
      {
        image: `${host}/ocp/art-dev@${etcd}`,
        neededBy: [{ part: 'release 4.21.3', component: 'etcd' }],
        asked: ['openshift/release'],
      },
    ]);
  });

  it('do not count if the build left them out on purpose', async () => {
    const etcd = world.release.components['etcd'] ?? '';
    const blocked = await build(
      'blocked.iso',
      `blockedImages: [{name: "${etcd}"}, {name: "alpha/operand"}]`,
    );
    try {
      expect((await readIndex(blocked))?.leftOut).toHaveLength(2);
      const verified = await world.run('verify', 'blocked.iso');
      expect(verified.exitCode, verified.stdout + verified.stderr).toBe(0);
    } finally {
      await blocked.close();
    }
  });

  it('are named by verify if the registry of the medium does not have them', async () => {
    const etcd = hexOf((world.release.components['etcd'] ?? '') as Digest);
    const bytes = await readFile(iso.path, 'latin1');
    const renamed = etcd.replace(/.$/, (digit) => (digit === '0' ? '1' : '0'));
    await writeFile(
      join(world.directory, 'renamed.iso'),
      bytes.replaceAll(etcd, renamed),
      'latin1',
    );
    const { exitCode, stdout } = await world.run('verify', 'renamed.iso', '-o', 'json');
    expect(exitCode).toBe(8);
    const { problems } = JSON.parse(stdout) as Verification;
    expect(problems.filter(({ kind }) => kind === 'missing')).toEqual([
      {
        severity: 'error',
        code: 'verify.missing',
        kind: 'missing',
        problem:
          'is not where hosts look (needed by etcd of release 4.21.3): looked in openshift/release',
        images: [`${world.registry.host}/ocp/art-dev@sha256:${etcd}`],
      },
    ]);
  });

  it('are looked for by the configs as hosts merge them, and a broken one is a problem', async () => {
    const look = async (conf: string): Promise<{ exitCode: number; problems: string[] }> => {
      const file = textFile('/etc/containers/registries.conf', conf, 0o644);
      const config = { ignition: { version: '3.2.0' }, storage: { files: [file] } };
      await writeFile(join(world.directory, 'override.ign'), JSON.stringify(config));
      const out = ['--output', 'override.iso', '--force'];
      const made = await world.run(
        'customize',
        'names.iso',
        '--ignition-override',
        'override.ign',
        ...out,
      );
      expect(made.exitCode, made.stderr).toBe(0);
      const { exitCode, stdout } = await world.run('verify', 'override.iso', '-o', 'json');
      const { problems } = JSON.parse(stdout) as Verification;
      return { exitCode, problems: problems.map(({ problem }) => problem) };
    };
    const elsewhere = await look('[[registry]]\nlocation = "127.0.0.1"\nblocked = true\n');
    expect(elsewhere.exitCode).toBe(8);
    expect(elsewhere.problems).toContainEqual(expect.stringContaining('is not where hosts look'));
    expect(await look('[[registry')).toEqual({
      exitCode: 8,
      problems: ['registries.conf: registries.conf of the nodes: it is not TOML'],
    });
  });
});

describe('an image that a medium does not have', () => {
  const digest = `sha256:${'a'.repeat(64)}`;
  const carried = {
    name: 'etcd',
    set: 'release',
    source: 'quay.io/tools:1',
    repository: 'ocp',
    tags: [],
    manifests: [digest],
  };

  it('may have been left out by a version that did not record it', () => {
    const index = { images: [carried] };
    expect(mayBeLeftOut('quay.io/other:1', index)).toBe(true);
    expect(mayBeLeftOut(`quay.io/ocp@sha256:${'b'.repeat(64)}`, index)).toBe(true);
  });

  it('is missing if the build carried it, or would have recorded it, or without an index', () => {
    expect(mayBeLeftOut(`quay.io/ocp@${digest}`, { images: [carried] })).toBe(false);
    expect(mayBeLeftOut('quay.io/tools:1', { images: [carried] })).toBe(false);
    expect(mayBeLeftOut('quay.io/other:1', { images: [], program: '0.2.0' })).toBe(false);
    expect(mayBeLeftOut('quay.io/other:1', { images: [], leftOut: ['x'] })).toBe(false);
    expect(mayBeLeftOut('quay.io/other:1', undefined)).toBe(false);
  });
});
