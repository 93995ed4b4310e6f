import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeDefinitions } from '../../../demo/definitions.ts';
import type { Release } from '../../../src/openshift/release/release.ts';
import type { RpmArchitecture } from '../../../src/openshift/release/bundle.ts';
import { formatReference } from '../../../src/registry/reference.ts';
import {
  resolveRelease,
  type ResolveReleaseInput,
} from '../../../src/stages/1-resolve/resolve-release.ts';
import { createImageWorld, type ImageWorld } from '../../support/image-tools.ts';
import { buildIndex, storeManifest } from '../../support/images.ts';
import { serveLocally } from '../../support/local-http.ts';
import { addRelease, buildLayeredImage } from '../../support/release.ts';

type Wanted = Partial<Omit<ResolveReleaseInput, 'arch'>> & { readonly arch?: RpmArchitecture };

const ARM = { architecture: 'arm64' };

let world: ImageWorld;
const resolveAny = (input: Wanted): Promise<Release> =>
  resolveRelease.run({ version: '4.21.3', channel: 'stable', ...input }, world, world.context);
const resolve = (input: Wanted, graphUrl?: string): Promise<Release> =>
  resolveAny({ arch: 'x86_64', ...input, ...(graphUrl !== undefined && { graphUrl }) });

beforeEach(async () => {
  world = await createImageWorld();
});
afterEach(() => world.close());

