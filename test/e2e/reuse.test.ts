import { execFileSync } from 'node:child_process';
import { link, mkdir, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { digestFile } from '../../src/base/disk/files.ts';
import { useMedium } from '../../src/media/open.ts';
import { readIndex } from '../../src/media/media-index.ts';
import { freePort } from '../support/local-http.ts';
import { startNginx } from '../support/nginx.ts';
import { requireTool } from '../support/tools.ts';
import { createLiveWorld, type LiveWorld, type Outcome } from '../support/live-iso.ts';

let world: LiveWorld;
let digest: string;
/** Without the seeds, a build asks for so many blobs. */
let allBlobs: number;

beforeAll(async () => {
  world = await createLiveWorld();
  await world.writeConfig();
  await expectDone('a.iso');
  digest = await digestFile(at('a.iso'));
  allBlobs = countBlobs(0);
});
afterAll(() => world.close());

const at = (name: string): string => join(world.directory, name);

const build = (output: string, ...more: readonly string[]): Promise<Outcome> =>
  world.run('build', '--output', output, '--base-iso', 'test.iso', ...more);

async function expectDone(output: string, ...more: readonly string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await build(output, ...more);
  expect([exitCode, stderr]).toEqual([0, expect.not.stringContaining('error')]);
  return stdout;
}

/** Requests for blobs since so many requests were sent. */
const countBlobs = (since: number): number =>
  world.registry.requests.slice(since).filter((request) => request.includes('/blobs/')).length;

/** Builds with nothing in the cache, and tells how many blobs were asked for. */
async function buildAnew(output: string, ...more: readonly string[]): Promise<number> {
  await rm(at('.sealift'), { recursive: true, force: true });
  const before = world.registry.requests.length;
  await expectDone(output, ...more);
  return countBlobs(before);
}

/** Offset of the largest blob of an ISO. */
const findBlob = (path: string): Promise<number> =>
  useMedium(path, async (iso) => {
    const index = await readIndex(iso);
    const blobs = (index?.extents ?? []).filter(({ paths }) =>
      paths.some((p) => p.includes('/blobs/')),
    );
    return blobs.toSorted((a, b) => b.size - a.size)[0]?.offset ?? -1;
  });

describe('a build takes blobs', () => {
  test('from the ISO that it replaces, without requests to the network', async () => {
    await rm(at('a.iso.report.json'));
    expect(await buildAnew('a.iso', '--force')).toBe(0);
    expect(await digestFile(at('a.iso'))).toBe(digest);
  });

  test('from the network if seeds are turned off', async () => {
    expect(await buildAnew('a.iso', '--no-seed')).toBe(allBlobs);
    expect(await digestFile(at('a.iso'))).toBe(digest);
  });

  test('from other sources if the seed has damaged bytes, which never reach the new ISO', async () => {
    const file = await open(at('a.iso'), 'r+');
    await file.write(Buffer.from('flipped'), 0, 7, await findBlob(at('a.iso')));
    await file.close();
    expect(await buildAnew('a.iso')).toBe(1);
    expect(await digestFile(at('a.iso'))).toBe(digest);
  });

  test('from an ISO, the root of a registry and an OCI layout that are named', async () => {
    await rename(at('a.iso'), at('seed.iso'));
    expect(await buildAnew('a.iso', '--seed', 'seed.iso')).toBe(0);
    await mkdir(at('tree'));
    execFileSync('bsdtar', ['-xf', at('a.iso'), '-C', at('tree'), 'registry']);
    for (const [name, seed] of [
      ['b.iso', 'tree/registry'],
      ['c.iso', 'tree'],
    ] as const) {
      expect(await buildAnew(name, '--seed', seed)).toBe(0);
      expect(await digestFile(at(name))).toBe(digest);
    }
    const blobs = at('tree/registry/docker/registry/v2/blobs/sha256');
    await mkdir(at('oci/blobs/sha256'), { recursive: true });
    execFileSync('sh', [
      '-c',
      `for d in ${blobs}/*/*; do cp $d/data ${at('oci')}/blobs/sha256/$(basename $d); done`,
    ]);
    expect(await buildAnew('d.iso', '--seed', 'oci', '--seed', 'tree')).toBe(0);
  });

  test('from an ISO of openshift/appliance, whose data image is read through its parts', async () => {
    // By its layout: no real one can be had here. The blobs cross the borders of the parts.
    execFileSync(
      'sh',
      [
        '-ec',
        'genisoimage -quiet -R -D -iso-level 3 -V agentdata -o data.iso tree/registry; mkdir -p outer/registry; ' +
          'split -b 500k data.iso outer/registry/data.iso; genisoimage -quiet -R -V rhcos -o appliance-like.iso outer',
      ],
      { cwd: world.directory, stdio: 'ignore' },
    );
    expect(await buildAnew('f.iso', '--seed', 'appliance-like.iso')).toBe(0);
    expect(await digestFile(at('f.iso'))).toBe(digest);
  });

  test.skipIf(!requireTool('nginx'))('from an ISO at an address, by ranges', async () => {
    await mkdir(at('files'));
    await link(at('seed.iso'), at('files/seed.iso'));
    const port = await freePort();
    const nginx = await startNginx(world.directory, port);
    try {
      const seed = `http://127.0.0.1:${port}/seed.iso`;
      expect(await buildAnew('g.iso', '--seed', seed)).toBe(0);
      expect(await digestFile(at('g.iso'))).toBe(digest);
    } finally {
      await nginx.kill();
    }
  });

  test('only from named places: a path that is not a seed is refused before any request', async () => {
    await writeFile(at('text'), 'text');
    await mkdir(at('empty'));
    const before = world.registry.requests.length;
    for (const [seed, code] of [
      ['gone', 'seed.unreadable'],
      ['empty', 'seed.unknown'],
      ['test.iso', 'seed.unknown'],
      ['text', 'iso.not-iso9660'],
    ] as const) {
      const { exitCode, stderr } = await build('e.iso', '--seed', seed);
      expect([seed, exitCode, stderr]).toEqual([
        seed,
        code.startsWith('seed') ? 3 : 5,
        expect.stringContaining(`[${code}]`),
      ]);
    }
    expect(world.registry.requests).toHaveLength(before);
  });
});

describe('a finished ISO', () => {
  test('is up to date, and no byte of it is read or written', async () => {
    await expectDone('a.iso');
    const { ino, mtimeMs } = await stat(at('a.iso'));
    const before = world.registry.requests.length;
    const stdout = await expectDone('a.iso', '-o', 'json');
    expect(JSON.parse(stdout)).toMatchObject({
      isUpToDate: true,
      digest,
      bytes: { fetched: 0, written: 0 },
    });
    expect(countBlobs(before)).toBe(0);
    expect(await stat(at('a.iso'))).toMatchObject({ ino, mtimeMs });
    expect(await expectDone('a.iso')).toContain('a.iso is up to date');
  });

  test('is built again if it, its checksum or its inputs have changed', async () => {
    const edits: readonly (() => Promise<unknown>)[] = [
      async () => {
        const file = await open(at('a.iso'), 'r+');
        await file.write(Buffer.from('flipped'), 0, 7, await findBlob(at('a.iso')));
        await file.close();
      },
      () => rm(at('a.iso.sha256')),
      () => writeFile(at('a.iso.report.json'), '{"product":"live-iso'),
      () => world.writeConfig('  kernelArguments: [debug]'),
    ];
    for (const edit of edits) {
      await edit();
      const stdout = await expectDone('a.iso', '--force', '-o', 'json');
      expect(JSON.parse(stdout)).toMatchObject({ isUpToDate: false });
    }
    await world.writeConfig();
    await expectDone('a.iso');
    expect(await digestFile(at('a.iso'))).toBe(digest);
    expect(await readFile(at('a.iso.sha256'), 'utf8')).toBe(`${digest.slice(7)}  a.iso\n`);
  });
});
