import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { registerDiff } from '../../src/cli/medium/diff.ts';
import { encodeInitrd } from '../../src/ignition/initrd.ts';
import { compareMedia } from '../../src/media/compare.ts';
import { makeCoreosIso } from '../support/iso.ts';
import { runCommand } from '../support/run-command.ts';
import {
  fakeDigest,
  fakeImage,
  writeSparseMedium,
  type SparseMedium,
} from '../support/sparse-medium.ts';
import { makeTinyIso } from '../support/tiny-iso.ts';
import { requireTool } from '../support/tools.ts';

let directory: string;
let tiny: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sealift-diff-'));
  tiny = join(directory, 'tiny.iso');
  await writeFile(tiny, makeTinyIso());
});
afterAll(() => rm(directory, { recursive: true, force: true }));

const MIB = 1 << 20;
const blob = (name: string, size: number) => ({ digest: fakeDigest(name), size });

const CATALOG = 'registry.example/operators/index';

/** A package with one channel whose head is the last of the versions. */
const pack = (name: string, versions: readonly string[], channel = 'stable') => ({
  name,
  defaultChannel: channel,
  channels: [{ name: channel, head: `${name}.v${versions.at(-1) ?? ''}` }],
  bundles: versions.map((version) => ({ name: `${name}.v${version}`, version })),
});

const MONDAY: SparseMedium = {
  catalogs: [
    {
      name: `${CATALOG}:v4.20`,
      digest: fakeDigest('index 1'),
      packages: [pack('op', ['1.0.0']), pack('old-op', ['3.0.0']), pack('same-op', ['7.0.0'])],
    },
  ],
  release: { version: '4.21.3', reference: 'quay.io/r@sha256:3', architecture: 'amd64' },
  images: [
    fakeImage('etcd'),
    fakeImage('cli'),
    fakeImage('gone'),
    fakeImage('op.v1.0.0', { set: 'operator', source: 'quay.io/test/op' }),
  ],
  blobs: [blob('a', 60 * MIB), blob('b', 30 * MIB), blob('c', 10 * MIB)],
};

const TUESDAY: SparseMedium = {
  catalogs: [
    {
      name: `${CATALOG}:v4.21`,
      digest: fakeDigest('index 2'),
      packages: [
        pack('op', ['1.0.1', '1.1.0'], 'fast'),
        pack('new-op', ['2.0.0']),
        pack('same-op', ['7.0.0']),
      ],
    },
  ],
  release: { version: '4.21.4', reference: 'quay.io/r@sha256:4', architecture: 'amd64' },
  images: [
    fakeImage('etcd', { version: '2' }),
    fakeImage('cli'),
    fakeImage('born'),
    fakeImage('op.v1.1.0', { set: 'operator', source: 'quay.io/test/op' }),
  ],
  blobs: [blob('a', 60 * MIB), blob('b', 30 * MIB), blob('d', 20 * MIB)],
};

async function write(name: string, medium: SparseMedium, base = tiny): Promise<string> {
  const path = join(directory, name);
  await writeSparseMedium(path, base, medium);
  return path;
}

const diff = (...args: readonly string[]) =>
  runCommand(registerDiff, ['diff', ...args], { cwd: directory });

