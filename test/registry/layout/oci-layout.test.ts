import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hexOf } from '../../../src/base/digest.ts';
import { openOciLayout } from '../../../src/registry/layout/oci-layout.ts';
import { writeOciLayout } from '../../support/catalog-images.ts';
import { buildImage, buildIndex, packTar, type TestImage } from '../../support/images.ts';
import { requireTool } from '../../support/tools.ts';

const { signal } = new AbortController();
let folder = '';

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sealift-layout-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const imageOf = async (text: string): Promise<TestImage> =>
  buildImage([{ tar: await packTar([['a', text]]) }]);

const topOf = ({ manifests: [top] }: TestImage) => {
  if (!top) throw new Error('image has no manifest');
  return top;
};

const layerOf = (image: TestImage) => {
  const { manifest } = topOf(image);
  const layer = manifest.kind === 'manifest' ? manifest.layers[0] : undefined;
  if (!layer) throw new Error('image has no layer');
  return layer;
};

const fails = (code: string, hint = ''): unknown =>
  expect.objectContaining({ code, ...(hint && { hint: expect.stringContaining(hint) as string }) });

describe('an OCI image layout', () => {
  it('gives the image of a name, with its blobs in place', async () => {
    const [one, two] = [await imageOf('one'), await imageOf('two')];
    await writeOciLayout(folder, [
      ['v1', one],
      ['v2', two],
    ]);
    const { reference, client, cache } = await openOciLayout(folder, 'v2');
    expect(reference.digest).toBe(topOf(two).descriptor.digest);
    expect(await client.fetchManifest(reference, { signal })).toEqual(topOf(two));
    const layer = layerOf(two);
    const path = await cache.ensure(layer, client.sourcesOf(reference), { signal });
    expect(path).toBe(join(folder, 'blobs', 'sha256', hexOf(layer.digest)));
    expect(await readFile(path)).toEqual(two.blobs.get(layer.digest));
  });

  it('knows its other images by their tags, and reports names that it does not have', async () => {
    const [one, two] = [await imageOf('one'), await imageOf('two')];
    await writeOciLayout(folder, [
      ['v1', one],
      ['v2', two],
    ]);
    const { reference, client } = await openOciLayout(folder, 'v2');
    const { registry, repository } = reference;
    const resolve = (tag: string) => client.resolveTag({ registry, repository, tag }, { signal });
    expect(await resolve('v1')).toEqual(topOf(one).descriptor);
    expect(await resolve('v3')).toBeUndefined();
    await expect(
      client.fetchManifest({ registry, repository, tag: 'v3' }, { signal }),
    ).rejects.toThrow(fails('oci-layout.no-image', 'v1, v2'));
  });

  it('needs no name if it has one image', async () => {
    const image = await imageOf('one');
    await writeOciLayout(folder, [['', image]]);
    const { reference } = await openOciLayout(folder);
    expect(reference.digest).toBe(topOf(image).descriptor.digest);
  });

  it('may hold an index with its children', async () => {
    const image = buildIndex([[{ os: 'linux', architecture: 'amd64' }, await imageOf('one')]]);
    await writeOciLayout(folder, [['v1', image]]);
    const { reference, client } = await openOciLayout(folder, 'v1');
    expect((await client.fetchManifest(reference, { signal })).manifest.kind).toBe('index');
    const digest = image.manifests[1]?.descriptor.digest;
    if (!digest) throw new Error('index has no child');
    const child = await client.fetchManifest({ ...reference, digest }, { signal });
    expect(child).toEqual(image.manifests[1]);
  });

  it.skipIf(!requireTool('skopeo'))('is read as skopeo writes it', async () => {
    const image = await imageOf('one');
    await writeOciLayout(join(folder, 'from'), [['v1', image]]);
    execFileSync('skopeo', [
      ...['--insecure-policy', 'copy', '-q'],
      ...[`oci:${folder}/from:v1`, `oci:${folder}/to:v2`],
    ]);
    const { reference, client, cache } = await openOciLayout(join(folder, 'to'), 'v2');
    expect(await client.fetchManifest(reference, { signal })).toEqual(topOf(image));
    await cache.ensure(layerOf(image), [], { signal });
  });

  it('is refused with the names of its images if none or several match', async () => {
    await writeOciLayout(folder, [
      ['v1', await imageOf('one')],
      ['v2', await imageOf('two')],
    ]);
    await expect(openOciLayout(folder, 'v3')).rejects.toThrow(
      fails('oci-layout.no-image', 'v1, v2'),
    );
    await expect(openOciLayout(folder)).rejects.toThrow(fails('oci-layout.ambiguous', 'v1, v2'));
  });
});

describe('a damaged OCI image layout', () => {
  it('is distinguished from any other directory', async () => {
    await expect(openOciLayout(folder)).rejects.toThrow(fails('oci-layout.missing', 'skopeo'));
  });

  it.each([
    ['a version of the future', 'oci-layout', '{"imageLayoutVersion":"2.0.0"}', 'version'],
    ['a version that is not valid JSON', 'oci-layout', '{', 'malformed'],
    ['an index that is not valid JSON', 'index.json', '[', 'malformed'],
    ['an index that is null', 'index.json', 'null', 'malformed'],
    ['an index without manifests', 'index.json', '{"schemaVersion":2}', 'malformed'],
    ['an index without images', 'index.json', '{"schemaVersion":2,"manifests":[]}', 'no-image'],
  ])('with %s is refused', async (...[, name, text, word]) => {
    await writeOciLayout(folder, [['v1', await imageOf('one')]]);
    await writeFile(join(folder, name), text);
    await expect(openOciLayout(folder)).rejects.toThrow(fails(`oci-layout.${word}`));
  });

  it('is refused if a digest would lead out of it', async () => {
    const digest = `sha256:${'../'.repeat(20)}etc/passwd`;
    await writeOciLayout(folder, []);
    const manifests = [{ mediaType: 'application/x', digest, size: 1 }];
    await writeFile(join(folder, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests }));
    await expect(openOciLayout(folder)).rejects.toThrow(fails('manifest.malformed'));
  });

  it('gives no blob whose bytes are missing, truncated or changed', async () => {
    const image = await imageOf('one');
    await writeOciLayout(folder, [['v1', image]]);
    const top = topOf(image);
    const layer = layerOf(image);
    const pathOf = (digest: typeof layer.digest): string =>
      join(folder, 'blobs', 'sha256', hexOf(digest));
    const ensure = async (): Promise<string> =>
      (await openOciLayout(folder)).cache.ensure(layer, [], { signal });

    await writeFile(pathOf(layer.digest), Buffer.alloc(layer.size));
    await expect(ensure()).rejects.toThrow(fails('oci-layout.blob-damaged'));
    await truncate(pathOf(layer.digest), 1);
    await expect(ensure()).rejects.toThrow(fails('oci-layout.blob-damaged'));
    await rm(pathOf(layer.digest));
    await expect(ensure()).rejects.toThrow(fails('oci-layout.blob-missing'));

    const { client, reference } = await openOciLayout(folder);
    await writeFile(pathOf(top.descriptor.digest), '{}');
    await expect(client.fetchManifest(reference, { signal })).rejects.toThrow(
      fails('oci-layout.blob-damaged'),
    );
    await truncate(pathOf(top.descriptor.digest), 5_000_000);
    await expect(client.fetchManifest(reference, { signal })).rejects.toThrow(
      fails('oci-layout.blob-damaged'),
    );
  });
});
