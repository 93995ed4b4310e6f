import { execFileSync } from 'node:child_process';
import { copyFile, open, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startSealift } from '../support/child.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { attachLoop, mayAttachLoops, type LoopDevice } from '../support/loop-device.ts';
import { requireTool } from '../support/tools.ts';

const tools = ['losetup', 'blkid', 'xorriso', 'cmp', 'isohybrid', 'genisoimage'];
const hasAll = tools.map((tool) => requireTool(tool)).every(Boolean) && mayAttachLoops();
const KILLER = new URL('../support/kill-at-write.mjs', import.meta.url).href;
const MIB = 1 << 20;
/** Behind the ISO on the device. */
const TAIL = 3 * MIB;
/** The System Area and the volume descriptors of the base. */
const START = 19 * 2048;

describe.skipIf(!hasAll)('a build on a block device', () => {
  let world: LiveWorld;
  let size: number;
  const loops: LoopDevice[] = [];
  const at = (...names: readonly string[]): string => join(world.directory, ...names);

  beforeAll(async () => {
    world = await createLiveWorld();
    await world.writeConfig();
    const { exitCode, stderr } = await world.run('build', '--output', 'whole.iso');
    expect(exitCode, stderr).toBe(0);
    ({ size } = await stat(at('whole.iso')));
  }, 60_000);
  afterEach(() => {
    for (const loop of loops.splice(0)) loop.detach();
  });
  afterAll(() => world.close());

  /** A device with an older ISO on it, which boots, and other bytes behind that. */
  async function makeDevice(name: string): Promise<LoopDevice> {
    await copyFile(at('whole.iso'), at(name));
    await truncate(at(name), size + TAIL);
    const file = await open(at(name), 'r+');
    await file.write(Buffer.alloc(TAIL, 'old'), 0, TAIL, size);
    await file.close();
    const loop = attachLoop(at(name));
    loops.push(loop);
    return loop;
  }

  const toDevice = (device: string): string[] => ['--output', device, '--force'];

  const buildKilled = async (device: string, write: number) =>
    startSealift(['build', ...toDevice(device), '--log-format', 'json'], {
      cwd: world.directory,
      env: { NODE_OPTIONS: `--import=${KILLER}`, KILL_AT: String(write) },
    }).ended;

  /** What xorriso makes of it. */
  const isIso = (device: string): boolean =>
    execFileSync('sh', ['-c', `xorriso -indev stdio:${device} -toc 2>&1 || true`])
      .toString()
      .includes('ISO session  :');

  const readStart = async (device: string): Promise<Buffer> => {
    const bytes = Buffer.alloc(START);
    const file = await open(device, 'r');
    await file.read(bytes, 0, START, 0);
    await file.close();
    return bytes;
  };

  it('has the bytes and the label of an upgrade ISO, whose other files are in the working directory', async () => {
    const config = await readFile(at('appliance-config.yaml'), 'utf8');
    await writeFile(at('upgrade.yaml'), config.replace('enableInteractiveFlow: true\n', ''));
    const build = (...args: readonly string[]) =>
      world.run('build', 'upgrade-iso', 'upgrade.yaml', ...args);
    const inFile = await build('--output', 'files/u.iso');
    expect(inFile.exitCode, inFile.stderr).toBe(0);
    const { path } = await makeDevice('upgrade.img');
    expect((await build('--output', path)).stderr).toContain('device.force');
    const { exitCode, stderr, stdout } = await build(...toDevice(path), '--verify');
    expect(exitCode, stderr).toBe(0);
    expect(stdout).toContain('every byte was read back from it');
    const { size } = await stat(at('files/u.iso'));
    execFileSync('cmp', ['-n', String(size), path, at('files/u.iso')]);
    const name = 'upgrade-4.21.3.yaml';
    execFileSync('cmp', [at(name), at('files', name)]);
    const label = execFileSync('blkid', ['-p', '-o', 'value', '-s', 'LABEL', path]);
    expect(label.toString()).toBe('upgrade_4.21.3\n');
  });

  it('does not boot after a kill, and has the bytes of the ISO when the build runs again', async () => {
    const { path } = await makeDevice('killed.img');
    expect(isIso(path)).toBe(true);
    // The first write is of zeros where the boot structures go.
    for (const write of [2, 7]) {
      const { code, stderr } = await buildKilled(path, write);
      expect([code, isIso(path)], stderr).toEqual([null, false]);
      expect((await readStart(path)).equals(Buffer.alloc(START))).toBe(true);
    }
    const before = world.registry.requests.length;
    const { exitCode, stderr, stdout } = await world.run('build', ...toDevice(path), '-o', 'json');
    expect(exitCode, stderr).toBe(0);
    const blobs = world.registry.requests.slice(before).filter((line) => line.includes('/blobs/'));
    expect(blobs).toEqual([...new Set(blobs)]);
    execFileSync('cmp', ['-n', String(size), path, at('whole.iso')]);
    const tail = (await readFile(at('killed.img'))).subarray(size);
    expect(tail.equals(Buffer.alloc(TAIL, 'old'))).toBe(true);
    expect(isIso(path)).toBe(true);
    const report = JSON.parse(stdout) as { output: string; device: { report: string } };
    expect(report.output).toBe(path);
    expect(JSON.parse(await readFile(report.device.report, 'utf8'))).toMatchObject({
      output: path,
    });
    expect((await world.run('verify', path)).exitCode).toBe(0);
  });

  it('overwrites the device only with --force, and names it by path and serial', async () => {
    const { path } = await makeDevice('forced.img');
    const { exitCode, stderr } = await world.run('build', '--output', path);
    expect(exitCode).toBe(2);
    expect(stderr).toContain('device.force');
    expect(stderr).toContain(`${path} (${at('forced.img')}, `);
    expect(isIso(path)).toBe(true);
  });

  it('is refused before a blob is fetched if the device is too small', async () => {
    await writeFile(at('small.img'), '');
    await truncate(at('small.img'), MIB);
    const loop = attachLoop(at('small.img'));
    loops.push(loop);
    const before = world.registry.requests.length;
    const { exitCode, stderr } = await world.run('build', ...toDevice(loop.path));
    expect([exitCode, stderr]).toEqual([7, expect.stringContaining('device.too-small')]);
    const asked = world.registry.requests.slice(before);
    expect(asked.filter((request) => request.includes('/blobs/')).length).toBeLessThan(5);
  });
});
