import { test } from 'vitest';
import { createMediaWorld, GOOD_MEDIA } from './media.ts';
import { pullAll } from './node.ts';
import { alterMedium } from './alter.ts';
test('x', async () => {
  const world = await createMediaWorld(process.env['ONLY']?.split(',') ?? GOOD_MEDIA);
  for (const m of world.media) {
    const t = Date.now();
    const a = await pullAll(m); console.log(m.name, a.size, [...a].slice(0, 2), Date.now() - t);
    if (m.name.startsWith('upgrade')) continue;
    alterMedium(m.path, m.path + '.2', { bootstrap: () => undefined, embedded: () => undefined, files: {'/x': 'x'} });
    const b = await pullAll(m, m.path + '.2'); console.log('altered', b.size, [...b].slice(0, 2), Date.now() - t);
  }
  await world.close();
});
