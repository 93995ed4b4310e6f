import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RegistryImageChoice } from '../../../src/openshift/mirror/server.ts';
import { formatReference, parseReference } from '../../../src/registry/reference.ts';
import {
  inspectRegistryImage,
  type InspectRegistryImageInput,
} from '../../../src/stages/1-resolve/inspect-registry-image.ts';
import { createImageWorld, type ImageWorld } from '../../support/image-tools.ts';
import { buildIndex, type LayerEntry, type TestImage } from '../../support/images.ts';
import { buildDistributionImage } from '../../support/registry-images.ts';
import { addRelease, buildLayeredImage } from '../../support/release.ts';

let world: ImageWorld;

beforeEach(async () => {
  world = await createImageWorld();
});
afterEach(() => world.close());

const inspect = (
  name: string,
  input: Partial<InspectRegistryImageInput> = {},
): Promise<RegistryImageChoice> => {
  const reference = parseReference(`${world.registry.host}/${name}`);
  return inspectRegistryImage.run(
    { reference, isComponent: false, arch: 'x86_64', version: '4.17.3', ...input },
    world,
    world.context,
  );
};

const digestOfTop = ({ manifests: [top] }: TestImage): string => top?.descriptor.digest ?? '';

/** Adds an image as `tools/registry:1`. */
async function add(
  files: Readonly<Record<string, LayerEntry>>,
  config: Readonly<Record<string, unknown>> = {},
): Promise<TestImage> {
  const image = await buildLayeredImage([Object.entries(files)], { config });
  world.registry.add('tools/registry', image, '1');
  return image;
}

const NODE_FILES = {
  'etc/registry/config.yaml': 'version: 0.1\n',
  'usr/bin/distribution': 'a registry server\n',
};
const CLUSTER_COMMAND = ['/bin/sh', '-c', '/usr/bin/dockerregistry /config.yml'];

