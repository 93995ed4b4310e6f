import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hexOf, type Digest } from '../../../src/base/digest.ts';
import { DiskError } from '../../../src/base/errors.ts';
import type { MirrorPlan } from '../../../src/openshift/mirror/plan.ts';
import { parseReference } from '../../../src/registry/reference.ts';
import { parseRegistriesConf } from '../../../src/registry/client/mirrors.ts';
import { planMirror, type PlanMirrorInput } from '../../../src/stages/2-select/plan-mirror.ts';
import { resolveRelease } from '../../../src/stages/1-resolve/resolve-release.ts';
import { createImageWorld, type ImageWorld } from '../../support/image-tools.ts';
import { createStageContext } from '../../support/stage-context.ts';
import { buildIndex, type TestImage } from '../../support/images.ts';
import { createHttpWithout, createTestClient } from '../../support/registry-client.ts';
import { addRelease, buildLayeredImage, type TestRelease } from '../../support/release.ts';

let world: ImageWorld;
let release: TestRelease;
const inputOf = async (input: Partial<PlanMirrorInput>): Promise<PlanMirrorInput> => ({
  release: await resolveRelease.run(
    { url: release.pullspec, version: '4.21', channel: 'stable', arch: 'x86_64' },
    world,
    world.context,
  ),
  catalogs: [],
  additionalImages: [],
  blockedImages: [],
  allArchitectures: false,
  arch: 'x86_64',
  includeSignatures: false,
  ...input,
});
const plan = async (input: Partial<PlanMirrorInput> = {}): Promise<MirrorPlan> =>
  planMirror.run(await inputOf(input), world, world.context);
const at = (path: string): { readonly name: string } => ({
  name: `${world.registry.host}/${path}`,
});
const toolImage = (text: string, architecture = 'amd64'): Promise<TestImage> =>
  buildLayeredImage([[['usr/bin/tool', text]]], { architecture });
const topOf = ({ manifests: [top] }: TestImage): Digest => {
  if (top === undefined) throw new Error('an image has a manifest');
  return top.descriptor.digest;
};
const indexOf = async (): Promise<{ index: TestImage; amd: TestImage; arm: TestImage }> => {
  const [amd, arm] = [await toolImage('amd'), await toolImage('arm', 'arm64')];
  const index = buildIndex([
    [{ os: 'linux', architecture: 'amd64' }, amd],
    [{ os: 'linux', architecture: 'arm64' }, arm],
  ]);
  return { index, amd, arm };
};

beforeEach(async () => {
  world = await createImageWorld();
  release = await addRelease(world.registry);
});
afterEach(() => world.close());

