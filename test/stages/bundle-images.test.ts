import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hexOf, type Digest } from '../../src/base/digest.ts';
import { addCatalog, buildStandIn, topDigest, type TestDocument } from '../support/catalog.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { serveMedium } from '../support/served-medium.ts';
import { requireTool } from '../support/tools.ts';

const hasTools = [requireTool('genisoimage'), requireTool('isohybrid')].every(Boolean);

/** A package of one channel, each bundle replacing the one before. */
function makePackage(
  name: string,
  bundles: readonly { readonly version: string; readonly images: readonly string[] }[],
): readonly TestDocument[] {
  const nameOf = (version: string): string => `${name}.v${version}`;
  return [
    { schema: 'olm.package', name, defaultChannel: 'stable' },
    {
      schema: 'olm.channel',
      package: name,
      name: 'stable',
      entries: bundles.map(({ version }, at) => ({
        name: nameOf(version),
        ...(at > 0 && { replaces: nameOf(bundles[at - 1]?.version ?? '') }),
      })),
    },
    ...bundles.map(({ version, images: [own = '', ...related] }) => ({
      schema: 'olm.bundle',
      package: name,
      name: nameOf(version),
      image: own,
      properties: [{ type: 'olm.package', value: { packageName: name, version } }],
      relatedImages: [own, ...related].map((image) => ({ name: '', image })),
    })),
  ];
}