describe('a comparison of two media', () => {
  let monday: string;
  let tuesday: string;
  beforeAll(async () => {
    monday = await write('monday.iso', MONDAY);
    tuesday = await write('tuesday.iso', TUESDAY);
  });

  it('lists images that were added, removed and changed, with the image of a newer bundle as changed', async () => {
    const { images } = await compareMedia(monday, tuesday);
    expect(images?.added.map(({ name }) => name)).toEqual(['born']);
    expect(images?.removed.map(({ name }) => name)).toEqual(['gone']);
    expect(images?.changed.map((pair) => [pair.old.name, pair.new.name])).toEqual([
      ['op.v1.0.0', 'op.v1.1.0'],
      ['etcd', 'etcd'],
    ]);
    expect(images?.changed[1]).toMatchObject({
      old: { digest: fakeDigest('etcd 1') },
      new: { digest: fakeDigest('etcd 2') },
    });
    expect(images?.unchanged).toBe(1);
  });

  it('lists operators by package, with their old and new versions and channels', async () => {
    const { operators } = await compareMedia(monday, tuesday);
    expect(operators).toMatchObject({
      added: [{ package: 'new-op', version: '2.0.0', catalog: `${CATALOG}:v4.21` }],
      removed: [{ package: 'old-op', version: '3.0.0', catalog: `${CATALOG}:v4.20` }],
      changed: [
        {
          old: { package: 'op', version: '1.0.0', channels: ['stable'] },
          new: { package: 'op', version: '1.1.0', versions: ['1.0.1', '1.1.0'] },
        },
      ],
      unchanged: 1,
    });
    const { stdout } = await diff('monday.iso', 'tuesday.iso');
    expect(stdout).toMatch(/^operators +1 added, 1 removed, 1 changed, 1 unchanged$/m);
    expect(stdout).toMatch(
      /^ {2}op +changed +1\.0\.0 +1\.1\.0 +\+1\.0\.1 \+1\.1\.0 -1\.0\.0 +\+fast -stable$/m,
    );
  });

  it('reports that an index of format 1 does not name operators, and compares the rest', async () => {
    const { release, images: carried, blobs } = MONDAY;
    const before = await write('format-1.iso', { format: 1, release, images: carried, blobs });
    const { operators, images, notCompared } = await compareMedia(before, tuesday);
    expect(operators).toBeUndefined();
    expect(images?.unchanged).toBe(1);
    expect(notCompared).toContainEqual({
      what: 'operators',
      medium: 'old',
      reason: 'its index has format 1, which does not name catalogs',
    });
  });

  it.each<[string, unknown]>([
    ['a list', {}],
    ['packages', [{ name: 'a', digest: 'b' }]],
    ['names', [{ name: 'a', digest: 'b', packages: [{ channels: [], bundles: [] }] }]],
    [
      'texts as versions',
      [
        {
          name: 'a',
          digest: 'b',
          packages: [{ name: 'p', channels: [], bundles: [{ name: 'b', version: 1 }] }],
        },
      ],
    ],
  ])('does not use an index whose catalogs lack %s', async (_what, catalogs) => {
    const path = await write('bad.iso', { ...MONDAY, catalogs } as SparseMedium);
    const { notCompared } = await compareMedia(path, tuesday);
    expect(notCompared[0]).toMatchObject({ medium: 'old' });
    expect(notCompared[0]?.reason).toContain('is not in the form that sealift writes');
  });

  it('counts new, shared and removed bytes by digest', async () => {
    const { bytes, old } = await compareMedia(monday, tuesday);
    expect(old.size).toBe((await stat(monday)).size);
    // Beside the blobs: the index, directories and what was rendered, below a MiB.
    expect(Math.floor((bytes?.new ?? 0) / MIB)).toBe(20);
    expect(Math.floor((bytes?.shared ?? 0) / MIB)).toBe(90);
    expect(Math.floor((bytes?.gone ?? 0) / MIB)).toBe(10);
    expect(bytes?.inPlace).toBeLessThanOrEqual(bytes?.shared ?? 0);
  });

  it('finds no differences between a medium and itself, and all bytes in place', async () => {
    const { same, bytes, images } = await compareMedia(monday, monday);
    expect(same).toBe(true);
    expect(bytes).toMatchObject({ new: 0, gone: 0, inPlace: bytes?.shared });
    expect(images).toMatchObject({ added: [], removed: [], changed: [], unchanged: 4 });
    const { stdout, exitCode } = await diff('monday.iso', 'monday.iso', '--exit-code');
    expect(exitCode).toBe(0);
    expect(stdout).toContain('no differences in what was compared: the digests in their indexes\n');
  });

  it('exits with 0 when media differ, and with 8 when --exit-code is given', async () => {
    expect((await diff('monday.iso', 'tuesday.iso')).exitCode).toBe(0);
    const { exitCode, stderr } = await diff('monday.iso', 'tuesday.iso', '--exit-code');
    expect(exitCode).toBe(8);
    expect(stderr).toContain('[diff.differences]');
  });

  it('is printed as a summary followed by tables', async () => {
    const { stdout } = await diff('monday.iso', 'tuesday.iso');
    expect(stdout).toMatch(/^release +4\.21\.3 amd64 -> 4\.21\.4 amd64$/m);
    expect(stdout).toMatch(/^images +1 added, 1 removed, 2 changed, 1 unchanged$/m);
    expect(stdout).toMatch(/^bytes +20\.\d MiB new, 90\.\d MiB shared \(81\.\d %\)/m);
    expect(stdout).toMatch(
      new RegExp(`^ {2}etcd +release +changed +${short('etcd 1')} +${short('etcd 2')}$`, 'm'),
    );
    expect(stdout).toMatch(/^ {2}op\.v1\.0\.0 -> op\.v1\.1\.0 +operator +changed/m);
  });

  it('is JSON with full digests', async () => {
    const { stdout } = await diff('monday.iso', 'tuesday.iso', '-o', 'json');
    expect(JSON.parse(stdout)).toMatchObject({
      same: false,
      images: { added: [{ name: 'born', digest: fakeDigest('born 1') }] },
    });
  });

  it('is Markdown in which names from media are escaped', async () => {
    const evil = 'x` | <img src=//evil.example> @team [a](//b)\u001b[2J\n# y';
    const name = await write('evil.iso', {
      ...TUESDAY,
      release: { ...TUESDAY.release, version: evil },
      images: [fakeImage(evil)],
    });
    const { stdout } = await diff('monday.iso', name, '-o', 'markdown');
    // Whatever is left outside of code spans is written by the program.
    const outside = stdout.replaceAll(/`[^`\n]*`/g, '');
    expect(outside).not.toMatch(/<|@|evil|\[|#+ y/);
    const rows = stdout.split('\n').filter((line) => line.startsWith('|'));
    const images = rows.slice(rows.findIndex((row) => row.startsWith('| image |')));
    expect(images[0]).toBe('| image | set | change | old | new |');
    for (const row of images.slice(0, 6)) expect(row.split('|')).toHaveLength(7);
    expect(stdout).toContain('\\u001b');
    const text = await diff('monday.iso', name);
    expect(text.stdout).not.toContain('\u001b');
    expect(text.stdout).not.toMatch(/^# y/m);
  });

  it('reports the contents that it cannot compare of an ISO that sealift did not make', async () => {
    const { stdout, exitCode } = await diff('tiny.iso', 'tuesday.iso');
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(
      /^note: release, operators, images and bytes are not compared, because of tiny\.iso: there is no \/sealift\/index\.json$/m,
    );
    expect(stdout).toMatch(/^images +unknown$/m);
  });

  it('compares ISOs without an index by the names and sizes of their files, and never claims more', async () => {
    const other = join(directory, 'other.iso');
    const bytes = Buffer.from(await readFile(tiny));
    bytes.writeUInt8(bytes.readUInt8(bytes.length - 1) ^ 1, bytes.length - 1); // has no name and no size
    await writeFile(other, bytes);
    const { stdout, exitCode } = await diff('tiny.iso', 'other.iso', '--exit-code');
    expect(exitCode).toBe(0);
    expect(stdout).toContain('no differences in what was compared: names and sizes of files\n');
    expect(stdout).toContain('images and bytes are not compared');
  });
});

const short = (name: string): string => fakeDigest(name).slice('sha256:'.length).slice(0, 12);

const hasTools = requireTool('genisoimage') && requireTool('isohybrid') && requireTool('mformat');

describe.skipIf(!hasTools)('a comparison of live ISOs', () => {
  const AREA = 262_144;
  const SECRETS = ['$6$salt$hash-of-core', 'cHVsbDpzZWNyZXQ=', '1234'] as const;
  const config = (pin: string, hash: string, enabled: boolean) => ({
    ignition: { version: '3.2.0' },
    passwd: { users: [{ name: 'core', passwordHash: hash }] },
    storage: {
      files: [
        { path: '/etc/pin', contents: { source: `data:,${pin}` } },
        { path: '/etc/same', contents: { source: 'data:,same' } },
      ],
    },
    systemd: {
      units: [
        { name: 'a.service', enabled, contents: '[Unit]\n' },
        { name: 'b.service', dropins: [{ name: '10.conf', contents: pin }] },
      ],
    },
  });

  async function makeLive(name: string, document: unknown, kargs: string): Promise<string> {
    const area = Buffer.alloc(AREA);
    const data = Buffer.from(JSON.stringify(document));
    area.set(encodeInitrd([{ name: 'config.ign', mode: 0o100600, data }]));
    const folder = await mkdtemp(join(directory, `${name}-`));
    return makeCoreosIso(folder, { files: { 'images/ignition.img': area }, kargs });
  }

  let old: string;
  let now: string;
  beforeAll(async () => {
    old = await makeLive('old', config(SECRETS[2], SECRETS[0], false), 'console=tty0 debug=1');
    now = await makeLive('now', config(SECRETS[1], 'other', true), 'console=tty0 debug=2');
  });

  it('names the units, files and users of Ignition that differ, without their contents', async () => {
    const { ignition, same } = await compareMedia(old, now);
    expect(same).toBe(false);
    expect(ignition).toHaveLength(1);
    expect(ignition[0]).toMatchObject({ config: 'embedded', state: 'changed' });
    expect(ignition[0]?.parts.changed.map(({ new: { kind, name } }) => [kind, name])).toEqual([
      ['drop-in', 'b.service/10.conf'],
      ['file', '/etc/pin'],
      ['unit', 'a.service'],
      ['user', 'core'],
    ]);
    for (const format of ['text', 'json', 'markdown']) {
      const { stdout } = await diff(old, now, '-o', format);
      expect(stdout).toContain('/etc/pin');
      for (const secret of SECRETS) {
        expect(stdout).not.toContain(secret);
        expect(stdout).not.toContain(fakeDigest(secret).slice(7, 19));
        expect(stdout).not.toContain(fakeDigest(`data:,${secret}`).slice(7, 19));
      }
    }
  });

  it('lists kernel arguments that were added and removed', async () => {
    const { kernelArguments } = await compareMedia(old, now);
    expect(kernelArguments).toMatchObject({ added: ['debug=2'], removed: ['debug=1'] });
    const { stdout } = await diff(old, now);
    expect(stdout).toMatch(/^ {2}debug=2 +added$/m);
  });

  it('compares the configs that a config merges, and names those that are elsewhere', async () => {
    const text = JSON.stringify(config(SECRETS[2], SECRETS[0], false));
    const merge = [
      { source: `data:;base64,${gzipSync(text).toString('base64')}`, compression: 'gzip' },
      { source: 'https://user:word@example.com/a.ign' },
    ];
    const document = { ignition: { version: '3.3.0', config: { merge } } };
    const wrapped = await makeLive('wrapped', document, 'console=tty0 debug=1');
    const { same, ignition, files, compared, notCompared } = await compareMedia(old, wrapped);
    expect(same).toBe(false);
    expect(ignition[0]?.parts.changed.map(({ new: { name } }) => name)).toEqual([
      'ignition.version',
    ]);
    expect(ignition[0]?.parts.added.map(({ name }) => name)).toEqual(['ignition.config']);
    expect(files).toMatchObject({ added: [], removed: [], changed: [] });
    expect(compared).toEqual(['names and sizes of files', 'kernel arguments', 'the Ignition area']);
    expect(notCompared).toContainEqual({
      what: 'merged configs',
      medium: 'new',
      reason: 'https://example.com/a.ign: its contents are elsewhere',
    });
  });

  it('reports an unreadable config, and compares the rest', async () => {
    const broken = await makeLive('broken', { ignition: { version: '9.9.9' } }, 'debug=3');
    const { ignition, kernelArguments, notCompared } = await compareMedia(old, broken);
    expect(ignition).toEqual([]);
    expect(kernelArguments?.added).toEqual(['debug=3']);
    expect(notCompared).toContainEqual({
      what: 'Ignition config of the embed area',
      medium: 'new',
      reason: expect.stringContaining('9.9.9') as string,
    });
  });

  it.each([
    ['a newer config', 'config.ign', '{"ignition":{"version":"3.5.0"}}', 'section'],
    ['a network profile', 'etc/coreos-firstboot-network/a', '[connection]\n', 'network profile'],
    ['a file of another tool', 'etc/other', 'x', 'initrd file'],
  ])(
    'tells ISOs of another maker without kernel arguments apart by %s',
    async (...[what, name, text, kind]) => {
      const make = async (folder: string, area: Uint8Array): Promise<string> =>
        makeCoreosIso(await mkdtemp(join(directory, folder)), {
          without: ['coreos/kargs.json', 'coreos/features.json'],
          files: { 'images/ignition.img': area },
        });
      const area = Buffer.alloc(AREA);
      const bare = await make('bare-', area);
      area.set(encodeInitrd([{ name, mode: 0o100600, data: Buffer.from(text) }]));
      const filled = await make('filled-', area);
      const { same, ignition } = await compareMedia(bare, filled);
      expect([same, ignition[0]?.state], what).toEqual([false, 'added']);
      expect(ignition[0]?.parts.added).toContainEqual(expect.objectContaining({ kind }));
      expect((await diff(bare, filled, '--exit-code')).exitCode).toBe(8);
      expect((await diff(filled, filled, '--exit-code')).exitCode).toBe(0);
    },
  );

  it('never calls two ISOs the same whose areas differ and cannot be read', async () => {
    const one = await makeLive('one', { ignition: { version: '9.9.9' } }, 'a');
    const two = await makeLive('two', { ignition: { version: '9.9.8' } }, 'a');
    expect((await compareMedia(one, two)).same).toBe(false);
    expect((await compareMedia(one, one)).same).toBe(true);
  });

  it('takes at most two seconds of CPU time and reads at most 20 MB for two media of 40 GB', async () => {
    const blobs = Array.from({ length: 2000 }, (_, at) => blob(`blob ${at}`, 20_000_000 + at));
    const images = Array.from({ length: 600 }, (_, at) => fakeImage(`image-${at}`));
    const before = await write('large-1.iso', { ...MONDAY, images, blobs }, old);
    const after = await write(
      'large-2.iso',
      { ...TUESDAY, images, blobs: [...blobs.slice(100), blob('new', 2_000_000_000)] },
      now,
    );
    expect((await stat(before)).size).toBeGreaterThan(40e9);
    const [readBefore, cpuBefore] = [await countRead(), process.cpuUsage()];
    const { bytes } = await compareMedia(before, after);
    const [read, cpu] = [(await countRead()) - readBefore, process.cpuUsage(cpuBefore)];
    expect(bytes?.shared).toBeGreaterThan(38e9);
    expect(read).toBeGreaterThan(1e5);
    expect(read).toBeLessThan(20e6);
    expect((cpu.user + cpu.system) / 1e6).toBeLessThan(2);
  });
});

/** Bytes that this process has asked the kernel for (proc_pid_io(5)). */
async function countRead(): Promise<number> {
  const text = await readFile('/proc/self/io', 'utf8');
  return Number(/^rchar: (\d+)$/m.exec(text)?.[1]);
}