describe('the plan of a release', () => {
  it('ends with the disk error if manifests cannot be stored, and blames no image', async () => {
    const full = new DiskError('disk.full', 'the disk is full');
    const input = await inputOf({});
    const cache = { ...world.cache, put: () => Promise.reject(full) };
    await expect(planMirror.run(input, { ...world, cache }, world.context)).rejects.toBe(full);
  });

  it('holds the release image and every component by digest', async () => {
    const { images } = await plan();
    expect(images.map(({ name }) => name)).toEqual([
      'release-image',
      'baremetal-installer',
      'cluster-version-operator',
      'docker-registry',
      'etcd',
      'installer',
      'machine-os-images',
    ]);
    const hex = hexOf(release.digest);
    expect(images[0]).toMatchObject({
      set: 'release',
      source: { digest: release.digest },
      destination: { repository: 'openshift/release-images', tags: [hex] },
      signedCopy: { repository: 'openshift/release', tags: [hex] },
    });
    expect(images[4]?.destination).toEqual({
      repository: 'openshift/release',
      tags: [`${hex}-etcd`],
    });
  });

  it('names every blob once, with its users and its sources', async () => {
    const { images, blobs, blobSize, dedupeSaved } = await plan();
    const digests = blobs.map(({ digest }) => digest);
    expect(new Set(digests).size).toBe(digests.length);
    const base = blobs.find(({ users }) => users.length === images.length);
    expect(base?.from).toEqual([at('ocp/release').name, at('ocp/art-dev').name]);
    expect(blobSize).toBe(blobs.reduce((total, { size }) => total + size, 0));
    expect(dedupeSaved).toBeGreaterThanOrEqual((images.length - 1) * (base?.size ?? 0));
  });

  it('has every manifest in the cache, and fetches no layer', async () => {
    const { images, manifestSize } = await plan();
    const manifests = images.flatMap((image) => image.manifests);
    for (const { digest } of manifests) expect((await world.cache.list()).has(digest)).toBe(true);
    expect(manifestSize).toBe(manifests.reduce((total, { size }) => total + size, 0));
    const before = world.registry.requests.filter((line) => line.includes('/blobs/'));
    expect(before).toHaveLength(2); // config and last layer of the release image
  });

  it('needs no registry when it is made again', async () => {
    const first = await plan();
    const count = world.registry.requests.length;
    expect(await plan()).toEqual(first);
    expect(world.registry.requests).toHaveLength(count);
  });

  it('maps the repositories of the release to their copies', async () => {
    expect((await plan()).mirrors).toEqual([
      {
        source: at('ocp/release').name,
        mirrors: ['openshift/release', 'openshift/release-images'],
        set: 'release',
        by: 'digest',
      },
      {
        source: at('ocp/art-dev').name,
        mirrors: ['openshift/release'],
        set: 'release',
        by: 'digest',
      },
    ]);
  });

  it('carries the registry server next to the images that it serves', async () => {
    world.registry.add('tools/registry', await toolImage('serve'), '2');
    const { images, registryImage, blobs, mirrors } = await plan({
      registryImage: parseReference(at('tools/registry:2').name),
    });
    expect(images.map(({ name }) => name)).not.toContain('registry-image');
    expect(registryImage?.manifests).toHaveLength(1);
    expect(mirrors).toHaveLength(2);
    const wanted = registryImage?.blobs.map(({ digest }) => digest) ?? [];
    expect(blobs.map(({ digest }) => digest)).toEqual(expect.arrayContaining(wanted));
  });
});

