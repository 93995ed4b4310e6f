import { mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { storeOverlay } from '../../../src/media/serve/overlay.ts';
import { labelOverlay, sweepOverlays } from '../../../src/service/images/images.ts';
import { openFileRecords } from '../../support/records.ts';

const PRESENT = '6ba7b811-9dad-11d1-80b4-00c04fd430c8';
const GONE = '6ba7b811-9dad-11d1-80b4-00c04fd430c9';

describe('the overlays of a replica', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sealift-sweep-'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  it('belong to current revisions of existing InfraEnvs, even after a change elsewhere and a kill', async () => {
    const directory = join(folder, 'overlays');
    const state = await openFileRecords(join(folder, 'records'));
    const record = { id: PRESENT, tenant: 't', body: {} };
    await sweepOverlays(state, directory);
    await state.create('infra-envs', { ...record, revision: 1 });
    await state.replace('infra-envs', { ...record, revision: 2 });
    const key = Buffer.alloc(32, 'key');
    for (const [id, revision] of [
      [PRESENT, 1],
      [PRESENT, 2],
      // Stored by a request that came behind the next change.
      [PRESENT, 3],
      [GONE, 1],
    ] as const) {
      const place = {
        directory,
        key,
        name: `${id} ${revision}`,
        label: labelOverlay({ id, revision }),
      };
      await storeOverlay(place, [{ offset: 0, bytes: Buffer.from('area') }]);
    }
    const [whole = ''] = await readdir(directory);
    const aside = join(directory, `${whole}.4000000-1-0123456789ab.tmp`);
    await writeFile(aside, 'half');
    await utimes(aside, 0, 0);
    await sweepOverlays(state, directory);
    const names = (await readdir(directory)).sort().map((name) => name.slice(0, 38));
    expect(names).toEqual([`${PRESENT}.2`, `${PRESENT}.3`]);
    await state.close();
  });
});