describe('a release by pullspec', () => {
  it('is read from its payload', async () => {
    const { pullspec, components } = await addRelease(world.registry);
    const release = await resolve({ url: pullspec });
    expect(formatReference(release.reference)).toBe(pullspec);
    expect(release).toMatchObject({
      version: '4.21.3',
      arch: 'x86_64',
      created: '2025-10-01T12:00:00Z',
      metadata: { previous: ['4.21.2'] },
    });
    expect(release.components.map(({ name }) => name)).toEqual(Object.keys(components));
    expect(release.components[0]?.reference.digest).toBe(components['baremetal-installer']);
  });

  it('is pinned to a digest and loses its tag', async () => {
    const { pullspec } = await addRelease(world.registry);
    const url = `${world.registry.host}/ocp/release:4.21.3-x86_64`;
    expect(formatReference((await resolve({ url })).reference)).toBe(pullspec);
  });

  it('is read from its manifest, its config and one layer', async () => {
    const { pullspec } = await addRelease(world.registry);
    await resolve({ url: pullspec });
    const requests = world.registry.requests.filter((line) => line !== 'GET /v2/');
    expect(requests.map((line) => line.split('/').at(-2))).toEqual(['manifests', 'blobs', 'blobs']);
  });

  it('is read without a registry if it was read before', async () => {
    const { pullspec } = await addRelease(world.registry);
    const first = await resolve({ url: pullspec });
    const count = world.registry.requests.length;
    expect(await resolve({ url: pullspec })).toEqual(first);
    expect(world.registry.requests).toHaveLength(count);
  });

  it('is found in a lower layer, too', async () => {
    const { pullspec } = await addRelease(world.registry, { extraLayer: true });
    expect((await resolve({ url: pullspec })).version).toBe('4.21.3');
  });

  it('may have any patch version of the wanted minor version', async () => {
    const { pullspec } = await addRelease(world.registry);
    expect((await resolve({ url: pullspec, version: '4.21' })).version).toBe('4.21.3');
  });

  it.each(['4.22.0-0.nightly-2026-05-01-000000', '4.22.0-ec.3'])(
    'is accepted as 4.22.0 if its version is %s',
    async (version) => {
      const { pullspec } = await addRelease(world.registry, { version });
      expect((await resolve({ url: pullspec, version: '4.22.0' })).version).toBe(version);
    },
  );

  it.each([
    ['4.22.1', '4.22.0-0.nightly-2026-05-01-000000'],
    ['4.22.0-rc.1', '4.22.0-rc.2'],
  ])('is refused if %s is wanted and its version is %s', async (wanted, version) => {
    const { pullspec } = await addRelease(world.registry, { version });
    await expect(resolve({ url: pullspec, version: wanted })).rejects.toMatchObject({
      code: 'release.version-mismatch',
      expected: wanted,
      found: version,
    });
  });

  it('is refused if it is not the wanted version', async () => {
    const { pullspec } = await addRelease(world.registry);
    await expect(resolve({ url: pullspec, version: '4.21.4' })).rejects.toMatchObject({
      code: 'release.version-mismatch',
      exitCode: 3,
      expected: '4.21.4',
      found: '4.21.3',
    });
  });

  it('is refused if it is for another architecture', async () => {
    const { pullspec } = await addRelease(world.registry, { architecture: 'arm64' });
    await expect(resolve({ url: pullspec })).rejects.toMatchObject({
      code: 'release.arch-mismatch',
      found: 'arm64',
    });
  });

  it('is read for the wanted architecture if it has several', async () => {
    const amd = await addRelease(world.registry, { components: ['only-amd'] });
    const arm = await addRelease(world.registry, { architecture: 'arm64' });
    const index = buildIndex([
      [{ os: 'linux', architecture: 'amd64' }, amd.image],
      [{ os: 'linux', architecture: 'arm64' }, arm.image],
    ]);
    world.registry.add('ocp/release', index, 'multi');
    const url = `${world.registry.host}/ocp/release:multi`;
    const release = await resolve({ url, arch: 'aarch64' });
    expect(release.reference.digest).toBe(index.manifests[0]?.descriptor.digest);
    expect(release.components.map(({ name }) => name)).not.toContain('only-amd');
    await expect(resolve({ url, arch: 'ppc64le' })).rejects.toMatchObject({
      code: 'image.no-platform',
      found: 'linux/amd64, linux/arm64',
    });
  });

  it('has the architecture of its payload if none is wanted', async () => {
    const { pullspec: url } = await addRelease(world.registry, { architecture: 'arm64' });
    expect((await resolveAny({ url })).arch).toBe('aarch64');
  });

  it('is read for x86_64 if it has several architectures, or is refused with their names', async () => {
    const [amd, arm] = [await addRelease(world.registry), await addRelease(world.registry, ARM)];
    const ofAmd = [{ os: 'linux', architecture: 'amd64' }, amd.image] as const;
    const ofArm = [{ os: 'linux', architecture: 'arm64' }, arm.image] as const;
    world.registry.add('ocp/release', buildIndex([ofArm, ofAmd]), 'both');
    world.registry.add('ocp/release', buildIndex([ofArm]), 'one');
    const resolveTag = (tag: string): Promise<Release> =>
      resolveAny({ url: `${world.registry.host}/ocp/release:${tag}` });
    expect((await resolveTag('both')).arch).toBe('x86_64');
    await expect(resolveTag('one')).rejects.toMatchObject({
      code: 'image.no-platform',
      found: 'linux/arm64',
      hint: 'set ocpRelease.cpuArchitecture to an architecture of the payload',
    });
  });

  it('is refused if no media are built for its architecture', async () => {
    const { pullspec: url } = await addRelease(world.registry, { architecture: 's390x' });
    await expect(resolveAny({ url })).rejects.toMatchObject({
      code: 'release.arch-unknown',
      exitCode: 3,
    });
  });

  it('is refused if the image is not a release', async () => {
    world.registry.add('some/image', await buildLayeredImage([[['etc/motd', 'hi']]]), '1');
    const url = `${world.registry.host}/some/image:1`;
    await expect(resolve({ url })).rejects.toMatchObject({
      code: 'release.malformed',
      message: expect.stringContaining('is not a release payload') as string,
    });
  });

  it('is refused before a large layer or config is fetched', async () => {
    const { image } = await addRelease(world.registry);
    const [top] = image.manifests;
    if (top?.manifest.kind !== 'manifest') throw new Error('a release is an image');
    const { config, layers } = top.manifest;
    const big = { ...layers.at(-1), size: 65 << 20 };
    const before = world.registry.requests.length;
    for (const [tag, changed, code] of [
      ['layer', { layers: [...layers.slice(0, -1), big] }, 'release.too-large'],
      ['below', { layers: [big, ...layers.slice(0, 1)] }, 'release.malformed'],
      ['config', { config: { ...config, size: 5 << 20 } }, 'blob.too-large'],
    ] as const) {
      const { mediaType } = top.descriptor;
      const manifest = storeManifest({ schemaVersion: 2, mediaType, config, layers, ...changed });
      world.registry.add('ocp/release', { ...image, manifests: [manifest] }, tag);
      const url = `${world.registry.host}/ocp/release:${tag}`;
      await expect(resolve({ url }), tag).rejects.toMatchObject({ code, exitCode: 5 });
    }
    const fetched = world.registry.requests.slice(before);
    expect(fetched.some((line) => line.includes(big.digest ?? 'no digest'))).toBe(false);
  });

  it('is refused if its parts name different versions', async () => {
    const byMetadata = await addRelease(world.registry, { metadataVersion: '4.21.4' });
    await expect(resolve({ url: byMetadata.pullspec })).rejects.toMatchObject({
      code: 'release.version-conflict',
      exitCode: 5,
    });
    const byLabel = await addRelease(world.registry, { label: '4.21.9' });
    await expect(resolve({ url: byLabel.pullspec })).rejects.toMatchObject({
      code: 'release.version-conflict',
      found: '4.21.9',
    });
  });

  it('is refused if it has no creation time', async () => {
    const { pullspec } = await addRelease(world.registry, { created: null });
    await expect(resolve({ url: pullspec })).rejects.toMatchObject({ code: 'release.malformed' });
  });

  it.each([
    ['0001-01-01T00:00:00Z', '1970-01-01T00:00:00Z'], // Go writes this for "no time"
    ['2200-01-01T00:00:00Z', '2155-12-31T23:59:59Z'],
  ])('is of the nearest time that a medium can hold if it says %s', async (created, taken) => {
    const { pullspec } = await addRelease(world.registry, { created });
    expect(await resolve({ url: pullspec })).toMatchObject({ created: taken });
  });

  it('is refused with the name of the file if one of its definitions cannot be read', async () => {
    const definitions = {
      ...makeDefinitions('4.21.3'),
      'release-manifests/0000_80_broken.crd.yaml': 'kind: CustomResourceDefinition\nspec: ]\n',
    };
    const { pullspec } = await addRelease(world.registry, { definitions });
    await expect(resolve({ url: pullspec })).rejects.toMatchObject({
      code: 'release.manifest-unreadable',
      exitCode: 5,
      message: expect.stringContaining('0000_80_broken.crd.yaml') as string,
    });
  });

  it('is refused if it defines no kinds', async () => {
    const { pullspec } = await addRelease(world.registry, { definitions: {} });
    await expect(resolve({ url: pullspec })).rejects.toMatchObject({
      code: 'release.no-definitions',
      exitCode: 5,
      message: expect.stringContaining(pullspec) as string,
    });
  });

  it('is a registry error if it does not exist', async () => {
    const url = `${world.registry.host}/ocp/release:none`;
    await expect(resolve({ url })).rejects.toMatchObject({
      code: 'registry.manifest-unknown',
      exitCode: 4,
    });
  });
});

