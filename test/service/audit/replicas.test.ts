import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { verifyAuditLog } from '../../../src/service/audit/verify.ts';
import { hasPostgres, startPostgres, type Postgres } from '../../support/postgres.ts';
import { API, PULL_SECRET, startService, type TestService } from '../../support/service.ts';

describe.skipIf(!hasPostgres)('replicas with an audit log each', () => {
  let postgres: Postgres;
  let folder: string;
  beforeAll(async () => {
    postgres = await startPostgres();
    folder = await mkdtemp(join(tmpdir(), 'sealift-audit-replicas-'));
  });
  afterAll(async () => {
    await postgres.stop();
    await rm(folder, { recursive: true });
  });
  const create = async (service: TestService): Promise<void> => {
    const body = { name: 'edge', pull_secret: PULL_SECRET };
    expect((await service.call('POST', `${API}/v2/infra-envs`, { body })).status).toBe(201);
  };
  const logOf = (name: string): string => join(folder, `${name}.log`);
  const start = (name: string, database: string): Promise<TestService> =>
    startService({ database, audit: { file: logOf(name), settings: '' } });

  it('hold the common ledger to what each has seen, while the others go on', async () => {
    const database = postgres.createDatabase();
    const [one, two] = [await start('one', database), await start('two', database)];
    await create(one);
    await create(two);
    await one.close();
    await create(two);
    await two.close();
    for (const name of ['one', 'two']) {
      await (await start(name, database)).close();
      expect((await verifyAuditLog([logOf(name)])).isFromBeginning).toBe(true);
    }
    // Another database, with a ledger of its own that is as long, is not the one that was seen.
    const other = postgres.createDatabase();
    const third = await start('three', other);
    for (let at = 0; at < 4; at += 1) await create(third);
    await third.close();
    await expect(start('one', other)).rejects.toMatchObject({ code: 'service.restored' });
    await (await start('one', database)).close();
  });
});
