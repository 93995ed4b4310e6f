import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hexOf } from '../../../src/base/digest.ts';
import { runProcess } from '../../../src/base/process.ts';
import { planDirLayout } from '../../../src/registry/layout/distribution.ts';
import { buildImage, buildIndex, packTar, writeTree } from '../../support/images.ts';
import { requireTool } from '../../support/tools.ts';

const tar = await packTar([['etc/hello', 'world']]);
const amd64 = { architecture: 'amd64', os: 'linux' };
const arm64 = { architecture: 'arm64', os: 'linux' };

describe('an image in dir: form', () => {
  it('has a version file, its manifest, and children and blobs named by their digests', () => {
    const index = buildIndex([[amd64, buildImage([{ tar }])]]);
    const child = hexOf(index.manifests[1]?.descriptor.digest ?? 'sha256:');
    expect(planDirLayout(index.manifests).map(({ path }) => path)).toEqual(
      [
        '/version',
        '/manifest.json',
        `/${child}.manifest.json`,
        ...[...index.blobs.keys()].map((digest) => `/${hexOf(digest)}`),
      ].sort(),
    );
  });
});

describe.skipIf(!requireTool('skopeo'))('an image in dir: form, read by skopeo', () => {
  let folder = '';
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sealift-dir-'));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it.each(['oci', 'docker'] as const)('keeps the digest of every %s manifest', async (family) => {
    const images = [
      [amd64, buildImage([{ tar }], { family })],
      [arm64, buildImage([{ tar }], { family, architecture: 'arm64' })],
    ] as const;
    const index = buildIndex(images, { family });
    const root = join(folder, family);
    const copy = join(folder, `${family}-copy`);
    const files = planDirLayout(index.manifests);
    await writeTree(root, files, index.blobs);
    await runProcess('skopeo', ['copy', '-q', '--all', `dir:${root}`, `dir:${copy}`]);
    const inspected = await runProcess('skopeo', ['inspect', '--raw', `dir:${copy}`]);
    expect(inspected.stdout).toBe(Buffer.from(index.manifests[0]?.bytes ?? []).toString());
  });
});
