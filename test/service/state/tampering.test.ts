import { execFileSync } from 'node:child_process';
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openFileBackend } from '../../../src/service/state/files.ts';
import { openRecords } from '../../../src/service/state/open.ts';
import { openPostgresBackend } from '../../../src/service/state/postgres.ts';
import type { LedgerHead, State } from '../../../src/service/state/state.ts';
import { LEASE } from '../../support/lease.ts';
import { hasPostgres, startPostgres, type Postgres } from '../../support/postgres.ts';
import { RECORD_SETTINGS } from '../../support/records.ts';

const ONE = '6ba7b811-9dad-11d1-80b4-00c04fd430c8';
const TWO = '6ba7b811-9dad-11d1-80b4-00c04fd430c9';
const DAMAGED = { code: 'service.record-damaged' };

const record = (id: string, revision: number, more: object = {}) => ({
  id,
  tenant: 'one',
  revision,
  body: { name: `canary ${revision}` },
  ...more,
});

describe.skipIf(!hasPostgres)('a writer of the database without the key', () => {
  let postgres: Postgres;
  let url: string;
  const open: State[] = [];
  beforeAll(async () => {
    postgres = await startPostgres();
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((each) => each.close()));
  });
  afterAll(() => postgres.stop());

  const openState = async (expected?: LedgerHead): Promise<State> => {
    const backend = await openPostgresBackend(url, { env: {}, warn: () => undefined });
    const settings = { ...RECORD_SETTINGS, ...(expected && { expected }) };
    const { state } = await openRecords(backend, settings);
    open.push(state);
    return state;
  };
  const sql = (text: string): string =>
    execFileSync('psql', [url, '-At', '-v', 'ON_ERROR_STOP=1', '-c', text], { encoding: 'utf8' });
  const prepare = async (): Promise<State> => {
    url = postgres.createDatabase();
    const state = await openState();
    await state.create('infra-envs', record(ONE, 1));
    await state.create('infra-envs', record(TWO, 1, { tenant: 'two' }));
    sql('CREATE TABLE before AS SELECT * FROM sealift_sealed_records');
    return state;
  };
  /** Judged by the process that runs, and by one that starts afterwards. */
  const eachProcess = async (state: State, judge: (state: State) => Promise<void>) => {
    await judge(state);
    await judge(await openState());
  };

  it('reads no value of a record', async () => {
    await prepare();
    expect(execFileSync('pg_dump', [url], { encoding: 'utf8' })).not.toContain('canary');
  });

  it.each([
    ['to another tenant', `UPDATE sealift_sealed_records SET tenant = 'two' WHERE id = '${ONE}'`],
    [
      'to another id',
      `UPDATE sealift_sealed_records SET body =
         (SELECT body FROM sealift_sealed_records WHERE id = '${TWO}') WHERE id = '${ONE}'`,
    ],
    ['to another revision', `UPDATE sealift_sealed_records SET revision = 7 WHERE id = '${ONE}'`],
    [
      'to another cluster',
      `UPDATE sealift_sealed_records SET parent = '${TWO}' WHERE id = '${ONE}'`,
    ],
    ['away', `DELETE FROM sealift_sealed_records WHERE id = '${ONE}'`],
    ['into rubbish', `UPDATE sealift_sealed_records SET body = '{' WHERE id = '${ONE}'`],
  ])(
    'moves no record %s unseen, hides no other, and the owner can delete it',
    async (_, change) => {
      const state = await prepare();
      sql(change);
      await eachProcess(await openState(), async (each) => {
        await expect(each.read('infra-envs', ONE)).rejects.toMatchObject(DAMAGED);
        expect(await each.list('infra-envs', { tenant: 'one' })).toEqual({
          records: [],
          damaged: [ONE],
        });
        expect(await each.read('infra-envs', ONE, 'two')).toBeUndefined();
        expect((await each.list('infra-envs', { tenant: 'two' })).records).toMatchObject([
          { id: TWO, body: { name: 'canary 1' } },
        ]);
      });
      expect(await state.remove('infra-envs', ONE)).toBe(true);
      expect(await state.find('infra-envs', ONE)).toBeUndefined();
    },
  );

  it('puts no earlier revision and no removed record back unseen', async () => {
    const state = await prepare();
    await state.replace('infra-envs', record(ONE, 2));
    await state.remove('infra-envs', TWO);
    sql(
      `DELETE FROM sealift_sealed_records; INSERT INTO sealift_sealed_records SELECT * FROM before`,
    );
    await eachProcess(await openState(), async (each) => {
      await expect(each.read('infra-envs', ONE)).rejects.toMatchObject(DAMAGED);
      expect(await each.read('infra-envs', TWO)).toBeUndefined();
    });
  });

  it('adds no record, and no line to the ledger', async () => {
    const state = await prepare();
    sql(
      `INSERT INTO sealift_sealed_records SELECT 'clusters', id, tenant, revision, body, parent FROM before`,
    );
    expect(await state.read('clusters', ONE)).toBeUndefined();
    sql(`INSERT INTO sealift_ledger SELECT seq + 1, text, mac FROM sealift_ledger
         ORDER BY seq DESC LIMIT 1`);
    const damaged = { code: 'service.ledger-damaged' };
    await expect(state.read('infra-envs', ONE)).rejects.toMatchObject(damaged);
    await expect(openState()).rejects.toMatchObject(damaged);
  });

  it('puts nothing back together with the ledger while a process runs, nor past one that knows better', async () => {
    const state = await prepare();
    const before = state.head();
    sql('CREATE TABLE lines AS SELECT * FROM sealift_ledger');
    await state.replace('infra-envs', record(ONE, 2));
    const known = state.head();
    sql(`DELETE FROM sealift_sealed_records; INSERT INTO sealift_sealed_records SELECT * FROM before;
         DELETE FROM sealift_ledger; INSERT INTO sealift_ledger SELECT * FROM lines`);
    const older = { code: 'service.rolled-back' };
    await expect(state.read('infra-envs', ONE)).rejects.toMatchObject(older);
    await expect(state.check()).rejects.toMatchObject(older);
    await expect(openState(known)).rejects.toMatchObject(older);
    // All of it alone is a backup that was restored, which only something outside can know.
    expect(await (await openState(before)).read('infra-envs', ONE)).toMatchObject({ revision: 1 });
    const other = await openState();
    await other.replace('infra-envs', record(ONE, 2, { body: {} }));
    expect(other.head().seq).toBe(known.seq);
    await expect(openState(known)).rejects.toMatchObject(older);
  });

  it('passes no record for one from before there was a ledger', async () => {
    await prepare();
    sql('DELETE FROM sealift_ledger');
    await expect(openState()).rejects.toMatchObject({ code: 'service.ledger-damaged' });
  });

  it('changes no key of a tenant for that of another', async () => {
    await prepare();
    sql(`UPDATE sealift_texts t SET text = o.text FROM sealift_texts o
         WHERE t.name LIKE 'tenant-key-%' AND o.name LIKE 'tenant-key-%' AND t.name <> o.name`);
    const state = await openState();
    await expect(state.read('infra-envs', ONE)).rejects.toMatchObject({
      code: 'service.key-wrong',
    });
  });
});

