import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { digestOf, type Digest } from '../../../src/base/digest.ts';
import { checkClosure, type ClosureProblem } from '../../../src/registry/layout/closure.ts';
import { pathTo, planDistributionTree } from '../../../src/registry/layout/distribution.ts';
import { directoryTree } from '../../../src/registry/layout/tree.ts';
import { buildImage, buildIndex, descriptorOf, packTar, writeTree } from '../../support/images.ts';

const tar = await packTar([['a', '1']]);
const absent = descriptorOf(Buffer.from('absent'), 'application/vnd.oci.image.manifest.v1+json');
const foreign = [
  descriptorOf(Buffer.from('far'), 'application/vnd.oci.image.layer.nondistributable.v1.tar'),
];
const image = buildImage([{ tar }], { foreign });
const index = buildIndex([[{ architecture: 'amd64', os: 'linux' }, image]], { absent });
const [top, child] = index.manifests.map(({ descriptor }) => descriptor.digest) as [Digest, Digest];
const [config, layer] = [...index.blobs.keys()] as [Digest, Digest];
const name = 'openshift/release';

let root = '';
const at = (path: string): string => join(root, path);
const check = (): Promise<ClosureProblem[]> => checkClosure(directoryTree(root));

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'sealift-closure-'));
  const images = [
    { repository: name, tags: ['4.20.1'], manifests: index.manifests },
    { repository: 'other', tags: ['x', 'y'], manifests: image.manifests },
  ];
  await writeTree(root, planDistributionTree(images), index.blobs);
});
afterEach(() => rm(root, { recursive: true, force: true }));

describe('a registry tree', () => {
  it('is closed as planned, with a sparse index and foreign layers', async () => {
    expect(await check()).toEqual([]);
  });

  it('is closed if it is empty', async () => {
    expect(await checkClosure(directoryTree(join(root, 'nowhere')))).toEqual([]);
  });

  it.each([
    ['a blob', pathTo.blob(layer), [`other@${child}`, `${name}@${child}`]],
    ['a config', pathTo.blob(config), [`other@${child}`, `${name}@${child}`]],
    [
      'a child manifest',
      pathTo.blob(child),
      [`other@${child}`, `${name}@${child}`, `${name}@${top}`],
    ],
    ['an index', pathTo.blob(top), [`${name}@${top}`]],
    ['the link of a layer', pathTo.layerLink(name, layer), [`${name}@${child}`]],
    ['the current link of a tag', pathTo.tagLink(name, '4.20.1'), [`${name}@4.20.1`]],
    [
      'the index link of a tag',
      pathTo.tagIndexLink({ repository: name, tag: '4.20.1', digest: top }),
      [`${name}@4.20.1`],
    ],
  ])(
    'without %s is reported with the file and every image that needs it',
    async (_what, path, users) => {
      await rm(at(path));
      const problems = await check();
      expect(
        new Set(problems.map(({ repository, reference }) => `${repository}@${reference}`)),
      ).toEqual(new Set(users));
      for (const problem of problems)
        expect(problem).toMatchObject({ path, problem: 'is missing' });
    },
  );

  it('without the link of a tagged revision is reported for the tag and the revision', async () => {
    const path = pathTo.revisionLink(name, top);
    await rm(at(path));
    expect(await check()).toEqual([
      { repository: name, reference: '4.20.1', path, problem: 'is missing' },
      { repository: name, reference: top, path, problem: 'is missing' },
    ]);
  });

  it('whose index has none of its children is not closed', async () => {
    await rm(at(pathTo.revisionLink(name, child)));
    await rm(at(join(pathTo.revisions(name), child.slice(7))), { recursive: true });
    expect(await check()).toEqual([
      {
        repository: name,
        reference: top,
        path: pathTo.blob(top),
        problem: 'names 2 manifests, but the repository has none of them',
      },
    ]);
  });

  it('with a truncated blob is reported with both sizes', async () => {
    await truncate(at(pathTo.blob(layer)), 10);
    const size = index.blobs.get(layer)?.length ?? 0;
    expect((await check())[0]).toEqual({
      repository: name,
      reference: child,
      path: pathTo.blob(layer),
      problem: `should be ${size} bytes, but is 10 bytes`,
    });
  });

  it('with a manifest of other bytes is reported with both digests', async () => {
    const bytes = Buffer.from(index.manifests[0]?.bytes ?? []).fill(0x20, 0, 1);
    await writeFile(at(pathTo.blob(top)), bytes);
    const [problem, ...more] = await check();
    expect(problem?.problem).toContain(digestOf(bytes));
    expect(more).toEqual([]);
  });

  it.each(['', `${top}\n`, `${top.slice(0, -1)}X`, 'x'.repeat(71)])(
    'with a link of %j is not closed',
    async (text) => {
      await writeFile(at(pathTo.tagLink(name, '4.20.1')), text);
      const [problem] = await check();
      expect(problem?.problem).toContain('should hold a digest of 71 bytes');
    },
  );

  it('with a link to another digest than its path says is not closed', async () => {
    await writeFile(at(pathTo.layerLink(name, layer)), config);
    expect(await check()).toMatchObject([{ problem: expect.stringContaining(config) as unknown }]);
  });

  it('with a manifest too large for any registry is not read into memory', async () => {
    await truncate(at(pathTo.blob(top)), 5 * 1024 ** 3);
    expect(await check()).toMatchObject([{ reference: top, path: pathTo.blob(top) }]);
  });
});
