import { open, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { digestFile } from '../../src/base/disk/files.ts';
import { createToolWorld, type ToolWorld } from '../support/tool-world.ts';

let tools: ToolWorld;
let world: ToolWorld['world'];

beforeAll(async () => {
  tools = await createToolWorld();
  ({ world } = tools);
  await build();
});
afterAll(() => world.close());

const at = (name: string): string => tools.at(name);

type Report = { readonly isUpToDate: boolean; readonly stages: readonly { stage: string }[] };

const BUILD = ['build', '--output', 'a.iso', '--base-iso', 'test.iso', '-o', 'json'] as const;

async function build(...more: readonly string[]): Promise<Report & Record<string, unknown>> {
  const { exitCode, stdout, stderr } = await world.run(...BUILD, ...more);
  expect([exitCode, stderr]).toEqual([0, expect.not.stringContaining('error')]);
  return JSON.parse(stdout) as Report & Record<string, unknown>;
}

/** Whether nothing was planned at all. */
const isKnown = ({ isUpToDate, stages }: Report): boolean =>
  isUpToDate && stages.every(({ stage }) => stage === 'find unchanged ISO');

describe('a finished and unchanged ISO', () => {
  test('is recognized by its inputs: only the tags that a user named are requested', async () => {
    const before = world.registry.requests.length;
    expect(isKnown(await build())).toBe(true);
    const asked = world.registry.requests.slice(before).filter((line) => !line.endsWith('/v2/'));
    expect(asked).toEqual([expect.stringContaining('/v2/team/tool/manifests/1')]);
  });

  test('keeps the verdict of its rehearsal for the day, unless the option asks for another', async () => {
    const rehearse = async (...more: readonly string[]): Promise<readonly [unknown, boolean]> => {
      const { exitCode, stdout, stderr } = await world.run(...BUILD, ...more);
      expect(exitCode).toBeLessThanOrEqual(8);
      const { rehearsal } = JSON.parse(stdout) as { readonly rehearsal: unknown };
      return [rehearsal, stderr.includes('rehearse: done')];
    };
    const [verdict] = await rehearse();
    expect(verdict).toMatchObject({ will: expect.any(Number) as number });
    expect(await rehearse()).toEqual([verdict, false]);
    expect(await rehearse('--rehearse')).toEqual([verdict, true]);
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 86_400_000 });
    try {
      expect(await rehearse()).toEqual([verdict, true]);
      expect(await rehearse()).toEqual([verdict, false]);
    } finally {
      vi.useRealTimers();
    }
  });

  test('is recognized after a checkout gave the same inputs new times', async () => {
    await utimes(at('appliance-config.yaml'), 1, 1);
    await utimes(at('openshift/a.yaml'), 1, 1);
    await build();
    expect(isKnown(await build())).toBe(true);
  });

  test('is verified if that is requested, and built again if it was written to', async () => {
    expect(await build('--verify')).toMatchObject({
      isUpToDate: true,
      verified: { bytes: expect.any(Number) as number },
    });
    const { mtime, atime, size } = await stat(at('a.iso'));
    const file = await open(at('a.iso'), 'r+');
    await file.write(Buffer.from('flipped'), 0, 7, size - 40_000);
    await file.close();
    await utimes(at('a.iso'), atime, mtime); // its change time tells all the same
    expect((await build('--verify')).isUpToDate).toBe(false);
    const { exitCode } = await world.run('verify', 'a.iso');
    expect(exitCode).toBe(0);
  });

  test('is planned again for each change that could make it another ISO', async () => {
    const edits: Readonly<Record<string, () => Promise<unknown>>> = {
      'a manifest beside the configuration': () => tools.writeManifest('other'),
      'the configuration': () => tools.writeConfig('  kernelArguments: [debug]'),
      'what a tag names': () => tools.addTool('second'),
      'the time of its files': () => {
        world.env['SOURCE_DATE_EPOCH'] = '1700000000';
        return Promise.resolve();
      },
      'another base ISO': async () => {
        await writeFile(
          at('new.iso'),
          Buffer.concat([await readAll('test.iso'), new Uint8Array(0)]),
        );
        await rename(at('new.iso'), at('test.iso'));
      },
      'its report': () => writeFile(at('a.iso.report.json'), '{"product":"live-iso"}'),
    };
    for (const [name, edit] of Object.entries(edits)) {
      await edit();
      expect([name, isKnown(await build('--force'))]).toEqual([name, false]);
      expect([name, isKnown(await build())]).toEqual([name, true]);
    }
  });

  test('is read and hashed if records of earlier builds are not trusted', async () => {
    const digest = await digestFile(at('a.iso'));
    expect(await build('--rehash')).toMatchObject({ isUpToDate: false, digest });
    expect(isKnown(await build())).toBe(true);
  });

  test('is recognized with the lock of its build, and planned with another lock', async () => {
    await build('--lock');
    expect(isKnown(await build())).toBe(true);
    expect(isKnown(await build('--locked'))).toBe(false);
    expect(isKnown(await build('--locked'))).toBe(true);
    await rm(at('sealift.lock.json'));
    expect(isKnown(await build())).toBe(false);
  });
});

const readAll = async (name: string): Promise<Buffer> => {
  const file = await open(at(name));
  try {
    return await file.readFile();
  } finally {
    await file.close();
  }
};
