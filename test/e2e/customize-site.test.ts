import { execFileSync } from 'node:child_process';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { copyFile, rm } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CONFIG_AREA_SIZE } from '../../src/media/config-area.ts';
import type { Inspection } from '../../src/media/inspect.ts';
import { readIndex } from '../../src/media/media-index.ts';
import { useMedium } from '../../src/media/open.ts';
import { formatImageSet, IMAGE_SET_PATH, makeLiveMedium } from '../support/config-image.ts';
import { TEST_SSH_KEY } from '../support/installation-iso.ts';
import { startPlainRegistry } from '../support/plain-registry.ts';
import { createSiteWorld, type SiteWorld } from '../support/site-medium.ts';
import { requireTool } from '../support/tools.ts';

const hasTools = ['genisoimage', 'isohybrid', 'xorriso', 'bsdtar', 'blkid', 'openssl'].every(
  requireTool,
);

describe.skipIf(!hasTools)('a live ISO with the configuration image of a site inside', () => {
  let world: SiteWorld;
  let live: Buffer;
  const read = (name: string): Buffer => readFileSync(world.at(name));
  const areaOf = (name: string): Buffer => {
    const { offset, size } = world.area;
    return read(name).subarray(offset, offset + size);
  };
  const writeArea = (name: string, bytes: Uint8Array): void => {
    const medium = Buffer.from(live);
    const area = Buffer.alloc(world.area.size);
    area.set(bytes);
    medium.set(area, world.area.offset);
    writeFileSync(world.at(name), medium);
  };
  async function refuse(...args: string[]): Promise<{ exitCode: number; stderr: string }> {
    const before = read('live.iso');
    const { exitCode, stderr } = await world.run('customize', ...args);
    expect(read('live.iso').equals(before)).toBe(true);
    return { exitCode, stderr };
  }
  const verify = async (name: string): Promise<unknown> =>
    JSON.parse((await world.run('verify', name, '-o', 'json')).stdout);

  beforeAll(async () => {
    world = await createSiteWorld();
    live = read('live.iso');
    await world.writeImage('site.iso', world.members);
    await world.sealift('customize', 'live.iso', '--site', 'site.iso', '--output', 'one.iso');
  }, 60_000);
  afterAll(() => world.close());

  it('has zeros in the area when it is built, and is whole', async () => {
    expect(world.area.size).toBe(CONFIG_AREA_SIZE);
    expect(areaOf('live.iso').every((byte) => byte === 0)).toBe(true);
    expect(await useMedium(world.at('live.iso'), readIndex)).toMatchObject({ format: 4 });
    expect(await verify('live.iso')).toMatchObject({ state: 'whole', customised: false });
    expect(await world.sealift('inspect', 'live.iso')).toContain('configuration image as built');
  });

  it('has the bytes of the image in the area, and every other byte as before', () => {
    const { offset, size } = world.area;
    const image = read('site.iso');
    const one = read('one.iso');
    expect(one.subarray(offset, offset + image.length).equals(image)).toBe(true);
    const rest = [one.subarray(0, offset), one.subarray(offset + size)];
    expect(
      Buffer.concat(rest).equals(
        Buffer.concat([live.subarray(0, offset), live.subarray(offset + size)]),
      ),
    ).toBe(true);
  });

  it('shows the area as an ISO of the label that hosts look for, with the archive of the image', async () => {
    writeFileSync(world.at('area.img'), areaOf('one.iso'));
    const label = execFileSync('blkid', ['-p', '-s', 'LABEL', '-o', 'value', world.at('area.img')]);
    expect(label.toString()).toBe('agent_configimage\n');
    const [inside, outside] = ['area.img', 'site.iso'].map((name) =>
      execFileSync('bsdtar', ['-xOf', world.at(name), 'config.gz']),
    );
    expect(inside).toEqual(outside);
    writeFileSync(world.at('area.img'), areaOf('live.iso'));
    expect(() => execFileSync('blkid', ['-p', world.at('area.img')])).toThrow();
    await rm(world.at('area.img'));
  });

  it('is the same for the same image, and the same image again changes nothing', async () => {
    await world.sealift('customize', 'live.iso', '--site', 'site.iso', '--output', 'two.iso');
    expect(read('two.iso').equals(read('one.iso'))).toBe(true);
    const said = await world.sealift('customize', 'two.iso', '--site', 'site.iso', '--in-place');
    expect(said).toContain('two.iso is unchanged');
  });

  it('is private, and its maker is told that it holds keys', async () => {
    expect(statSync(world.at('one.iso')).mode & 0o777).toBe(0o600);
    await copyFile(world.at('live.iso'), world.at('in-place.iso'));
    const said = await world.sealift(
      'customize',
      'in-place.iso',
      '--site',
      'site.iso',
      '--in-place',
    );
    expect(said).toContain(
      'warning: the ISO holds the private keys and the pull secret of its cluster',
    );
    expect(statSync(world.at('in-place.iso')).mode & 0o777).toBe(0o600);
    const pushed = await world.run('push', 'one.iso', 'oci://registry.invalid/a/b:c');
    expect(pushed.exitCode).toBe(2);
    expect(pushed.stderr).toContain('the private keys of a cluster');
  });

  it('names the cluster, the release and the rendezvous IP, and prints no secret', async () => {
    const said = [
      await world.sealift('customize', 'one.iso', '--show'),
      await world.sealift('inspect', 'one.iso'),
    ];
    for (const text of said) {
      expect(text).toMatch(/cluster +edge\.example\.com/);
      expect(text).toMatch(/rendezvous IP +192\.168\.111\.80/);
      expect(text).toContain('3 masters, 0 arbiters, 2 workers');
      expect(text).toMatch(/release image +\S+@sha256:[0-9a-f]{64}$/m);
      expect(text).not.toMatch(/secret-token|PRIVATE KEY|BEGIN CERT/);
    }
    const { configImage } = JSON.parse(
      await world.sealift('inspect', 'one.iso', '-o', 'json'),
    ) as Inspection;
    expect(configImage).toMatchObject({ isProven: true, isDamaged: false });
  });

  it('is whole and customised, with another medium digest than before', async () => {
    const [before, after] = [await verify('live.iso'), await verify('one.iso')] as {
      mediumDigest: string;
    }[];
    expect(after).toMatchObject({ state: 'whole', customised: true, ok: true });
    expect(after?.mediumDigest).not.toBe(before?.mediumDigest);
  });

  it('is damaged after a flip of a bit in the image, or behind it', async () => {
    const { length } = read('site.iso');
    for (const at of [40_000, length + 10]) {
      const area = Buffer.from(areaOf('one.iso'));
      area[at] = (area[at] ?? 0) ^ 1;
      writeArea('flipped.iso', area);
      expect(await verify('flipped.iso')).toMatchObject({
        state: 'damaged',
        problems: [{ code: 'verify.content', offset: world.area.offset }],
      });
    }
  });

  it('is not proven if another program wrote the image, and does not install with that of another release', async () => {
    writeArea('foreign.iso', read('site.iso'));
    const { exitCode, stdout } = await world.run('verify', 'foreign.iso');
    expect([exitCode, stdout]).toEqual([
      0,
      expect.stringContaining('the configuration image at byte') as string,
    ]);
    const other = formatImageSet(
      `quay.io/openshift-release-dev/ocp-release@sha256:${'b'.repeat(64)}`,
    );
    await world.writeImage('other.iso', { ...world.members, [IMAGE_SET_PATH]: other });
    writeArea('foreign.iso', read('other.iso'));
    expect(await verify('foreign.iso')).toMatchObject({
      ok: false,
      problems: [
        {
          problem: expect.stringContaining(
            'holds a configuration image that the medium does not take: the image was made by the installer of another release',
          ) as string,
        },
      ],
    });
  });

  it('differs from a medium without the image, and from one with the image of another site', async () => {
    const added = await world.run('diff', 'live.iso', 'one.iso');
    expect(added.stdout).toMatch(/^system +configuration image added$/m);
    await world.writeImage('b.iso', {
      ...world.members,
      '/etc/assisted/hostnames/52:54:00:00:00:01': 'other',
    });
    await world.sealift('customize', 'live.iso', '--site', 'b.iso', '--output', 'other-site.iso');
    const { stdout } = await world.run('diff', 'one.iso', 'other-site.iso', '-o', 'json');
    expect(JSON.parse(stdout)).toMatchObject({ same: false, configImage: { state: 'changed' } });
    const same = await world.run('diff', 'one.iso', 'one.iso', '-o', 'json');
    expect(JSON.parse(same.stdout)).toMatchObject({ same: true });
  });

  it('is rehearsed with its image, which is judged as one beside it', async () => {
    const outcomeOf = async (name: string): Promise<unknown> => {
      const { stdout } = await world.run('rehearse', name, '-o', 'json');
      const { steps } = JSON.parse(stdout) as { steps: { name: string; outcome: string }[] };
      return steps.find((step) => step.name.startsWith('the live system takes'))?.outcome;
    };
    expect(await outcomeOf('live.iso')).toBe('unknown');
    expect(await outcomeOf('one.iso')).toBe('will');
    expect(await outcomeOf('foreign.iso')).toBe('will-not');
    expect(await outcomeOf('flipped.iso')).toBe('will-not');
  });

  it('takes other values beside the image, before and after it', async () => {
    const site = ['--site', 'site.iso'];
    const key = ['--ssh-key', TEST_SSH_KEY];
    await world.sealift('customize', 'live.iso', ...site, ...key, '--output', 'both.iso');
    await world.sealift('customize', 'one.iso', ...key, '--output', 'after.iso');
    expect(read('after.iso').equals(read('both.iso'))).toBe(true);
    await world.sealift('customize', 'live.iso', ...key, '--output', 'before.iso');
    await world.sealift('customize', 'before.iso', ...site, '--in-place');
    expect(read('before.iso').equals(read('both.iso'))).toBe(true);
  });

  it('has the image after a delta to a medium that takes it, and is refused one to a medium that does not', async () => {
    const build = ['build', '--base-iso', 'test.iso', '--fresh-layout', '--output'];
    await world.sealift(...build, 'next.iso', '--set', 'stopLocalRegistry=true');
    await world.sealift('delta', 'live.iso', 'next.iso', '--output', 'next.delta');
    const said = await world.sealift('apply', 'one.iso', 'next.delta', '--output', 'applied.iso');
    expect(said).toContain('the configuration image');
    await world.sealift('customize', 'next.iso', '--site', 'site.iso', '--output', 'wanted.iso');
    expect(read('applied.iso').equals(read('wanted.iso'))).toBe(true);
    await world.sealift(...build, 'person.iso', '--set', 'enableInteractiveFlow=true');
    await world.sealift('delta', 'live.iso', 'person.iso', '--output', 'person.delta');
    const refused = await world.run('apply', 'one.iso', 'person.delta', '--output', 'x.iso');
    expect([refused.exitCode, refused.stderr]).toEqual([
      8,
      expect.stringMatching(/has no place for the configuration image.*delta\.values/s) as string,
    ]);
  });

  it('keeps the image when damage beside it is repaired, and loses it when the image is damaged', async () => {
    const hurt = Buffer.from(read('one.iso'));
    const spot = world.area.offset - 2048;
    hurt[spot] = (hurt[spot] ?? 0) ^ 1;
    writeFileSync(world.at('hurt.iso'), hurt);
    const beside = await world.run('repair', 'hurt.iso', '--from', 'live.iso');
    expect(beside.exitCode, beside.stdout + beside.stderr).toBe(0);
    expect(read('hurt.iso').equals(read('one.iso'))).toBe(true);
    const area = Buffer.from(areaOf('one.iso'));
    area[40_000] = (area[40_000] ?? 0) ^ 1;
    writeArea('hurt.iso', area);
    const inside = await world.run('repair', 'hurt.iso', '--from', 'live.iso');
    expect(inside.exitCode, inside.stdout + inside.stderr).toBe(0);
    expect(read('hurt.iso').equals(live)).toBe(true);
  });

  it('is restored to the byte by --reset', async () => {
    await copyFile(world.at('both.iso'), world.at('reset.iso'));
    await world.sealift('customize', 'reset.iso', '--reset', '--in-place');
    expect(read('reset.iso').equals(live)).toBe(true);
  });

  it('keeps its image against another one, unless --force replaces it', async () => {
    await copyFile(world.at('one.iso'), world.at('again.iso'));
    const { exitCode, stderr } = await refuse('again.iso', '--site', 'b.iso', '--in-place');
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('customize.already') as string]);
    await world.sealift('customize', 'again.iso', '--site', 'b.iso', '--in-place', '--force');
    expect(read('again.iso').equals(read('other-site.iso'))).toBe(true);
  });

  it('refuses an image that the medium would not take, and lists every reason', async () => {
    const paths = [IMAGE_SET_PATH, '/opt/agent/tls/kubeadmin-password.hash'];
    const members = Object.fromEntries(
      Object.entries(world.members).filter(([path]) => !paths.includes(path)),
    );
    await world.writeImage('poor.iso', members);
    const { exitCode, stderr } = await refuse('live.iso', '--site', 'poor.iso', '--in-place');
    expect(exitCode).toBe(8);
    for (const path of paths) expect(stderr).toContain(`/config.gz has no ${path}`);
    expect(stderr).toContain('config-image.refused');
  });

  it('refuses an image that is larger than the area, and a file that is not an ISO', async () => {
    const manifest = Array.from({ length: 100_000 }, (_, index) => (index * 7919) % 99991).join();
    const path = '/etc/assisted/extra-manifests/large.yaml';
    await world.writeImage('large.iso', { ...world.members, [path]: manifest.repeat(6) });
    const large = await refuse('live.iso', '--site', 'large.iso', '--in-place');
    expect([large.exitCode, large.stderr]).toEqual([
      5,
      expect.stringContaining('config-image.too-large') as string,
    ]);
    const text = await refuse('live.iso', '--site', 'appliance-config.yaml', '--in-place');
    expect([text.exitCode, text.stderr]).toEqual([
      5,
      expect.stringMatching(/appliance-config\.yaml.*config-image\.unreadable/s) as string,
    ]);
  });

  it('refuses an image for media without the area, and says what to do', async () => {
    const { release } = world;
    const imageSet = world.members[IMAGE_SET_PATH];
    expect(release.pullspec).not.toBe('');
    const older = await makeLiveMedium(world.directory, undefined);
    const set = formatImageSet(
      `quay.io/openshift-release-dev/ocp-release@sha256:${'a'.repeat(64)}`,
    );
    await world.writeImage('older-site.iso', { ...world.members, [IMAGE_SET_PATH]: set });
    expect(imageSet).not.toBe(set);
    const { exitCode, stderr } = await refuse(older, '--site', 'older-site.iso', '--in-place');
    expect([exitCode, stderr]).toEqual([
      2,
      expect.stringMatching(/config-image\.no-area.*attach the image to the hosts/s) as string,
    ]);
  });

  it('refuses an image for an ISO that is not a live ISO', async () => {
    const { exitCode, stderr } = await refuse('b.iso', '--site', 'site.iso', '--in-place');
    expect([exitCode, stderr]).toEqual([
      2,
      expect.stringContaining('config-image.no-area') as string,
    ]);
  });

  it.skipIf(!requireTool('docker-registry'))('is the same after a push and a pull', async () => {
    const registry = await startPlainRegistry(world.at('registry'));
    try {
      const address = `oci://${registry.host}/sites/edge:1`;
      await world.sealift('push', 'one.iso', address, '--allow-secrets');
      await world.sealift('pull', address, '--output', 'pulled.iso', '--no-seed');
      expect(read('pulled.iso').equals(read('one.iso'))).toBe(true);
    } finally {
      await registry.close();
    }
  });

  it('refuses an image for an interactive medium, which has no area', async () => {
    await world.sealift(
      ...['build', '--base-iso', 'test.iso', '--output', 'interactive.iso'],
      ...['--set', 'enableInteractiveFlow=true'],
    );
    const { exitCode, stderr } = await refuse(
      'interactive.iso',
      '--site',
      'site.iso',
      '--in-place',
    );
    expect(exitCode).toBe(8);
    expect(stderr).toContain('the medium is interactive and ignores configuration images');
    expect(await world.sealift('inspect', 'interactive.iso')).not.toContain('configuration image');
  });

  it('takes no image with --reset or --show, and no empty name', async () => {
    for (const args of [['--reset', '--in-place'], ['--show']]) {
      const { exitCode, stderr } = await refuse('live.iso', '--site', 'site.iso', ...args);
      expect([exitCode, stderr]).toEqual([2, expect.stringContaining('--site') as string]);
    }
    expect((await refuse('live.iso', '--site', '', '--in-place')).stderr).toContain(
      '--site is empty',
    );
  });
});
