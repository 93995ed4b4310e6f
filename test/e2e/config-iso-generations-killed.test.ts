import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { hasFile } from '../../src/base/disk/files.ts';
import { parseState } from '../../src/sites/identity/identity.ts';
import { readConfigIso } from '../../src/sites/config-iso.ts';
import { startSealift } from '../support/child.ts';
import {
  createConfigIsoWorld,
  EPOCH,
  inFolder,
  siteTree,
  type ConfigIsoWorld,
} from '../support/config-iso-world.ts';
import { sampleKills } from '../support/kills.ts';

const KILLER = new URL('../support/kill-at-step.mjs', import.meta.url).href;
/** More changes than one site costs. */
const MOST = 60;
/** Both forms end where a build is no longer killed; the long one takes minutes. */
const { first, stride } = sampleKills('generations', 6);

let world: ConfigIsoWorld;
beforeEach(async () => {
  world = await createConfigIsoWorld();
  world.write(inFolder('sites', siteTree('alpha', { number: 1 })));
});
afterEach(() => world.close());

/** Builds, and dies right before its nth change of a file below the output directory. */
async function build(step: number, ...args: string[]): Promise<number | null> {
  const all = ['config-iso', 'build', 'sites', '--out', 'out', '--jobs', '2', ...args];
  const env = { KILL_BELOW: world.at('out'), KILL_AT: String(step) };
  const child = startSealift(all, {
    cwd: world.directory,
    env: { SOURCE_DATE_EPOCH: EPOCH, NODE_OPTIONS: `--import ${KILLER}`, ...env },
  });
  return (await child.ended).code;
}

/** Every file of a generation that is there, whole, and all that were there before. */
async function readGenerations(before = new Map<string, string>()): Promise<Map<string, string>> {
  const texts = new Map<string, string>();
  const files = (await hasFile(world.at('out/_state')))
    ? await readdir(world.at('out/_state'))
    : [];
  for (const file of files.filter((name) => /\.\d+\.json$/.test(name))) {
    texts.set(file, await readFile(world.at('out/_state', file), 'utf8'));
  }
  for (const [file, text] of before) expect([file, texts.get(file)]).toEqual([file, text]);
  for (const [file, text] of texts)
    expect([file, parseState(text) !== undefined]).toEqual([file, true]);
  return texts;
}

/** The ISO that is there has the keys of a generation that is there. */
async function expectKnownKeys(texts: ReadonlyMap<string, string>): Promise<void> {
  if (!(await hasFile(world.at('out/alpha.iso')))) return;
  const { manifest } = await readConfigIso(world.at('out/alpha.iso'));
  const { cluster_id: id } = manifest as { cluster_id: string };
  const ids = [...texts.values()].map((text) => parseState(text)?.identity.clusterId);
  expect(ids).toContain(id);
}

it('a build that is killed before any step leaves no half of a generation, and then makes one', async () => {
  let step = first;
  let code: number | null = null;
  for (; code === null && step < MOST; step += stride) {
    code = await build(step);
    await expectKnownKeys(await readGenerations());
    if (code === null) await rm(world.at('out'), { recursive: true, force: true });
  }
  expect(code).toBe(0);
  expect(step).toBeGreaterThan(10);
}, 600_000);

it('a rotation that is killed before any step loses no generation, and then draws one', async () => {
  expect(await build(0)).toBe(0);
  const isBegun = (): Promise<boolean> => hasFile(world.at('out/_state/rotation.marker'));
  let texts = await readGenerations();
  let code: number | null = null;
  let rotations = 0;
  let step = first;
  for (; code === null && step < MOST; step += stride) {
    const [wasBegun, had] = [await isBegun(), texts.size];
    code = await build(step, '--rotate');
    texts = await readGenerations(texts);
    await expectKnownKeys(texts);
    // A kill after the end of a rotation lets the next run begin another.
    if (!wasBegun && (texts.size > had || (await isBegun()))) rotations++;
  }
  expect([code, texts.size, await isBegun()]).toEqual([0, 1 + rotations, false]);
  expect([...texts.keys()]).toEqual(expect.arrayContaining(['alpha.1.json', 'alpha.2.json']));
  expect(step).toBeGreaterThan(8);
}, 600_000);

it('the move of an old state that is killed before any step loses no generation', async () => {
  expect(await build(0)).toBe(0);
  expect(await build(0, '--rotate')).toBe(0);
  const left = { 'alpha.1': 'alpha.before', 'alpha.2': 'alpha', 'alpha.made': 'alpha.made' };
  await mkdir(world.at('out/.sealift'));
  const texts = await readGenerations();
  for (const [from, to] of Object.entries(left)) {
    const text = await readFile(world.at('out/_state', `${from}.json`));
    await writeFile(world.at('out/.sealift', `${to}.json`), text, { mode: 0o600 });
  }
  await rm(world.at('out/_state'), { recursive: true });
  let code: number | null = null;
  let step = first;
  for (; code === null && step < MOST; step += stride) {
    code = await build(step);
    const found = await readGenerations();
    const old = (await hasFile(world.at('out/.sealift')))
      ? await readdir(world.at('out/.sealift'))
      : [];
    for (const name of old.filter((name) => !name.includes('.made') && name.endsWith('.json'))) {
      found.set(`old ${name}`, await readFile(world.at('out/.sealift', name), 'utf8'));
    }
    for (const text of texts.values()) expect([...found.values()]).toContain(text);
  }
  expect([code, await readGenerations(texts)]).toEqual([0, texts]);
  const isLeft = await hasFile(world.at('out/.sealift'));
  expect(isLeft ? await readdir(world.at('out/.sealift')) : []).toEqual([]);
  expect(step).toBeGreaterThan(6);
}, 600_000);
