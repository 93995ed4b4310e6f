import { mkdir, mkdtemp, rm, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openFileRecords } from '../../support/records.ts';

const ONE = '6ba7b811-9dad-11d1-80b4-00c04fd430c8';
const TWO = '6ba7b811-9dad-11d1-80b4-00c04fd430c9';

const record = (id: string) => ({ id, tenant: 'one', revision: 1, body: { name: id } });

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'failed-change-'));
});
afterAll(() => rm(directory, { recursive: true }));

it('a record that cannot be written leaves the ledger as it was, for this process and the next', async () => {
  const state = await openFileRecords(directory);
  await state.create('infra-envs', record(ONE));
  const obstacle = join(directory, 'infra-envs', `${TWO}.json`);
  await mkdir(obstacle);
  await expect(state.create('infra-envs', record(TWO))).rejects.toThrow();
  await rmdir(obstacle);
  expect(await state.read('infra-envs', ONE)).toMatchObject(record(ONE));
  await state.create('infra-envs', record(TWO));
  await state.close();
  const next = await openFileRecords(directory);
  expect(await next.read('infra-envs', ONE)).toMatchObject(record(ONE));
  expect(await next.read('infra-envs', TWO)).toMatchObject(record(TWO));
  await next.close();
});