describe('additional images', () => {
  it('are pinned to the digest that their tag has now', async () => {
    const image = await toolImage('one');
    world.registry.add('team/tool', image, '1');
    const { images, mirrors } = await plan({ additionalImages: [at('team/tool:1')] });
    expect(images.at(-1)).toMatchObject({
      ...at('team/tool:1'),
      set: 'additional',
      source: { registry: world.registry.host, repository: 'team/tool', digest: topOf(image) },
      destination: { repository: 'team/tool', tags: ['1'] },
    });
    expect(images.at(-1)?.source).not.toHaveProperty('tag');
    expect(mirrors.at(-1)).toEqual({
      source: `${world.registry.host}/team`,
      mirrors: ['team'],
      set: 'generic',
      by: 'tag',
    });
  });

  it('keep their index, with only the images for the architecture of the media', async () => {
    const { index, amd, arm } = await indexOf();
    world.registry.add('team/tool', index, '1');
    const sparse = (await plan({ additionalImages: [at('team/tool:1')] })).images.at(-1);
    expect(sparse?.manifests.map(({ digest }) => digest)).toEqual([topOf(index), topOf(amd)]);
    expect(sparse?.blobs).toHaveLength(2);
    const all = (
      await plan({ additionalImages: [at('team/tool:1')], allArchitectures: true })
    ).images.at(-1);
    expect(all?.manifests.map(({ digest }) => digest)).toEqual([index, amd, arm].map(topOf));
    expect(all?.blobs).toHaveLength(4);
  });

  it('are refused if they have nothing for the architecture of the media', async () => {
    const arm = await toolImage('arm', 'arm64');
    world.registry.add('t', buildIndex([[{ os: 'linux', architecture: 'arm64' }, arm]]), '1');
    await expect(plan({ additionalImages: [at('t:1')] })).rejects.toMatchObject({
      code: 'image.no-platform',
      expected: 'linux/amd64',
      found: 'linux/arm64',
    });
  });

  it('are all named at once if they are missing', async () => {
    await expect(
      plan({ additionalImages: [at('team/none:1'), at('team/tool:none')] }),
    ).rejects.toMatchObject({
      code: 'mirror.images-missing',
      exitCode: 4,
      message: expect.stringMatching(
        /^2 of 9 images cannot be fetched:\n.*team\/none:1.*\n.*team\/tool:none/,
      ) as string,
    });
  });

  describe('behind a mirror of an origin that DNS does not know', () => {
    const ORIGIN = 'origin.invalid';
    const names = Array.from({ length: 52 }, (_, index) => ({
      name: `${ORIGIN}/team/tool${index}:1`,
    }));
    const planBehind = async (mirror: string, concurrency = 16): Promise<MirrorPlan> => {
      const client = createTestClient({
        http: createHttpWithout(ORIGIN),
        registriesConf: parseRegistriesConf(
          `[[registry]]\nlocation = "${ORIGIN}"\n[[registry.mirror]]\nlocation = "${mirror}"`,
          'test',
        ),
      });
      const { cache, signal } = world;
      const { release: none, ...input } = await inputOf({ additionalImages: names });
      expect(none).toBeDefined();
      return planMirror
        .run(input, { client, cache, concurrency }, createStageContext(signal))
        .finally(client.close);
    };

    it('are fetched, except the one of 52 with a wrong tag, which is reported', async () => {
      const image = await toolImage('one');
      for (const index of names.keys()) {
        world.registry.add(`team/tool${index}`, image, index === 17 ? 'other' : '1');
      }
      const before = world.registry.requests.length;
      await expect(planBehind(world.registry.host)).rejects.toMatchObject({
        code: 'registry.manifest-unknown',
        message: expect.stringMatching(
          /^1 of 52 images cannot be fetched:\norigin.invalid\/team\/tool17:1 \(needed by additional images\): [^\n]*$/,
        ) as string,
      });
      const asked = world.registry.requests.slice(before).filter((line) => line.includes('team'));
      expect(new Set(asked).size).toBe(52);
      expect(asked).toHaveLength(52);
    });

    it('are not asked for again, and not called missing, if their registry is out of reach', async () => {
      const error = await planBehind('127.0.0.1:1', 4).then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      expect(error).toMatchObject({ code: 'registry.unreachable', exitCode: 4 });
      const { message } = error as Error;
      expect(message).toMatch(/^4 of 52 images cannot be fetched, 48 were not asked for:\n/);
      expect(message).toContain(
        'team/tool0:1 and 3 more (needed by additional images): 127.0.0.1:1: the connection to 127.0.0.1:1 failed',
      );
      expect(message).toContain(
        'team/tool4:1 and 47 more (needed by additional images): 127.0.0.1:1: not asked: 127.0.0.1:1 is unreachable; ' +
          'origin.invalid: not asked: origin.invalid is not known to DNS',
      );
    });

    it('are still asked for if another registry is out of reach', async () => {
      world.registry.add('team/tool', await toolImage('one'), '1');
      const dead = Array.from({ length: 5 }, (_, index) => ({ name: `127.0.0.1:1/a${index}:1` }));
      const additionalImages = [...dead, at('team/none:1'), at('team/tool:1')];
      await expect(plan({ additionalImages })).rejects.toMatchObject({
        code: 'mirror.images-missing',
        message: expect.stringContaining(
          `${at('team/none:1').name} (needed by additional images): there is no ${at('team/none:1').name}`,
        ) as string,
      });
    });
  });

  it('are refused with both names if they would take the same tag in the registry', async () => {
    world.registry.add('team/tool', await toolImage('one'), '1');
    world.registry.add('library/tool', await toolImage('two'), '1');
    const other = await createImageWorld();
    other.registry.add('team/tool', await toolImage('three'), '1');
    const names = [at('team/tool:1'), { name: `${other.registry.host}/team/tool:1` }] as const;
    const own = world.client;
    const client = {
      ...own,
      fetchManifest: (...args: Parameters<typeof own.fetchManifest>) =>
        (args[0].registry === other.registry.host ? other.client : own).fetchManifest(...args),
    };
    world = { ...world, client };
    await expect(plan({ additionalImages: names })).rejects.toMatchObject({
      code: 'mirror.conflict',
      message: `images "${names[0].name}" and "${names[1].name}" would both be team/tool:1 in the registry`,
    });
    await other.close();
  });

  it('are reported, and not asked for, if they are blocked', async () => {
    const { blocked, images } = await plan({
      additionalImages: [at('team/none:1')],
      blockedImages: ['team/none', '-etcd$'],
    });
    expect(images).toHaveLength(6);
    expect(blocked.map(({ pattern }) => pattern)).toEqual(['-etcd$', 'team/none']);
  });

  it('are blocked by patterns in Go syntax', async () => {
    const blockedImages = [String.raw`(?i)TEAM/\QNONE:1\E\z`, '[[:digit:]]+[.]example/'];
    const { blocked } = await plan({
      additionalImages: [at('team/none:1'), { name: 'r42.example/team/other:1' }],
      blockedImages,
    });
    expect(blocked.map(({ pattern }) => pattern).sort()).toEqual(blockedImages);
  });
});

