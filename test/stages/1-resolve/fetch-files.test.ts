import { readFile, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { digestOf } from '../../../src/base/digest.ts';
import type { FileInput } from '../../../src/base/disk/file-digests.ts';
import { hasFile } from '../../../src/base/disk/files.ts';
import type { Release } from '../../../src/openshift/release/release.ts';
import type { BaseIso, GivenBaseIso } from '../../../src/openshift/release/base-iso.ts';
import { fetchBaseIso } from '../../../src/stages/1-resolve/fetch-base-iso.ts';
import { fetchInstaller } from '../../../src/stages/1-resolve/fetch-installer.ts';
import { takeBaseIso } from '../../../src/stages/1-resolve/fetch-base-iso.ts';
import { resolveRelease } from '../../../src/stages/1-resolve/resolve-release.ts';
import { createImageWorld, type ImageWorld } from '../../support/image-tools.ts';
import { serveByTls } from '../../support/tls-server.ts';
import { requireTool } from '../../support/tools.ts';
import { addRelease, TEST_INSTALLER, type ReleaseOptions } from '../../support/release.ts';

let world: ImageWorld;
const releaseOf = async (options: ReleaseOptions = {}): Promise<Release> => {
  const { pullspec } = await addRelease(world.registry, options);
  const version = options.version ?? '4.21.3';
  const input = { url: pullspec, version, channel: 'stable', arch: 'x86_64' as const };
  return resolveRelease.run(input, world, world.context);
};
const fetchIso = (release: Release): Promise<BaseIso> =>
  fetchBaseIso.run({ release }, world, world.context);
const takeIso = (given: GivenBaseIso, tools = {}): Promise<BaseIso> =>
  takeBaseIso.run({ given }, { ...world, ...tools }, world.context);
const fetchTool = (release: Release, fips = false, machine = 'amd64'): Promise<FileInput> =>
  fetchInstaller.run({ release, fips, machine }, world, world.context);

beforeEach(async () => {
  world = await createImageWorld();
});
afterEach(() => world.close());

describe('the base ISO of a release', () => {
  const iso = Buffer.alloc(3_000_000, 'ISO ');

  it('is the live ISO in machine-os-images', async () => {
    const release = await releaseOf({ iso });
    const found = await fetchIso(release);
    expect(found).toMatchObject({ size: iso.length, digest: digestOf(iso) });
    expect(found.path).toMatch(/\/cache\/base\/[0-9a-f]{64}\.iso$/);
    expect(found.from).toMatch(/^coreos\/coreos-x86_64\.iso of .*\/ocp\/art-dev@sha256:/);
    expect(digestOf(await readFile(found.path))).toBe(digestOf(iso));
  });

  it('has another name from 5.0 on, nightlies included', async () => {
    for (const version of ['5.0.1', '5.0.0-0.nightly-2026']) {
      const { from, size } = await fetchIso(await releaseOf({ version, iso }));
      expect({ from: from.split(' ')[0], size }).toEqual({
        from: 'coreos/coreos10-x86_64.iso',
        size: iso.length,
      });
    }
    const { from } = await fetchIso(await releaseOf({ version: '4.22.0-rc.1', iso }));
    expect(from).toContain('coreos/coreos-x86_64.iso');
  });

  it('is extracted once: a second run does not ask the registry for it', async () => {
    const release = await releaseOf({ iso });
    const first = await fetchIso(release);
    const count = world.registry.requests.length;
    await rm(join(world.directory, 'blobs', 'sha256', 'x'), { force: true });
    expect(await fetchIso(release)).toEqual(first);
    expect(world.registry.requests).toHaveLength(count);
  });

  it('is extracted again when the file was cut, changed, or never finished', async () => {
    const release = await releaseOf({ iso });
    const { path } = await fetchIso(release);
    await truncate(path, 100);
    expect(await fetchIso(release)).toMatchObject({ digest: digestOf(iso) });
    await writeFile(path, Buffer.alloc(iso.length, 'bad '));
    await utimes(path, 1, 1);
    expect(await fetchIso(release)).toMatchObject({ digest: digestOf(iso) });
    await rm(`${path}.json`);
    await writeFile(path, 'half');
    expect(await fetchIso(release)).toMatchObject({ digest: digestOf(iso) });
    expect(digestOf(await readFile(path))).toBe(digestOf(iso));
  });

  it('is digested again, and no more, when only its time has changed', async () => {
    const release = await releaseOf({ iso });
    const first = await fetchIso(release);
    await utimes(first.path, 1, 1);
    expect(await fetchIso(release)).toEqual(first);
    expect((await stat(first.path)).mtimeMs).toBe(1000);
  });

  it('is reported missing if the payload has none for the architecture', async () => {
    const release = await releaseOf({ iso });
    await expect(
      fetchBaseIso.run({ release: { ...release, arch: 'ppc64le' } }, world, world.context),
    ).rejects.toMatchObject({ code: 'layer.file-missing', exitCode: 5 });
    const without = { ...release, components: [] };
    await expect(fetchIso(without)).rejects.toMatchObject({ code: 'release.component-missing' });
  });
});

describe('a given base ISO', () => {
  it('is used in place if it is a file', async () => {
    const path = join(world.directory, 'own.iso');
    await writeFile(path, 'own');
    expect(await takeIso({ file: path })).toEqual({
      kind: 'file',
      path,
      size: 3,
      digest: digestOf('own'),
      from: path,
    });
  });

  it('is a configuration error if it is a file that does not exist', async () => {
    await expect(takeIso({ file: '/none.iso' })).rejects.toMatchObject({
      code: 'base-iso.missing',
      exitCode: 3,
    });
  });

  it('needs https and a digest if it is an address', async () => {
    await expect(takeIso({ url: 'http://a.example.com/x.iso' })).rejects.toMatchObject({
      code: 'base-iso.not-https',
    });
    await expect(takeIso({ url: 'https://a.example.com/x.iso' })).rejects.toMatchObject({
      code: 'base-iso.no-digest',
    });
  });
});

describe.skipIf(!requireTool('openssl'))('a base ISO given by address', () => {
  it('is fetched once by builds that need it at the same time', async () => {
    const iso = randomBytes(200_000);
    const server = await serveByTls(world.directory, (_, response) => {
      response.write(iso.subarray(0, 1000));
      setTimeout(() => response.end(iso.subarray(1000)), 300);
    });
    const given = { url: `${server.url}/x.iso`, sha256: digestOf(iso) };
    const tools = { tls: { ca: [server.certificate] } };
    const [one, two] = await Promise.all([
      takeIso(given, tools),
      sleep(100).then(() => takeIso(given, tools)),
    ]);
    expect(server.requests).toEqual(['/x.iso']);
    expect(two).toEqual(one);
    expect(digestOf(await readFile(one.path))).toBe(given.sha256);
    expect(await hasFile(one.path.replace('.iso', '.lock'))).toBe(false);
    await server.close();
  });
});

describe('the installer of a release', () => {
  it('is executable and has its release written into it', async () => {
    const release = await releaseOf();
    const found = await fetchTool(release);
    const text = (await readFile(found.path)).toString('latin1');
    const { host } = world.registry;
    const digest = release.reference.digest ?? '';
    expect((await stat(found.path)).mode & 0o777).toBe(0o755);
    expect(text).toContain(`exit 0\n${host}/ocp/release@${digest}\0`);
    expect(text).toContain('\x004.21.3\0');
    expect(text).toContain('\0amd64\0');
    expect(text).toHaveLength(TEST_INSTALLER.length);
    expect(found.digest).toBe(digestOf(await readFile(found.path)));
  });

  it('is extracted once', async () => {
    const release = await releaseOf();
    const first = await fetchTool(release);
    const count = world.registry.requests.length;
    expect(await fetchTool(release)).toEqual(first);
    expect(world.registry.requests).toHaveLength(count);
  });

  it('is the FIPS build if FIPS is enabled', async () => {
    const release = await releaseOf();
    const plain = await fetchTool(release);
    const fips = await fetchTool(release, true);
    expect(fips.size).toBeGreaterThan(plain.size);
  });

  it('comes from installer-artifacts for a machine of another architecture, FIPS or not', async () => {
    const arm = Buffer.concat([TEST_INSTALLER, Buffer.from('for arm64')]);
    const release = await releaseOf({ foreignInstallers: { amd64: TEST_INSTALLER, arm64: arm } });
    for (const fips of [false, true]) {
      const text = (await readFile((await fetchTool(release, fips, 'arm64')).path)).toString(
        'latin1',
      );
      expect(text).toContain('for arm64');
      expect(text).toContain(`@${release.reference.digest ?? ''}\0`);
      expect(text).toContain('\0amd64\0'); // of the release, not of the machine
    }
    await expect(fetchTool(release, false, 'ppc64le')).rejects.toMatchObject({
      code: 'installer.machine',
      exitCode: 3,
      found: 'ppc64le',
    });
    await expect(fetchTool(await releaseOf(), false, 'arm64')).rejects.toMatchObject({
      code: 'release.component-missing',
      expected: 'installer-artifacts',
      hint: 'name an installer of this release that runs on this machine in build.installer',
    });
  });

  it.each([
    ['out of the image', '../../../../../../../../etc/passwd', 'layer.file-missing'],
    ['to a file of this machine', '/etc/passwd', 'layer.file-missing'],
    ['to itself', 'openshift-install', 'layer.link-loop'],
  ])('is not there if installer-artifacts has a link %s', async (_, linkname, code) => {
    const release = await releaseOf({
      foreignInstallers: { arm64: { type: 'symlink', linkname } },
    });
    await expect(fetchTool(release, false, 'arm64')).rejects.toMatchObject({
      code,
    });
  });
});