describe.skipIf(!hasTools)('images that bundles name', () => {
  let world: LiveWorld;
  let digests: readonly Digest[];
  let own: string;
  const at = (path: string): string => `${world.registry.host}/${path}`;

  beforeAll(async () => {
    world = await createLiveWorld();
    const images = await Promise.all(['old', 'new', 'bundle'].map((name) => buildStandIn(name)));
    for (const image of images.slice(0, 2)) world.registry.add('team/app', image, 'stable');
    for (const image of images.slice(2)) world.registry.add('team/bundle', image);
    digests = images.map(topDigest);
    own = at(`team/bundle@${digests[2] ?? ''}`);
  }, 60_000);
  afterAll(() => world.close());

  async function select(documents: readonly TestDocument[], ...lines: string[]): Promise<void> {
    const files = { 'op/catalog.json': documents };
    await addCatalog(world.registry, 'team/index', { tag: 'v1', files });
    await world.writeConfig('operators:', `  - catalog: ${at('team/index:v1')}`, ...lines);
  }

  it('are both on the media, found by digest, and verified, if one tag has two digests', async () => {
    const documents = makePackage('op', [
      { version: '1.0.0', images: [own, at(`team/app:stable@${digests[0] ?? ''}`)] },
      { version: '1.1.0', images: [own, at(`team/app:stable@${digests[1] ?? ''}`)] },
    ]);
    await select(documents, '    full: true');
    const built = await world.run('build', '--output', 'shared.iso');
    expect(built.exitCode, built.stderr).toBe(0);
    const verified = await world.run('verify', 'shared.iso');
    expect(verified.exitCode, verified.stderr + verified.stdout).toBe(0);
    const why = await world.run('why', 'team/app', '-o', 'json');
    const { images } = JSON.parse(why.stdout) as { images: readonly { tags: readonly string[] }[] };
    const second = `sha256-${hexOf(digests[1] ?? 'sha256:')}`;
    expect(images.map(({ tags }) => tags)).toEqual([['stable'], [second]]);
    const served = await serveMedium(join(world.directory, 'shared.iso'), world.directory);
    const read = async (name: string): Promise<string | null> => {
      const url = `http://${served.host}/v2/team/app/manifests/${name}`;
      const accept = 'application/vnd.oci.image.manifest.v1+json';
      const answer = await fetch(url, { method: 'HEAD', headers: { accept } });
      return answer.headers.get('docker-content-digest');
    };
    const [old = '', newer = ''] = digests;
    expect(await Promise.all(['stable', second, old, newer].map(read))).toEqual([
      ...[old, newer],
      ...[old, newer],
    ]);
    await served.close();
    const resources = await world.run('resources');
    expect(resources.stdout).toContain(`source: ${at('team')}`);
  }, 120_000);

  /** What a failed plan advises. */
  async function planFails(code: string): Promise<string> {
    const { exitCode, stderr } = await world.run('plan');
    expect(exitCode, stderr).toBe(3);
    expect(stderr).toContain(`[${code}]`);
    return /hint: (.*)$/m.exec(stderr)?.[1] ?? '';
  }

  async function planHas(...bundles: readonly string[]): Promise<void> {
    const { exitCode, stdout, stderr } = await world.run('plan', '-o', 'json');
    expect(exitCode, stderr).toBe(0);
    const plan = JSON.parse(stdout) as { catalogs: { bundles: readonly string[] }[] };
    expect(plan.catalogs.map((catalog) => catalog.bundles)).toEqual([bundles]);
  }

  it('are blocked as the hint says if they cannot be carried, also with full: true', async () => {
    const documents = makePackage('op', [
      { version: '1.0.0', images: [own, 'oci://team/broken'] },
      { version: '1.1.0', images: [own] },
    ]);
    await select(documents, '    full: true');
    const hint = await planFails('catalog.image-reference');
    const [, pattern = ''] = /add '(.+)' to blockedImages/.exec(hint) ?? [];
    await select(documents, '    full: true', `blockedImages: [{name: '${pattern}'}]`);
    await planHas('op.v1.0.0', 'op.v1.1.0');
  });

  it('are left out with their bundle, as the hint says, if they cannot be carried', async () => {
    const documents = makePackage('op', [
      { version: '1.0.0', images: [own] },
      { version: '1.1.0', images: [own, at('team/app')] },
      { version: '1.2.0', images: [own] },
    ]);
    const full = '    full: true';
    await select(documents, full, '    packages: [{name: op}]');
    expect(await planFails('catalog.image-reference')).toContain('skipBundles of its package');
    await select(documents, full, '    packages: [{name: op, skipBundles: [op.v1.1.0]}]');
    await planHas('op.v1.0.0', 'op.v1.2.0');
    const { stdout } = await world.run('plan');
    expect(stdout).toContain('bundle "op.v1.1.0" is left out, and "op.v1.2.0" skips it');
  });

  it('of a malformed bundle stop a plan only if its package is selected', async () => {
    const documents = makePackage('op', [{ version: '1.0.0', images: [own] }]);
    const broken = makePackage('broken', [
      { version: '1.0.0', images: [own] },
      { version: '1.1.0', images: [own] },
    ]).map((one) => (one['name'] === 'broken.v1.1.0' ? { ...one, image: 5 } : one));
    const all = [...documents, ...broken];
    await select(all, '    packages: [{name: op}]');
    await planHas('op.v1.0.0');
    const { stdout } = await world.run('plan');
    expect(
      stdout.match(/package "broken" is not selected; ignored a document of it/g),
    ).toHaveLength(1);
    await select(all, '    packages: [{name: op}, {name: broken}]');
    const hint = await planFails('catalog.malformed');
    expect(hint).toBe('add "broken.v1.1.0" to skipBundles of package "broken"');
    await select(all, '    packages: [{name: op}, {name: broken, skipBundles: [broken.v1.1.0]}]');
    await planHas('broken.v1.0.0', 'op.v1.0.0');
    await select(all, '    full: true');
    expect(await planFails('catalog.malformed')).toContain('name the packages that you need');
  });

  it('of an added bundle are planned with their cost and the reason', async () => {
    const needy = makePackage('needy', [{ version: '1.0.0', images: [own] }]).map((one) =>
      one.schema === 'olm.bundle'
        ? {
            ...one,
            properties: [
              { type: 'olm.package', value: { packageName: 'needy', version: '1.0.0' } },
              { type: 'olm.gvk.required', value: { group: 'a.example', version: 'v1', kind: 'A' } },
            ],
          }
        : one,
    );
    const [old = ''] = digests;
    const giving = makePackage('giving', [
      { version: '2.0.0', images: [own, at(`team/app@${old}`)] },
    ]).map((one) =>
      one.schema === 'olm.bundle'
        ? {
            ...one,
            properties: [
              { type: 'olm.package', value: { packageName: 'giving', version: '2.0.0' } },
              { type: 'olm.gvk', value: { group: 'a.example', version: 'v1', kind: 'A' } },
            ],
          }
        : one,
    );
    const documents = [...needy, ...giving];
    await select(documents, '    packages: [{name: needy}]');
    const warned = await world.run('plan');
    expect(warned.stdout).toContain(
      'requires API A of a.example/v1, which nothing selected provides',
    );
    await select(documents, '    dependencies: add', '    packages: [{name: needy}]');
    const { exitCode, stdout, stderr } = await world.run('plan', '-o', 'json');
    expect(exitCode, stderr).toBe(0);
    const { additions, catalogs, parts } = JSON.parse(stdout) as {
      additions: readonly { readonly size: number; readonly marginalSize: number }[];
      catalogs: readonly { bundles: readonly string[]; warnings: readonly string[] }[];
      parts: readonly { part: string }[];
    };
    expect(catalogs).toMatchObject([{ bundles: ['giving.v2.0.0', 'needy.v1.0.0'], warnings: [] }]);
    expect(parts.map(({ part }) => part)).toContain('giving');
    expect(additions).toMatchObject([
      {
        package: 'giving',
        bundle: 'giving.v2.0.0',
        channel: 'stable',
        images: 2,
        requiredBy: { package: 'needy', bundle: 'needy.v1.0.0' },
        reason: 'API A of a.example/v1',
      },
    ]);
    const [{ size, marginalSize } = { size: 0, marginalSize: 0 }] = additions;
    expect(size).toBeGreaterThan(marginalSize);
    expect(marginalSize).toBeGreaterThan(0);
    const text = (await world.run('plan')).stdout;
    expect(text).toMatch(
      /giving\.v2\.0\.0 of package giving, channel stable: 2 images, .* saved if omitted/,
    );
    expect(text).toContain('required by needy.v1.0.0: API A of a.example/v1');
  });
});
