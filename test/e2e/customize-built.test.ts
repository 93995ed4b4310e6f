import { createHash } from 'node:crypto';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { copyFile, open } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sumSizes } from '../../src/base/lists.ts';
import { findEmbedArea, openIso } from '../../src/iso/index.ts';
import {
  decodeEmbedded,
  type Embedded,
  encodeEmbedded,
  planEmbedPart,
  readLiveAreas,
} from '../../src/media/areas.ts';
import { BUILT_PATH, readIndex } from '../../src/media/media-index.ts';
import { useMedium } from '../../src/media/open.ts';
import { verifyIso } from '../../src/media/verify.ts';
import { TEST_SSH_KEY, writeInstallationConfig } from '../support/installation-iso.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { requireTool } from '../support/tools.ts';

const hasTools = ['genisoimage', 'isohybrid', 'mformat'].map(requireTool).every(Boolean);
const QUIET = { signal: new AbortController().signal, onProgress: () => undefined };
const OTHER_KEY = TEST_SSH_KEY.replace(/ [^ ]*$/, ' other@host');

describe.skipIf(!hasTools)('a medium that was built with values', () => {
  let world: LiveWorld;
  const at = (name: string): string => join(world.directory, name);
  const sumOf = (name: string): string =>
    createHash('sha256')
      .update(readFileSync(at(name)))
      .digest('hex');
  async function run(...args: string[]): Promise<string> {
    const { exitCode, stdout, stderr } = await world.run(...args);
    expect(exitCode, stdout + stderr).toBe(0);
    return stdout + stderr;
  }
  const inPlace = (...args: string[]): Promise<string> =>
    run('customize', args[0] ?? '', ...args.slice(1), '--in-place');

  beforeAll(async () => {
    world = await createLiveWorld();
    await world.writeConfig(`sshKey: ${TEST_SSH_KEY}`);
    const kargs = ['--set', 'build.kernelArguments=["quiet"]'];
    await run('build', '--base-iso', 'test.iso', '--output', 'live.iso', ...kargs);
    await writeInstallationConfig(world.directory, { sshKey: TEST_SSH_KEY });
    const config = 'image-based-installation-config.yaml';
    await run('build', 'installation-iso', config, '--base-iso', 'test.iso', '--output', 'ibi.iso');
  });
  afterAll(() => world.close());

  it('is not customised, and is whole', async () => {
    expect(await run('customize', 'live.iso', '--show')).toContain('live.iso is not customised');
    expect(await run('verify', 'live.iso')).toMatch(/^live\.iso is whole/m);
  });

  it('keeps the values of the build beside those of a site, and --reset gives back every byte', async () => {
    const before = sumOf('live.iso');
    await inPlace('live.iso', '--ntp', 'ntp.example', '--kargs-append', 'console=ttyS0');
    const shown = await run('customize', 'live.iso', '--show');
    expect(shown).toContain(TEST_SSH_KEY);
    expect(shown).toMatch(/kernel args.* quiet console=ttyS0/);
    expect(shown).toContain('live.iso is customised');
    await inPlace('live.iso', '--reset');
    expect(sumOf('live.iso')).toBe(before);
  });

  it('loses all values, those of the build too, with --reset=bare', async () => {
    await run('customize', 'live.iso', '--reset=bare', '--output', 'bare.iso');
    const shown = await run('customize', 'bare.iso', '--show');
    expect(shown).toContain('bare.iso is bare: it has no values, not even those of its build');
    expect(shown).not.toContain('ssh key');
    expect(readFileSync(at('bare.iso')).includes('sealift built 1')).toBe(false);
    const verified = await run('verify', 'bare.iso');
    expect(verified).toMatch(/^bare\.iso is whole/m);
    expect(verified).toContain('bare.iso is bare: it has no values, not even those of its build');
    expect(verified).not.toContain('customised');
  });

  it('is customised, and not bare, if it lost its arguments and kept the key of its build', async () => {
    await run('customize', 'live.iso', '--kargs-delete', 'quiet', '--output', 'part.iso');
    expect(await run('verify', 'part.iso')).toMatch(/^part\.iso is customised/m);
    expect(await run('customize', 'part.iso', '--show')).toContain('part.iso is customised');
  });

  it('says that it cannot be reset once the copy of its build is dropped', async () => {
    await run('customize', 'live.iso', '--ntp', 'n.example', '--drop-built', '--output', 'd.iso');
    expect(readFileSync(at('d.iso')).includes('sealift built 1')).toBe(false);
    const { exitCode, stderr } = await world.run('customize', 'd.iso', '--reset', '--in-place');
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('[customize.no-built]')]);
    await inPlace('d.iso', '--reset=bare');
    await run('verify', 'd.iso');
  });

  it('says that the copy holds a secret, and is private until the copy is dropped', async () => {
    writeFileSync(at('secret.json'), '{"auths":{"quay.io":{"auth":"dXNlcjpob3N0LXdvcmQ="}}}');
    const secret = ['--set', 'build.embed.pullSecret=file:secret.json'];
    await run('build', '--base-iso', 'test.iso', '--output', 'secret.iso', ...secret);
    const note = 'note: the ISO keeps a copy of what its build left, which holds a secret';
    const kargs = ['--kargs-append', 'quiet', '--force'];
    expect(await run('customize', 'secret.iso', ...kargs, '--output', 'kept.iso')).toContain(note);
    expect(await run('customize', 'kept.iso', '--show')).toContain('copy of build  holds a secret');
    expect(statSync(at('kept.iso')).mode & 0o777).toBe(0o600);
    await inPlace('kept.iso', '--drop-built');
    expect(await run('customize', 'kept.iso', '--show')).not.toContain('copy of build');
    expect(await run('customize', 'live.iso', ...kargs, '--output', 'key.iso')).not.toContain(note);
  });

  it('has no copy of its build to drop unless it carries one', async () => {
    await run('customize', 'live.iso', '--drop-built', '--output', 'e.iso');
    expect(await run('verify', 'e.iso')).toMatch(/^e\.iso has no copy of its build: /m);
    await world.writeConfig();
    await run('build', '--base-iso', 'test.iso', '--output', 'plain.iso');
    for (const name of ['plain.iso', 'ibi.iso']) {
      const before = sumOf(name);
      expect(await inPlace(name, '--drop-built')).toContain(`${name} is unchanged`);
      expect(sumOf(name)).toBe(before);
      await inPlace(name, '--reset');
      expect(sumOf(name)).toBe(before);
    }
  });

  it('was built without values if it carries no copy of its build, as media of earlier versions', async () => {
    const index = await useMedium(at('plain.iso'), readIndex);
    expect(index?.mutable?.map(({ kind }) => kind)).not.toContain('built');
    await inPlace('plain.iso', '--ntp', 'ntp.example');
    expect(await run('verify', 'plain.iso')).toContain('plain.iso is customised');
    await inPlace('plain.iso', '--reset');
    const [area] = (await verifyIso(at('plain.iso'), QUIET)).areas ?? [];
    expect(area?.state).toBe('as built');
  });

  it('is larger by the copy of its build, and by at most 4 KiB more', async () => {
    const measure = (name: string): Promise<readonly [number, number, number]> =>
      useMedium(at(name), async (iso) => {
        const { extents = [] } = (await readIndex(iso)) ?? {};
        const copy = extents.find(({ paths }) => paths.includes(BUILT_PATH))?.size ?? 0;
        const files = extents.filter(({ paths }) => paths.length > 0);
        return [iso.fileSize, sumSizes(files), copy];
      });
    const [size, bytes] = await measure('plain.iso');
    const [builtSize, builtBytes, copy] = await measure('live.iso');
    expect(copy).toBeGreaterThan(0);
    expect(builtBytes - copy - bytes).toBeLessThanOrEqual(4096);
    expect(builtSize).toBe(size); // the copy fits into the room that is there
    expect(readFileSync(at('ibi.iso')).length).toBe(readFileSync(at('test.iso')).length);
  });

  it('that installs a seed image is not reset without a proof of what it was', async () => {
    const image = readFileSync(at('ibi.iso'));
    image.fill(' ', 16 * 2048 + 883, 16 * 2048 + 1395); // as an earlier version left it
    writeFileSync(at('early.iso'), image);
    for (const reset of ['--reset', '--reset=bare']) {
      const { exitCode, stderr } = await world.run('customize', 'early.iso', reset, '--in-place');
      expect([exitCode, stderr]).toEqual([2, expect.stringContaining('[customize.no-built]')]);
    }
    expect(readFileSync(at('early.iso')).equals(image)).toBe(true);
    expect((await world.run('verify', 'early.iso')).exitCode).toBe(10);
  });

  it.each([
    [
      'garbage behind its archive',
      'damaged',
      (area: Buffer) => {
        area.set([1], area.length - 1);
      },
    ],
    [
      'a flag that gzip does not know',
      'damaged',
      (area: Buffer) => {
        area.set([0x80], 3);
      },
    ],
    [
      'a time in the header of gzip',
      'not provable',
      (area: Buffer) => {
        area.set([1], 4);
      },
    ],
    [
      'another system in the header of gzip',
      'not provable',
      (area: Buffer) => {
        area.set([3], 9);
      },
    ],
  ])('with %s in its Ignition area is %s', async (_what, state, change) => {
    for (const name of ['live.iso', 'ibi.iso']) {
      const image = readFileSync(at(name));
      const { offset, size } = await useMedium(at(name), findEmbedArea);
      change(image.subarray(offset, offset + size));
      writeFileSync(at('odd.iso'), image);
      const verified = await verifyIso(at('odd.iso'), QUIET);
      expect([name, verified.state]).toEqual([name, state]);
    }
  });

  it('that installs a seed image is customised without --force, and --reset gives back every byte', async () => {
    const before = sumOf('ibi.iso');
    expect(await run('customize', 'ibi.iso', '--show')).toContain('ibi.iso is not customised');
    await inPlace('ibi.iso', '--ssh-key', OTHER_KEY);
    expect(sumOf('ibi.iso')).not.toBe(before);
    expect(await run('verify', 'ibi.iso')).toContain('ibi.iso is customised');
    await inPlace('ibi.iso', '--reset');
    expect(sumOf('ibi.iso')).toBe(before);
  });

  it('that installs a seed image can run from memory, to overwrite the disk that it was copied to', async () => {
    const before = sumOf('ibi.iso');
    await inPlace('ibi.iso', '--kargs-append', 'coreos.liveiso.fromram');
    const { coreos } = JSON.parse(await run('inspect', 'ibi.iso', '-o', 'json')) as {
      readonly coreos: { readonly kargs: string };
    };
    expect(coreos.kargs.split(' ')).toContain('coreos.liveiso.fromram');
    await inPlace('ibi.iso', '--reset');
    expect(sumOf('ibi.iso')).toBe(before);
  });

  /** Writes other contents into the Ignition area, as another program does: without a copy of what was there. */
  async function embed(name: string, change: (embedded: Embedded) => Embedded): Promise<void> {
    const iso = await openIso(at(name));
    const { embed: area } = await readLiveAreas(iso);
    await iso.close();
    const archive = encodeEmbedded(change(await decodeEmbedded(area.bytes)));
    const file = await open(at(name), 'r+');
    const { bytes, offset } = planEmbedPart(area, archive);
    await file.write(bytes, 0, bytes.length, offset);
    await file.close();
  }

  const KEYFILES = [{ name: 'eth0.nmconnection', content: '[connection]\nid=eth0\n' }];

  it('that installs a seed image is reset after another program added networks', async () => {
    await copyFile(at('ibi.iso'), at('net.iso'));
    await embed('net.iso', ({ config = '' }) => ({ config, keyfiles: KEYFILES }));
    expect(await run('verify', 'net.iso')).toContain('net.iso is customised');
    await inPlace('net.iso', '--kargs-append', 'quiet');
    await inPlace('net.iso', '--ssh-key', OTHER_KEY, '--force');
    await inPlace('net.iso', '--reset');
    expect(sumOf('net.iso')).toBe(sumOf('ibi.iso'));
  });

  it('whose config another program removed does not install, though it has networks', async () => {
    await copyFile(at('live.iso'), at('net.iso'));
    await embed('net.iso', () => ({ keyfiles: KEYFILES }));
    const { exitCode, stdout } = await world.run('verify', 'net.iso');
    expect([exitCode, stdout]).toEqual([8, expect.stringContaining('has no Ignition config')]);
    await inPlace('net.iso', '--reset');
    expect(sumOf('net.iso')).toBe(sumOf('live.iso'));
  });

  it('that installs a seed image cannot lose its installation', async () => {
    const before = sumOf('ibi.iso');
    await inPlace('ibi.iso', '--reset=bare');
    expect(sumOf('ibi.iso')).toBe(before);
    writeFileSync(at('p.json'), '{"auths":{"quay.io":{"auth":"YTpi"}}}');
    writeFileSync(at('empty.ign'), '{"ignition":{"version":"3.2.0"}}');
    for (const [code, ...given] of [
      ['own-secret', '--pull-secret', 'file:p.json'],
      ['no-effect', '--rendezvous-ip', '192.0.2.1'],
      ['own-installer', '--dest-device', '/dev/vda'],
      ['own-installer', '--dest-ignition', 'empty.ign'],
      ['own-installer', '--dest-karg-append', 'a'],
      ['own-installer', '--pre-install', 'p.json'],
    ] as const) {
      const { exitCode, stderr } = await world.run('customize', 'ibi.iso', ...given, '--in-place');
      expect(exitCode).not.toBe(0);
      expect(stderr).toContain(`[customize.${code}]`);
    }
    expect(sumOf('ibi.iso')).toBe(before);
  });

  it('on a base with edited kernel arguments is reset to these, with a larger area or not', async () => {
    await run('customize', 'test.iso', '--kargs-append', 'edited=1', '--output', 'edited.iso');
    const noise = createHash('shake256', { outputLength: 300_000 })
      .update('noise')
      .digest('base64');
    const files = [{ path: '/etc/noise', contents: { source: `data:;base64,${noise}` } }];
    const large = JSON.stringify({ ignition: { version: '3.2.0' }, storage: { files } });
    for (const override of [undefined, large]) {
      await writeInstallationConfig(world.directory, { ignitionConfigOverride: override });
      const config = 'image-based-installation-config.yaml';
      const output = ['--output', 'kargs.iso', '--force'];
      await run('build', 'installation-iso', config, '--base-iso', 'edited.iso', ...output);
      const before = sumOf('kargs.iso');
      expect(await run('verify', 'kargs.iso')).toMatch(/^kargs\.iso is whole/m);
      for (const steps of [
        [['--kargs-append', 'x=1']],
        [
          ['--ntp', 'n.example'],
          ['--kargs-append', 'x=1'],
        ],
        [['--ntp', 'n.example', '--kargs-append', 'x=1']],
      ]) {
        for (const step of steps) await inPlace('kargs.iso', ...step);
        expect(await run('verify', 'kargs.iso')).toContain('kargs.iso is customised');
        await inPlace('kargs.iso', '--reset');
        expect(sumOf('kargs.iso')).toBe(before);
      }
      await inPlace('kargs.iso', '--reset=bare');
      expect(sumOf('kargs.iso')).toBe(before);
    }
  });
});