describe('records in files', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sealift-ledger-'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  const openState = async (directory: string): Promise<State> =>
    (await openRecords(await openFileBackend(directory, LEASE), RECORD_SETTINGS)).state;

  it('put back from an earlier copy are noticed, and hide no other', async () => {
    const directory = join(folder, 'copied');
    const state = await openState(directory);
    await state.create('clusters', record(ONE, 1));
    await state.create('clusters', record(TWO, 1));
    const file = join(directory, 'clusters', `${ONE}.json`);
    const before = await readFile(file);
    await state.replace('clusters', record(ONE, 2));
    await writeFile(file, before);
    await state.close();
    const again = await openState(directory);
    await expect(again.read('clusters', ONE)).rejects.toMatchObject(DAMAGED);
    expect(await again.read('clusters', TWO)).toMatchObject({ revision: 1 });
    expect(await again.remove('clusters', ONE)).toBe(true);
    await again.close();
    expect(await readdir(join(directory, 'clusters'))).toEqual([`${TWO}.json`]);
  });

  it.each([
    ['a replacement', 1, (state: State) => state.replace('clusters', record(ONE, 2))],
    ['a removal', undefined, (state: State) => state.remove('clusters', ONE)],
    ['a creation', undefined, (state: State) => state.create('clusters', record(TWO, 1))],
  ])('are whole when %s was cut off behind the ledger', async (name, revision, change) => {
    const directory = join(folder, name);
    const killed = join(folder, `${name}, killed`);
    const state = await openState(directory);
    await state.create('clusters', record(ONE, 1));
    const id = name === 'a creation' ? TWO : ONE;
    await cp(directory, killed, { recursive: true });
    await change(state);
    await cp(join(directory, 'ledger'), join(killed, 'ledger'));
    await state.close();
    await rm(join(killed, 'service.lock'));
    for (let start = 0; start < 2; start += 1) {
      const again = await openState(killed);
      expect((await again.read('clusters', id))?.revision).toBe(revision);
      expect(await again.list('clusters', { tenant: 'one' })).toMatchObject({ damaged: [] });
      await again.close();
    }
  });

  it('have a ledger that does not grow with the number of changes', async () => {
    const directory = join(folder, 'long');
    const state = await openState(directory);
    await state.create('clusters', record(ONE, 1));
    for (let revision = 2; revision < 700; revision += 1) {
      await state.replace('clusters', record(ONE, revision));
    }
    const { seq } = state.head();
    await state.close();
    const lines = (await readFile(join(directory, 'ledger'), 'utf8')).split('\n').length;
    expect([seq > 700, lines < 300]).toEqual([true, true]);
    const again = await openState(directory);
    expect(await again.read('clusters', ONE)).toMatchObject({ revision: 699 });
    await again.close();
  });
});
