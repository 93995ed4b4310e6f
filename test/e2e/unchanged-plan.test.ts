import { appendFile, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createToolWorld, type ToolWorld } from '../support/tool-world.ts';

let tools: ToolWorld;
let world: ToolWorld['world'];

beforeAll(async () => {
  tools = await createToolWorld();
  ({ world } = tools);
});
afterAll(() => world.close());

const at = (name: string): string => tools.at(name);

type Plan = Readonly<Record<string, unknown>>;
type Planned = { readonly plan: Plan; readonly requests: readonly string[] };

async function plan(...more: readonly string[]): Promise<Planned> {
  const before = world.registry.requests.length;
  const args = ['plan', '--output', 'a.iso', '--base-iso', 'test.iso', '-o', 'json', ...more];
  const { exitCode, stdout, stderr } = await world.run(...args);
  expect([exitCode, stderr]).toEqual([0, expect.not.stringContaining('error')]);
  const requests = world.registry.requests.slice(before).filter((line) => !line.endsWith('/v2/'));
  return { plan: JSON.parse(stdout) as Plan, requests };
}

/** The one name that a person gave. */
const ASKED = [expect.stringContaining('/v2/team/tool/manifests/1')];

/** Bytes of this machine's disk, which other programs change. */
const withoutDisk = ({ freeBytes, ...plan }: Plan): Plan => ({
  ...plan,
  freeBytes: typeof freeBytes,
});

/** Plans without the record of the last plan. */
async function planAfresh(): Promise<Plan> {
  const folder = at('.sealift/finished');
  for (const name of await readdir(folder)) await rm(join(folder, name));
  const { plan: made, requests } = await plan();
  expect(requests.length).toBeGreaterThan(1);
  return withoutDisk(made);
}

describe('a plan of the same inputs', () => {
  test('asks only for the tags that a user named, and is the same plan', async () => {
    const first = await plan();
    const again = await plan();
    expect(again.requests).toEqual(ASKED);
    expect(withoutDisk(again.plan)).toEqual(withoutDisk(first.plan));
    await utimes(at('appliance-config.yaml'), 1, 1);
    expect((await plan()).requests).toEqual(ASKED);
  });

  test('is made again for each change that could make it another plan', async () => {
    const edits: Readonly<Record<string, () => Promise<unknown>>> = {
      'a manifest beside the configuration': () => tools.writeManifest('other'),
      'the configuration': () => tools.writeConfig('  kernelArguments: [debug]'),
      'what a tag names': () => tools.addTool('second, which is longer'),
      'the time of its files': () => {
        world.env['SOURCE_DATE_EPOCH'] = '1700000000';
        return Promise.resolve();
      },
      'a file in its place': () => writeFile(at('a.iso'), 'not an ISO'),
      'that file is another one': () => appendFile(at('a.iso'), ', at all'),
      'its record is damaged': async () => {
        const [name = ''] = (await readdir(at('.sealift/finished'))).filter((each) =>
          each.endsWith('.plan.json'),
        );
        const path = join(at('.sealift/finished'), name);
        const text = await readFile(path, 'utf8');
        await writeFile(
          path,
          text.replace(/isoSize\\":\d/, (found) => `${found}9`),
        );
      },
    };
    for (const [name, edit] of Object.entries(edits)) {
      await edit();
      const made = await plan();
      expect([name, made.requests.length > 1]).toEqual([name, true]);
      const known = await plan();
      expect([name, known.requests]).toEqual([name, ASKED]);
      expect(withoutDisk(known.plan)).toEqual(await planAfresh());
    }
    await rm(at('a.iso'));
  });

  test('measures what is to be fetched now', async () => {
    await plan();
    const { plan: before } = await plan();
    expect(before).toMatchObject({ neededBytes: before['isoSize'] });
    expect(Number(before['bytesToFetch'])).toBeGreaterThan(0);
    const args = ['build', '--output', 'other.iso', '--base-iso', 'test.iso'];
    expect((await world.run(...args)).exitCode).toBe(0);
    const { plan: after, requests } = await plan('--seed', 'other.iso');
    expect(requests).toEqual(ASKED);
    expect(after).toMatchObject({ bytesToFetch: 0, bytesReused: before['payloadSize'] });
    await rm(at('other.iso'));
  });

  test('is compared with a lock, if there is one', async () => {
    await plan();
    expect((await world.run('lock', '--base-iso', 'test.iso')).exitCode).toBe(0);
    expect((await plan('--rehash')).requests.length).toBeGreaterThan(1);
  });
});
