import { describe, expect, it } from 'vitest';
import { digestOf, hexOf } from '../../../src/base/digest.ts';
import {
  planDistributionTree,
  type PlacedImage,
} from '../../../src/registry/layout/distribution.ts';
import {
  buildImage,
  buildIndex,
  descriptorOf,
  packTar,
  storeManifest,
} from '../../support/images.ts';

const tar = await packTar([['etc/hello', 'world']]);
const other = await packTar([['etc/hello', 'other']]);
const amd64 = { architecture: 'amd64', os: 'linux' };
const place = (image: Pick<PlacedImage, 'manifests'>, repository: string, ...tags: string[]) => ({
  ...image,
  repository,
  tags,
});

describe('the tree of a registry', () => {
  it('has one data file for each blob, a link in each repository that uses it, and two links for each tag', () => {
    const image = buildImage([{ tar }]);
    const top = image.manifests[0]?.descriptor.digest ?? digestOf('');
    const files = planDistributionTree([place(image, 'openshift/release', '4.20.1')]);
    const [config, layer] = [...image.blobs.keys()].map(hexOf);
    const R = '/docker/registry/v2';
    const N = `${R}/repositories/openshift/release`;
    expect(files.map(({ path }) => path)).toEqual(
      [
        ...[hexOf(top), config, layer].map(
          (hex = '') => `${R}/blobs/sha256/${hex.slice(0, 2)}/${hex}/data`,
        ),
        ...[config, layer].map((hex = '') => `${N}/_layers/sha256/${hex}/link`),
        `${N}/_manifests/revisions/sha256/${hexOf(top)}/link`,
        `${N}/_manifests/tags/4.20.1/current/link`,
        `${N}/_manifests/tags/4.20.1/index/sha256/${hexOf(top)}/link`,
      ].sort(),
    );
  });

  it('holds links of exactly 71 bytes, unchanged manifests, and blobs to be poured', () => {
    const image = buildImage([{ tar }], { family: 'docker' });
    for (const { path, content } of planDistributionTree([place(image, 'a', 't')])) {
      if (content.kind === 'blob') {
        expect(content.size).toBe(image.blobs.get(content.digest)?.length);
      } else if (path.endsWith('/link')) {
        expect(Buffer.from(content.bytes).toString()).toMatch(/^sha256:[0-9a-f]{64}$/);
      } else {
        expect(content.bytes).toBe(image.manifests[0]?.bytes);
      }
    }
  });

  it('holds a shared blob once, and is the same for images in any order', () => {
    const images = [
      place(buildImage([{ tar }, { tar: other }]), 'one', 'x'),
      place(buildImage([{ tar }]), 'two/deep', 'x', 'y'),
    ];
    const files = planDistributionTree(images);
    expect(new Set(files.map(({ path }) => path)).size).toBe(files.length);
    expect(planDistributionTree(images.toReversed())).toEqual(files);
    expect(planDistributionTree([...images, ...images])).toEqual(files);
    const data = files.filter(({ path }) => path.endsWith('/data'));
    expect(data.length).toBe(2 + 2 + 2);
  });

  it('has a revision for each carried child of an index, and none for absent ones', () => {
    const absent = descriptorOf(
      Buffer.from('absent'),
      'application/vnd.oci.image.manifest.v1+json',
    );
    const index = buildIndex([[amd64, buildImage([{ tar }])]], { absent });
    const files = planDistributionTree([place(index, 'multi', 'latest')]);
    const revisions = files.filter(({ path }) => path.includes('/revisions/'));
    expect(revisions.length).toBe(2);
    expect(files.some(({ path }) => path.includes(hexOf(absent.digest)))).toBe(false);
  });

  it('leaves foreign layers at their URLs', () => {
    const named = [
      'docker.image.rootfs.foreign.diff.tar.gzip',
      'oci.image.layer.nondistributable.v1.tar',
    ];
    const foreign = [
      ...named.map((type) => descriptorOf(Buffer.from(type), `application/vnd.${type}`)),
      { ...descriptorOf(Buffer.from('u'), 'application/x'), urls: ['https://far.example/u'] },
    ];
    const files = planDistributionTree([place(buildImage([{ tar }], { foreign }), 'win')]);
    for (const { digest } of foreign) {
      expect(files.filter(({ path }) => path.includes(hexOf(digest)))).toEqual([]);
    }
  });

  it('refuses two images that claim one tag', () => {
    const images = [
      place(buildImage([{ tar }]), 'a', 't'),
      place(buildImage([{ tar: other }]), 'a', 't'),
    ];
    expect(() => planDistributionTree(images)).toThrow(
      /tags\/t\/current\/link should hold sha256:/,
    );
  });

  it('refuses a digest with two sizes', () => {
    const image = buildImage([{ tar }]);
    const [config, layer] = [...image.blobs.values()].map((bytes) => descriptorOf(bytes, 'x'));
    const wrong = storeManifest({
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      config,
      layers: [{ ...layer, size: 5 }],
    });
    expect(() =>
      planDistributionTree([place(image, 'a'), place({ manifests: [wrong] }, 'b')]),
    ).toThrow(expect.objectContaining({ code: 'layout.size-conflict' }));
  });

  it('refuses a manifest whose bytes are not those of its digest', () => {
    const manifests = buildImage([{ tar }]).manifests.map((stored) => ({
      ...stored,
      bytes: Buffer.alloc(stored.bytes.length),
    }));
    expect(() => planDistributionTree([place({ manifests }, 'a')])).toThrow(
      expect.objectContaining({ code: 'layout.digest-mismatch' }),
    );
  });

  it.each(['', '../up', 'a/../b', 'A', 'a//b', '_layers', 'a/_manifests', 'a:b', 'a@b', '/a'])(
    'refuses the repository name "%s"',
    (repository) => {
      expect(() => planDistributionTree([place(buildImage([{ tar }]), repository)])).toThrow(
        'is not a valid repository name',
      );
    },
  );

  it.each(['', '..', '../x', '-a', 'a/b', 'a'.repeat(129)])('refuses the tag "%s"', (tag) => {
    expect(() => planDistributionTree([place(buildImage([{ tar }]), 'a', tag)])).toThrow(
      'is not a valid tag',
    );
  });
});
