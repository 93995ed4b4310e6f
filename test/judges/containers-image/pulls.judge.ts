import { rm } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { alterMedium } from './alter.ts';
import { BROKEN, type Broken } from './broken.ts';
import { createMediaWorld, GOOD_MEDIA, type GoodMedium, type MediaWorld } from './media.ts';
import { judge, pullAll } from './node.ts';

describe.skipIf(judge === undefined)('a node of a medium', () => {
  let world: MediaWorld;
  beforeAll(async () => {
    world = await createMediaWorld(GOOD_MEDIA);
  });
  afterAll(() => world.close());

  const find = (name: string): GoodMedium => {
    const medium = world.media.find((one) => one.name === name);
    if (medium) return medium;
    throw new Error(`no medium ${name}`);
  };

  it.each(GOOD_MEDIA)('pulls every image of the medium %s', async (name) => {
    expect(await pullAll(find(name))).toEqual(new Map());
  });

  const rows = BROKEN.filter(({ refused }) => refused !== undefined);
  it.each(rows.map((row) => [row.name, row] as const))(
    'does not get the images that are missed if %s',
    async (_, { base, change, refused }: Broken) => {
      const medium = find(base);
      const path = `${medium.path}.broken`;
      alterMedium(medium.path, path, change(medium, world));
      const refusals = await pullAll(medium, path);
      await rm(path);
      console.log(new Set(refusals.values()));
      expect([...refusals.keys()].toSorted()).toEqual(refused?.(medium).toSorted());
    },
  );
});