describe('the image of the registry server', () => {
  it('starts by its own entrypoint if it is the image of the distribution project', async () => {
    const image = await buildDistributionImage();
    world.registry.add('library/registry', image, '2');
    const { reference, useDistributionEntrypoint } = await inspect('library/registry:2');
    expect(useDistributionEntrypoint).toBe(false);
    expect(formatReference(reference)).toBe(
      `${world.registry.host}/library/registry@${digestOfTop(image)}`,
    );
  });

  it.each([
    ['its command', { Cmd: CLUSTER_COMMAND }],
    ['its entrypoint', { Entrypoint: ['/usr/bin/dockerregistry'] }],
    ['its label name', { Labels: { name: 'openshift/ose-docker-registry' } }],
    ['its display name', { Labels: { 'io.k8s.display-name': 'docker-registry of a cluster' } }],
  ])(
    "is recognized as OpenShift's docker-registry by %s and starts as such",
    async (_what, config) => {
      await add(NODE_FILES, config);
      expect((await inspect('tools/registry:1')).useDistributionEntrypoint).toBe(true);
    },
  );

  it('starts the same from a 4.21 payload, whether a user names it or not', async () => {
    const { components } = await addRelease(world.registry, { version: '4.21.3' });
    const name = `ocp/art-dev@${components['docker-registry'] ?? ''}`;
    expect(await inspect(name)).toEqual(await inspect(name, { isComponent: true }));
    expect((await inspect(name)).useDistributionEntrypoint).toBe(true);
  });

  it('is refused by name if a user names the image of a payload before 4.21', async () => {
    const { components } = await addRelease(world.registry, { version: '4.20.9' });
    const digest = components['docker-registry'] ?? '';
    await expect(inspect(`ocp/art-dev@${digest}`)).rejects.toMatchObject({
      code: 'registry-image.cluster-only',
      exitCode: 3,
      message: expect.stringContaining(`/ocp/art-dev@${digest} is an OpenShift registry`) as string,
      found: 'no usr/bin/distribution, etc/registry/config.yaml',
    });
  });

  it('starts by its own entrypoint if only its name resembles the image of OpenShift', async () => {
    const Labels = { name: 'example/docker-registry' };
    await add({ 'usr/bin/registry': 'x' }, { Labels, Cmd: ['registry', 'serve', '/c.yml'] });
    expect((await inspect('tools/registry:1')).useDistributionEntrypoint).toBe(false);
  });

  it('may have its program behind links, as images with a merged /usr have', async () => {
    const bin = { type: 'symlink', linkname: 'usr/bin' } as const;
    await add({ 'bin': bin, 'usr/bin/docker-registry': 'x' }, { Cmd: ['docker-registry'] });
    expect((await inspect('tools/registry:1')).useDistributionEntrypoint).toBe(false);
  });

  it.each([
    { what: 'no command', code: 'no-command', path: 'bin/registry', config: {} },
    {
      what: 'another program',
      code: 'not-distribution',
      path: 'usr/bin/bash',
      config: { Cmd: ['/usr/bin/bash'] },
    },
  ])('is refused by name when it has $what', async ({ code, path, config }) => {
    const digest = digestOfTop(await add({ [path]: 'x' }, config));
    await expect(inspect('tools/registry:1')).rejects.toMatchObject({
      code: `registry-image.${code}`,
      exitCode: 3,
      message: expect.stringContaining(`/tools/registry@${digest} `) as string,
      hint: expect.stringContaining('distribution registry') as string,
    });
  });

  it('is refused by name when it is for another architecture', async () => {
    world.registry.add('library/registry', await buildDistributionImage('arm64'), '2');
    await expect(inspect('library/registry:2')).rejects.toMatchObject({
      code: 'registry-image.architecture',
      expected: 'amd64',
      found: 'arm64',
    });
  });

  it('is read for the architecture of the hosts, and keeps the digest of its index', async () => {
    const index = buildIndex([
      [{ os: 'linux', architecture: 'amd64' }, await buildDistributionImage()],
      [{ os: 'linux', architecture: 'arm64' }, await buildDistributionImage('arm64')],
    ]);
    world.registry.add('library/registry', index, '2');
    const { reference } = await inspect('library/registry:2', { arch: 'aarch64' });
    expect(reference.digest).toBe(digestOfTop(index));
  });

  it.each(['5.0.0', '5.0.0-ec.2', '5.1.4'])(
    'must have openssl for release %s, whose hosts have none',
    async (version) => {
      await add({ 'bin/registry': 'x' }, { Cmd: ['registry'] });
      await expect(inspect('tools/registry:1', { version })).rejects.toMatchObject({
        code: 'registry-image.no-openssl',
        exitCode: 3,
        message: expect.stringContaining(`hosts of release ${version}`) as string,
      });
      await add({ 'bin/registry': 'x', 'usr/bin/openssl': 'x' }, { Cmd: ['registry'] });
      expect((await inspect('tools/registry:1', { version })).useDistributionEntrypoint).toBe(
        false,
      );
    },
  );

  it('must have openssl for 5.0 as a component of the payload, too', async () => {
    await add(NODE_FILES, { Cmd: CLUSTER_COMMAND });
    const component = { isComponent: true, version: '5.0.0' };
    await expect(inspect('tools/registry:1', component)).rejects.toMatchObject({
      code: 'registry-image.no-openssl',
    });
  });

  it('needs no openssl for 4.22, and no layer is fetched if it is a component', async () => {
    await add(NODE_FILES, { Cmd: CLUSTER_COMMAND });
    const { useDistributionEntrypoint } = await inspect('tools/registry:1', {
      isComponent: true,
      version: '4.22.1',
    });
    expect(useDistributionEntrypoint).toBe(true);
    const blobs = world.registry.requests.filter((line) => line.includes('/blobs/'));
    expect(blobs).toHaveLength(1); // the config
  });
});
