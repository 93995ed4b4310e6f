import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runProcess } from '../../src/base/process.ts';
import { makeCoreosIso } from '../support/iso.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { requireTool } from '../support/tools.ts';

type Listed = { readonly isoSize: number };
type Kargs = { readonly size: number; readonly files: readonly { path: string; offset: number }[] };

const hasTools = ['genisoimage', 'mformat', 'xorriso', 'isoinfo', 'bsdtar'].map(requireTool);

describe.skipIf(!hasTools.every(Boolean))('the medium of a ppc64le payload', () => {
  let world: LiveWorld;
  let planned: number;

  beforeAll(async () => {
    world = await createLiveWorld({ arch: 'ppc64le' });
    await world.writeConfig('  kernelArguments: [console=hvc0]');
    const plan = await world.run('plan', '-o', 'json');
    expect(plan.exitCode, plan.stderr).toBe(0);
    planned = (JSON.parse(plan.stdout) as Listed).isoSize;
    const built = await world.run('build', '--output', 'power.iso');
    expect(built.exitCode, built.stderr).toBe(0);
  }, 120_000);
  afterAll(() => world.close());

  const run = async (...command: readonly [string, ...string[]]): Promise<string> => {
    const [program, ...args] = command;
    return (await runProcess(program, args, { cwd: world.directory })).stdout;
  };
  const read = (path: string): Promise<string> => run('bsdtar', '-xOf', 'power.iso', path);

  it('is planned to the byte, verified whole, and has that architecture', async () => {
    const inspected = await world.run('inspect', 'power.iso', '-o', 'json');
    expect(JSON.parse(inspected.stdout)).toMatchObject({
      size: planned,
      media: { release: { architecture: 'ppc64le' } },
    });
    const verified = await world.run('verify', 'power.iso');
    expect(verified.exitCode, verified.stderr + verified.stdout).toBe(0);
  });

  it('has what its firmware looks for, and no El Torito', async () => {
    const names = (await run('isoinfo', '-R', '-f', '-i', 'power.iso')).split('\n');
    for (const path of ['/ppc/bootinfo.txt', '/boot/grub/grub.cfg', '/boot/grub/powerpc.elf']) {
      expect(names).toContain(path);
    }
    expect(names.filter((name) => /^\/(?:EFI|isolinux)/.test(name))).toEqual([]);
    expect(await run('isoinfo', '-d', '-i', 'power.iso')).toMatch(/^System id: PPC$/m);
    expect(await read('ppc/bootinfo.txt')).toContain('boot &device;:\\boot\\grub\\powerpc.elf');
  });

  it('is one partition to its end, in the MBR and in the Apple partition map', async () => {
    const report = await run(
      ...(['xorriso', '-indev', 'power.iso', '-report_system_area', 'plain'] as const),
      ...(['-report_el_torito', 'plain'] as const),
    );
    expect(report).not.toContain('El Torito cat');
    const [, start, blocks] = /^MBR partition .* 0xcd +(\d+) +(\d+)$/m.exec(report) ?? [];
    expect((Number(start) + Number(blocks)) * 512).toBe(planned);
    const entries = [...report.matchAll(/^APM start and size : +\d+ +(\d+) +(\d+)$/gm)];
    const ends = entries.map(([, first, count]) => (Number(first) + Number(count)) * 2048);
    expect(ends.at(-1)).toBe(planned);
    expect(report).toContain('Apple_HFS');
  });

  it('starts every entry of its only menu with our initrd and arguments', async () => {
    const menu = await read('boot/grub/grub.cfg');
    expect(menu).toMatch(/^\tinitrd \S+ \S+ \/images\/bootstrap-appliance\.img$/m);
    const { size, files } = JSON.parse(await read('coreos/kargs.json')) as Kargs;
    expect(files.map(({ path }) => path)).toEqual(['boot/grub/grub.cfg']);
    const area = menu.slice(files[0]?.offset).slice(0, size);
    expect(area).toMatch(/^coreos\.liveiso=\S+ .*console=hvc0\n#+$/);
    expect((await read('images/ignition.img')).replace(/\0+$/, '')).not.toBe('');
  });

  it('is not built on the live ISO of another architecture', async () => {
    const base = await makeCoreosIso(world.directory, {
      files: { 'images/pxeboot/vmlinuz': Buffer.from('HdrS'.padStart(0x206, '\0').padEnd(4096)) },
    });
    const { exitCode, stderr } = await world.run('plan', '--base-iso', base);
    expect(exitCode).toBe(3);
    expect(stderr).toContain('base-iso.architecture');
  });
});