describe('a release by version', () => {
  it('is refused if the payload is a candidate of the version in the graph', async () => {
    const { pullspec } = await addRelease(world.registry, { version: '4.22.0-ec.3' });
    const graph = await serveLocally((_, response) =>
      response.end(JSON.stringify({ nodes: [{ version: '4.22.0', payload: pullspec }] })),
    );
    await expect(resolve({ version: '4.22.0' }, graph.url)).rejects.toMatchObject({
      code: 'release.version-mismatch',
    });
    await graph.close();
  });

  it('is the payload that the update graph names', async () => {
    const { pullspec } = await addRelease(world.registry);
    const graph = await serveLocally((_, response) =>
      response.end(JSON.stringify({ nodes: [{ version: '4.21.3', payload: pullspec }] })),
    );
    const release = await resolve({ version: '4.21' }, `${graph.url}/graph`);
    expect(formatReference(release.reference)).toBe(pullspec);
    await graph.close();
  });

  it('is refused if the payload is not the release in the graph', async () => {
    const { pullspec } = await addRelease(world.registry);
    const graph = await serveLocally((_, response) =>
      response.end(JSON.stringify({ nodes: [{ version: '4.21.4', payload: pullspec }] })),
    );
    await expect(resolve({ version: '4.21' }, graph.url)).rejects.toMatchObject({
      code: 'release.version-mismatch',
    });
    await graph.close();
  });
});
