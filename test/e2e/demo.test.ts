import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeBaseIso } from '../../demo/base-iso.ts';
import { runProcess } from '../../src/base/process.ts';
import { requireTool } from '../support/tools.ts';

const ROOT = join(import.meta.dirname, '../..');

let work = '';
beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), 'sealift-demo-test-'));
});
afterAll(() => rm(work, { recursive: true }));

type Outcome = {
  readonly exitCode: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
};

/** `npm run demo`, without its build. */
async function runDemo(args: readonly string[], env: NodeJS.ProcessEnv): Promise<Outcome> {
  const { exitCode, stdout, stderr } = await execa({
    cwd: ROOT,
    env: { CI: 'true', ...env },
    reject: false,
    stdin: 'ignore',
  })(process.execPath, ['--import', 'tsx', 'demo/main.ts', ...args]);
  return { exitCode, stdout, stderr };
}

/** What xorriso prints of an ISO's boot structures, each line with single spaces. */
async function report(iso: string): Promise<readonly string[]> {
  const ask = ['-report_el_torito', 'plain', '-report_system_area', 'plain'];
  const { stdout } = await runProcess('xorriso', ['-indev', iso, ...ask]);
  return stdout.split('\n').map((line) => line.replaceAll(/ +/g, ' ').trim());
}

/** What xorriso says of every medium that CoreOS makes. */
const STRUCTURES = [
  expect.stringMatching(/^El Torito cat path : \/isolinux\/boot\.cat$/),
  expect.stringMatching(/^El Torito boot img : 1 BIOS y none 0x0000 0x00 4 \d+$/),
  expect.stringMatching(/^El Torito boot img : 2 UEFI y none 0x0000 0x00 2880 \d+$/),
  expect.stringMatching(/^El Torito img path : 1 \/isolinux\/isolinux\.bin$/),
  expect.stringMatching(/^El Torito img opts : 1 boot-info-table$/),
  expect.stringMatching(/^El Torito img path : 2 \/images\/efiboot\.img$/),
  expect.stringMatching(/^System area summary: MBR cyl-align-on GPT$/),
  expect.stringMatching(/^MBR partition : 1 0x80 0x00 0 \d+$/),
  expect.stringMatching(/^MBR partition path : 2 \/images\/efiboot\.img$/),
  expect.stringMatching(/^GPT partname local : 1 ISOHybrid ISO$/),
  expect.stringMatching(/^GPT partition path : 2 \/images\/efiboot\.img$/),
];

type Table = { readonly partitions: readonly { readonly type: string; readonly size: number }[] };

/** The image as a disk: its MBR as fdisk's library reads it. */
async function readDisk(iso: string): Promise<Table> {
  const { stdout } = await runProcess('/usr/sbin/sfdisk', ['--json', iso]);
  return (JSON.parse(stdout) as { readonly partitiontable: Table }).partitiontable;
}

const hasReaders = ['xorriso', 'sfdisk', 'mdir', 'isoinfo'].map(requireTool).every(Boolean);

describe.skipIf(!hasReaders)('the base ISO of the demo', () => {
  it('has the boot structures of a CoreOS live ISO for foreign readers', async () => {
    const iso = join(work, 'base.iso');
    await makeBaseIso(iso, 4096);
    const lines = await report(iso);
    for (const line of STRUCTURES) expect(lines).toContainEqual(line);
    expect((await readDisk(iso)).partitions.map(({ type }) => type)).toEqual(['0', 'ef']);
    const sector = lines.flatMap((line) => /2 UEFI .* (\d+)$/.exec(line)?.[1] ?? [])[0];
    const { stdout } = await runProcess('mdir', ['-i', `${iso}@@${Number(sector) * 2048}`, '::']);
    expect(stdout).toContain('Volume in drive : is ESP');
    expect(stdout).toContain('README   TXT');
  });

  it('names the files of CoreOS as coreos-installer looks for them, without Rock Ridge', async () => {
    const iso = join(work, 'named.iso');
    await makeBaseIso(iso, 4096);
    const { stdout } = await runProcess('isoinfo', ['-f', '-i', iso]);
    const names = stdout.split('\n').filter((name) => name.startsWith('/COREOS/'));
    expect(names.sort()).toEqual([
      '/COREOS/FEATURES.JSO;1',
      '/COREOS/IGNINFO.JSO;1',
      '/COREOS/KARGS.JSO;1',
    ]);
  });
});

describe('the demo', () => {
  let outcome: Outcome;
  beforeAll(async () => {
    outcome = await runDemo([], { TMPDIR: work });
  }, 600_000);

  it('builds the configuration that init writes, and reports that the result has no kernel', () => {
    expect(outcome.exitCode, outcome.stderr).toBe(0);
    const text = outcome.stdout;
    expect(text).toContain('\n$ sealift init\nwrote appliance-config.yaml');
    expect(text).toMatch(/^live\.iso is complete: .*, OpenShift 4\.21\.0 x86_64$/m);
    expect(text).toMatch(/^2 of 2 configuration ISOs are in isos/m);
    expect(text).toContain('and no kernel, so it does not boot');
  });

  it('prints commands at its end that work unchanged', async () => {
    const [, end = ''] = outcome.stdout.split('What to look at:\n');
    const commands = end
      .split('\n')
      .map((line) => line.trim().split(/ {2,}/)[0] ?? '')
      .filter((line) => !line.startsWith('sealift registry serve')); // until it is stopped
    expect(commands.length).toBeGreaterThan(4);
    const script = commands.map((command) => command.replace(/^less /, 'cat ')).join('\n');
    const { stdout } = await runProcess('sh', ['-euc', script]);
    expect(stdout).toContain('/registry/docker');
    expect(stdout).toContain('"ignition"');
    expect(stdout).toContain('"site-0001"');
  });

  it.skipIf(!hasReaders)('leaves a live ISO that a disk and a CD-ROM drive can start', async () => {
    const iso = join(/^ {2}cd (.*)$/m.exec(outcome.stdout)?.[1] ?? '', 'live.iso');
    const lines = await report(iso);
    for (const line of STRUCTURES) expect(lines).toContainEqual(line);
    const [whole] = (await readDisk(iso)).partitions;
    expect(whole?.size).toBeGreaterThan(100_000);
  });

  it('names the missing program if it should boot the ISO without QEMU', async () => {
    const { exitCode, stderr } = await runDemo(['--boot'], { PATH: work, TMPDIR: work });
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/cannot boot here\. Missing: qemu-system-x86_64, /);
  });
});
