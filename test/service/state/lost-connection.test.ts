import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openRecords } from '../../../src/service/state/open.ts';
import { openPostgresBackend } from '../../../src/service/state/postgres.ts';
import { hasPostgres, startPostgres, type Postgres } from '../../support/postgres.ts';
import { RECORD_SETTINGS } from '../../support/records.ts';

/** ErrorResponse (PostgreSQL, Message Formats) of a server that ends a connection by itself. */
function createLastWord(): Buffer {
  const fields =
    'SFATAL\0VFATAL\0C57P01\0Mterminating connection due to unexpected postmaster exit\0\0';
  const head = Buffer.from('E\0\0\0\0');
  head.writeInt32BE(4 + fields.length, 1);
  return Buffer.concat([head, Buffer.from(fields)]);
}

/** Stands before the database, and can say in its name, right behind an answer, that it ends. */
async function startProxy(database: string) {
  const folder = new URL(database).searchParams.get('host') ?? '';
  let answersLeft = Infinity;
  const open = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(`${folder}/.s.PGSQL.5432`);
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        client.destroy();
        upstream.destroy();
      });
    }
    client.pipe(upstream);
    upstream.on('data', (answer: Buffer) => {
      answersLeft -= 1;
      if (answersLeft > 0) client.write(answer);
      else client.end(Buffer.concat([answer, createLastWord()]));
      if (answersLeft <= 0) answersLeft = Infinity;
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(database);
  url.searchParams.delete('host');
  return {
    url: url.href.replace('///', `//127.0.0.1:${(server.address() as AddressInfo).port}/`),
    endBehind(answers: number): void {
      answersLeft = answers;
    },
    close(): void {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}

describe.skipIf(!hasPostgres)('a database that ends right behind an answer', () => {
  let postgres: Postgres;
  beforeAll(async () => {
    postgres = await startPostgres();
  });
  afterAll(() => postgres.stop());

  it('costs one refusal at most, whichever statement of a change it was', async () => {
    const proxy = await startProxy(postgres.createDatabase());
    const access = { env: {}, warn: () => undefined };
    const backend = await openPostgresBackend(proxy.url, access);
    const { state } = await openRecords(backend, RECORD_SETTINGS);
    const refusals: unknown[] = [];
    for (let answers = 1; answers <= 6; answers += 1) {
      const id = `6ba7b811-9dad-11d1-80b4-00c04fd430c${answers}`;
      const create = () => state.create('infra-envs', { id, tenant: 'one', revision: 1, body: {} });
      proxy.endBehind(answers);
      await create().catch(async (error: unknown) => {
        refusals.push(error);
        // COMMIT may have been done unheard.
        if ((await state.read('infra-envs', id)) === undefined) await create();
      });
      expect(await state.read('infra-envs', id)).toMatchObject({ id, revision: 1 });
    }
    expect(refusals.length).toBeGreaterThan(2);
    for (const refusal of refusals) expect(refusal).toMatchObject({ code: 'service.database' });
    await state.close();
    proxy.close();
  });
});
