import { execFileSync } from 'node:child_process';
import {
  copyFile,
  mkdir,
  readdir,
  readFile,
  rm,
  stat,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { digestFile } from '../../src/base/disk/files.ts';
import { InterruptedError } from '../../src/base/errors.ts';
import { runProgram } from '../../src/cli/program.ts';
import { startSealift } from '../support/child.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { buildTwoNights, expectDone } from '../support/two-nights.ts';
import { mayMount } from '../support/may-mount.ts';

let world: LiveWorld;

const at = (name: string): string => join(world.directory, name);

/** Monday's ISO, tuesday's elsewhere with other contents, and deltas there and back. */
beforeAll(async () => {
  world = await createLiveWorld();
  await buildTwoNights(world, { replaces: false });
  await done('delta', 'monday.iso', 'tuesday.iso', '--output', 'night.delta');
  await done('delta', 'tuesday.iso', 'monday.iso', '--output', 'back.delta');
});
afterAll(() => world.close());
beforeEach(async () => {
  await copyFile(at('monday.iso'), at('x.iso'));
});

const IN_PLACE = ['x.iso', 'night.delta', '--in-place'];

const done = async (...args: readonly string[]): Promise<string> =>
  (await expectDone(world, ...args)).stdout;

async function expectRefused(code: string, ...args: readonly string[]): Promise<void> {
  const before = await digestFile(at(args[0] ?? ''));
  const { exitCode, stderr } = await world.run('apply', ...args);
  expect([exitCode, stderr]).toEqual([5, expect.stringContaining(`[${code}]`)]);
  expect(await digestFile(at(args[0] ?? ''))).toBe(before);
}

/** As sha256sum(1) and cmp(1) say. */
function expectTuesday(): void {
  const cwd = world.directory;
  execFileSync('cmp', ['x.iso', 'tuesday.iso'], { cwd });
  execFileSync('sha256sum', ['--check', '--status', 'x.iso.sha256'], { cwd });
}

/** The exit code, null where it was killed in the middle of its nth write to a place, or to this place. */
async function runKilled(count: number, place?: number): Promise<number | null> {
  const { code, stderr } = await startSealift(['apply', ...IN_PLACE], {
    cwd: world.directory,
    env: {
      NODE_OPTIONS: `--import=${KILLER}`,
      KILL_AT: String(count),
      ...(place !== undefined && { KILL_PLACE: String(place) }),
    },
  }).ended;
  expect(stderr).not.toContain('error');
  return code;
}

/** System Area and volume descriptors: what boots. */
const BOOT_SIZE = 18 * 2048;

const read = async (name: string, from: number): Promise<Buffer> =>
  (await readFile(at(name))).subarray(from);

/** As a disk it does not boot; as a CD (which begins behind the System Area) only where all is there to be read. */
async function expectHalf(): Promise<void> {
  const start = (await readFile(at('x.iso'))).subarray(0, BOOT_SIZE);
  expect(start.toString('latin1')).toMatch(/^sealift: not whole yet, apply the delta sha256:/);
  expect(start.readUInt16BE(510)).toBe(0);
  if (!start.includes('CD001')) return;
  const now = await read('x.iso', BOOT_SIZE);
  const isAs = (whole: Buffer): boolean => now.subarray(0, whole.length).equals(whole);
  const wholes = [await read('monday.iso', BOOT_SIZE), await read('tuesday.iso', BOOT_SIZE)];
  expect(wholes.map(isAs)).toContain(true);
}

const KILLER = new URL('../support/kill-at-write.mjs', import.meta.url).href;

describe('a delta applied in place', () => {
  test('turns the old ISO into the new one, byte for byte, and back again', async () => {
    await done('apply', ...IN_PLACE);
    expectTuesday();
    const again = JSON.parse(await done('apply', ...IN_PLACE, '-o', 'json')) as { written: number };
    expect(again.written).toBe(0); // the new ISO is there already
    expectTuesday();
    await done('apply', 'x.iso', 'back.delta', '--in-place');
    execFileSync('cmp', ['x.iso', 'monday.iso'], { cwd: world.directory });
    const left = (await readdir(world.directory)).filter((name) => name.startsWith('x.iso'));
    expect(left.sort()).toEqual(['x.iso', 'x.iso.sha256']);
  });

  test('ends with a whole ISO after kills in the middle of writes, which does not boot in between', async () => {
    let code: number | null = null;
    for (let count = 2; code === null; count *= 2) {
      code = await runKilled(count);
      if (code === null && count >= 8) await expectHalf();
    }
    expect(code).toBe(0);
    expectTuesday();
  });

  test('ends with a whole ISO after kills in the last writes, which boots only when all blocks but one are written', async () => {
    expect(await runKilled(1, 16 * 2048)).toBe(null); // the volume descriptors
    await expectHalf();
    expect((await read('x.iso', BOOT_SIZE)).equals(await read('tuesday.iso', BOOT_SIZE))).toBe(
      true,
    );
    expect(await runKilled(1, 512)).toBe(null); // the rest of the System Area
    await expectHalf();
    expect(await runKilled(1, 0)).toBe(null); // the first block
    expect((await readFile(at('x.iso'))).readUInt16BE(510)).toBe(0);
    const whole = await read('tuesday.iso', 512);
    expect((await read('x.iso', 512)).subarray(0, whole.length).equals(whole)).toBe(true);
    await done('apply', ...IN_PLACE);
    expectTuesday();
  });

  test('continues only with the ISO and the journal that it began with', async () => {
    expect(await runKilled(8)).toBe(null);
    await copyFile(at('x.iso.apply.journal'), at('journal'));
    await rm(at('x.iso.apply.journal'));
    await expectRefused('delta.half-applied', ...IN_PLACE);
    const journal = await readFile(at('journal'), 'utf8'); // as of another stick, half-way by the same delta
    await writeFile(
      at('x.iso.apply.journal'),
      journal.replace(/"run":"[0-9a-f]{32}"/, '"run":"other"'),
    );
    await expectRefused('delta.half-applied', ...IN_PLACE);
    await copyFile(at('journal'), at('x.iso.apply.journal'));
    await expectRefused('delta.half-applied', 'x.iso', 'back.delta', '--in-place');
    const patched = await readFile(at('x.iso.apply.patched'));
    await writeFile(at('x.iso.apply.patched'), Buffer.alloc(patched.length));
    await expectRefused('delta.damaged', ...IN_PLACE);
    await writeFile(at('x.iso.apply.patched'), patched);
    await copyFile(at('monday.iso'), at('x.iso')); // as somebody would who starts over
    await done('apply', ...IN_PLACE);
    expectTuesday();
  });

  test('is refused for another ISO, or a damaged one, before a byte is written', async () => {
    world.env['SOURCE_DATE_EPOCH'] = '1700000000';
    await done('build', '--output', 'other.iso', '--base-iso', 'test.iso');
    delete world.env['SOURCE_DATE_EPOCH'];
    await expectRefused('delta.other-iso', 'other.iso', 'night.delta', '--in-place');
    const bytes = await readFile(at('x.iso'));
    bytes.writeUInt8(bytes.readUInt8(bytes.length - 300_000) ^ 1, bytes.length - 300_000);
    await writeFile(at('x.iso'), bytes);
    await expectRefused('delta.damaged', ...IN_PLACE);
  });

  test('requires exactly one of --in-place and --output', async () => {
    for (const args of [[], ['--in-place', '--output', 'y.iso']]) {
      const { exitCode, stderr } = await world.run('apply', 'x.iso', 'night.delta', ...args);
      expect([exitCode, stderr]).toEqual([2, expect.stringContaining('[usage.in-place]')]);
    }
  });

  test.skipIf(!mayMount())('is refused before the first byte if the disk is full', async () => {
    const small = at('small');
    const { size } = await stat(at('monday.iso'));
    await mkdir(small);
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size + (512 << 10)}`, 'none', small]);
    try {
      await copyFile(at('monday.iso'), join(small, 'x.iso'));
      const before = await digestFile(join(small, 'x.iso'));
      const args = ['apply', 'small/x.iso', 'night.delta', '--in-place'];
      const { exitCode, stderr } = await world.run(...args);
      expect([exitCode, stderr]).toEqual([7, expect.stringContaining('[disk.too-small]')]);
      expect(await digestFile(join(small, 'x.iso'))).toBe(before);
    } finally {
      execFileSync('umount', [small]);
    }
  });

  test.skipIf(!mayMount())('changes a device that is large enough', async () => {
    const { size } = await stat(at('tuesday.iso'));
    await truncate(at('x.iso'), size + 1024 * 1024);
    const device = execFileSync('losetup', ['--find', '--show', at('x.iso')], {
      encoding: 'utf8',
    }).trim();
    try {
      await done('apply', device, 'night.delta', '--in-place', '--work-dir', 'work');
      execFileSync('cmp', ['--bytes', String(size), device, at('tuesday.iso')]);
    } finally {
      execFileSync('losetup', ['--detach', device]);
    }
  });
});

describe('an interrupted apply', () => {
  /** The hint of a run that is interrupted before it does anything. */
  async function readHint(...args: readonly string[]): Promise<string | undefined> {
    const host = world.host(AbortSignal.abort(new InterruptedError('SIGINT')));
    expect(await runProgram(['apply', ...args, '--log-format', 'json'], host)).toBe(130);
    const lines = String(host.stderr.read()).trim().split('\n');
    return (JSON.parse(lines.at(-1) ?? '') as { readonly hint?: string }).hint;
  }

  test('has no hint while an ISO in place is untouched', async () => {
    expect(await readHint(...IN_PLACE)).toBeUndefined();
  });

  test('says that an ISO in place is partly changed', async () => {
    await writeFile(at('x.iso.apply.journal'), '');
    expect(await readHint(...IN_PLACE)).toBe(
      'x.iso is partly changed and may not boot until then; run the same command to continue',
    );
    await rm(at('x.iso.apply.journal'));
  });

  test('says that the same command continues to write another ISO', async () => {
    expect(await readHint('x.iso', 'night.delta', '--output', 'y.iso')).toMatch(
      /run the same command to continue$/,
    );
  });
});
