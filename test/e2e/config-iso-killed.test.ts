import { readdir } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestFile, hasFile } from '../../src/base/disk/files.ts';
import { readConfigIso } from '../../src/sites/config-iso.ts';
import { startSealift, type Child } from '../support/child.ts';
import {
  createConfigIsoWorld,
  EPOCH,
  inFolder,
  siteTree,
  type ConfigIsoWorld,
} from '../support/config-iso-world.ts';

const NAMES = ['alpha', 'beta', 'gamma', 'delta', 'epsilon'];

describe('a build of many sites', () => {
  let world: ConfigIsoWorld;
  beforeAll(async () => {
    world = await createConfigIsoWorld();
    const trees = NAMES.map((name, index) => siteTree(name, { number: index + 1 }));
    world.write(inFolder('sites', ...trees));
  });
  afterAll(() => world.close());

  const build = (): Child =>
    startSealift(['config-iso', 'build', 'sites', '--out', 'out'], {
      cwd: world.directory,
      env: { SOURCE_DATE_EPOCH: EPOCH },
    });

  const list = async (directory: string, end: string): Promise<readonly string[]> => {
    const path = world.at('out', directory);
    if (!(await hasFile(path))) return [];
    return (await readdir(path)).filter((name) => name.endsWith(end));
  };

  /** Kills a build as soon as so many files of a kind are there. */
  async function killAt(directory: string, end: string, count: number): Promise<void> {
    const child = build();
    while ((await list(directory, end)).length < count && child.process.exitCode === null) {
      await sleep(1);
    }
    child.process.kill('SIGKILL');
    await child.ended;
  }

  const digestFinished = async (): Promise<Map<string, string>> => {
    const records = await list('_state', '.made.json');
    const isos = records.map((name) => name.replace('.made.json', '.iso'));
    return new Map(
      await Promise.all(
        isos.map(async (iso) => [iso, await digestFile(world.at('out', iso))] as const),
      ),
    );
  };

  it('leaves no half of an ISO whenever it is killed, and continues from there', async () => {
    const finished = new Map<string, string>();
    const moments = [
      ['_state', 'build.lock', 1],
      ['_state', '.json', 1],
      ['', '.iso', 1],
      ['_state', '.made.json', 2],
      ['_state', '.made.json', 4],
    ] as const;
    for (const [directory, end, count] of moments) {
      await killAt(directory, end, count);
      for (const iso of await list('', '.iso')) {
        expect((await readConfigIso(world.at('out', iso))).entries.length).toBeGreaterThan(3);
      }
      const now = await digestFinished();
      for (const [iso, digest] of finished) expect([iso, now.get(iso)]).toEqual([iso, digest]);
      for (const [iso, digest] of now) finished.set(iso, digest);
    }
    const { code, stdout, stderr } = await build().ended;
    expect([code, stderr]).toEqual([0, expect.stringContaining('done in')]);
    const reused = Number(/(\d+) reused/.exec(stdout)?.[1]);
    expect(reused).toBeGreaterThanOrEqual(4);
    expect(reused).toBe(finished.size);
    const { sites } = await world.readListing('out');
    expect(sites.map(({ name }) => name).sort()).toEqual([...NAMES].sort());
    for (const { iso, sha256 } of sites) {
      expect(await digestFile(world.at('out', iso))).toBe(`sha256:${sha256}`);
      if (finished.has(iso)) expect(finished.get(iso)).toBe(`sha256:${sha256}`);
    }
    const left = await readdir(world.at('out'), { recursive: true });
    expect(left.filter((name) => name.endsWith('.tmp') || name.includes('.lock'))).toEqual([]);
  }, 120_000);

  it('reports in order that it was interrupted, and then makes the same ISOs', async () => {
    const before = await world.readListing('out');
    const child = startSealift(['config-iso', 'build', 'sites', '--out', 'out', '--rotate'], {
      cwd: world.directory,
    });
    while (!(await hasFile(world.at('out/_state/rotation.marker')))) await sleep(1);
    child.process.kill('SIGINT');
    const { code, stderr } = await child.ended;
    expect([code, stderr]).toEqual([130, expect.stringContaining('interrupted by SIGINT')]);
    expect(stderr).toMatch(
      /hint: (?:\d+ of \d+ sites are made; )?run the same command to continue\n$/,
    );
    expect(await hasFile(world.at('out/sites.json'))).toBe(false);
    const { code: again } = await build().ended;
    const after = await world.readListing('out');
    expect([again, after.sites.length]).toEqual([0, before.sites.length]);
  }, 120_000);
});