describe('signatures', () => {
  const tagOf = (digest: Digest): string => `sha256-${hexOf(digest)}.sig`;

  it('are carried under the tag that cosign gives them, if there are any', async () => {
    world.registry.add('ocp/release', await toolImage('signature'), tagOf(release.digest));
    const { images } = await plan({ includeSignatures: true });
    expect(images.filter(({ name }) => name.endsWith('(signature)'))).toMatchObject([
      {
        name: 'release-image (signature)',
        set: 'release',
        destination: { repository: 'openshift/release', tags: [tagOf(release.digest)] },
      },
    ]);
  });

  it('of the release are where nodes look first, and leave one tag next to the release', async () => {
    world.registry.add('ocp/release', await toolImage('signature'), tagOf(release.digest));
    const { images, mirrors } = await plan({ includeSignatures: true });
    const places = images.flatMap(({ destination, signedCopy = destination }) => [
      ...new Set([destination, signedCopy]),
    ]);
    const tagsOf = (name: string): readonly string[] =>
      places.flatMap(({ repository, tags }) => (repository === name ? tags : []));
    expect(tagsOf('openshift/release-images')).toEqual([hexOf(release.digest)]);
    const [first] = mirrors.find(({ source }) => source === at('ocp/release').name)?.mirrors ?? [];
    expect(tagsOf(first ?? '')).toContain(hexOf(release.digest));
    expect(tagsOf(first ?? '')).toContain(tagOf(release.digest));
  });

  it('do not prevent the refusal of an additional image that takes the tag of the release', async () => {
    world.registry.add('openshift/release-images', await toolImage('tool'), '4.20.0');
    await expect(
      plan({ additionalImages: [at('openshift/release-images:4.20.0')] }),
    ).rejects.toMatchObject({
      code: 'mirror.conflict',
      exitCode: 3,
      hint: expect.stringContaining('targetRepo') as string,
    });
  });

  it('of the images of an index are carried, too', async () => {
    const { index, amd } = await indexOf();
    world.registry.add('team/tool', index, '1');
    world.registry.add('team/tool', await toolImage('signature'), tagOf(topOf(amd)));
    const { images } = await plan({
      additionalImages: [at('team/tool:1')],
      includeSignatures: true,
    });
    expect(images.at(-1)?.destination).toEqual({
      repository: 'team/tool',
      tags: [tagOf(topOf(amd))],
    });
  });

  it('are absent on 404 only: any other answer fails the plan', async () => {
    world.registry.breakPath(`/v2/ocp/release/manifests/${tagOf(release.digest)}`, 403);
    await expect(plan({ includeSignatures: true })).rejects.toMatchObject({ exitCode: 4 });
  });
});
