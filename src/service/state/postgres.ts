import pg from 'pg';
import { RegistryError, SealiftError } from '../../base/errors.ts';
import { explainTls } from '../../base/http/network-failure.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { redactAddresses } from '../../base/text/redact.ts';
import { readDatabaseAccess, type DatabaseAccess } from './database-access.ts';
import { createPostgresBackend } from './postgres-backend.ts';
import type { Backend } from './backend.ts';

/** Opens records in PostgreSQL, which several processes may serve. */
export async function openPostgresBackend(
  url: string,
  { env, warn }: { readonly env: NodeJS.ProcessEnv; readonly warn: (message: string) => void },
): Promise<Backend> {
  const access = readAccess(url, env);
  if (access.doubt !== undefined) warn(access.doubt);
  const pool = new pg.Pool({
    connectionString: access.url,
    ssl: access.ssl,
    max: 8,
    connectionTimeoutMillis: 5000,
    query_timeout: 20_000,
    application_name: 'sealift',
  });
  // The pool has listeners for idle connections alone; one that breaks between two statements fails the next.
  pool.on('connect', (client) => client.on('error', () => undefined));
  pool.on('error', () => undefined); // an idle connection broke: the next query takes another
  try {
    await migrate(pool);
  } catch (cause) {
    await pool.end();
    throw describeAway(cause, access.host);
  }
  return createPostgresBackend(pool, async (work) => {
    try {
      return await work();
    } catch (cause) {
      throw isAway(cause) ? describeAway(cause, access.host) : cause;
    }
  });
}

function readAccess(url: string, env: NodeJS.ProcessEnv): DatabaseAccess {
  try {
    return readDatabaseAccess(url, env);
  } catch (cause) {
    if (cause instanceof SealiftError) throw cause;
    throw describeAway(cause, ''); // pg reads the files that the URL names
  }
}

/**
 * Classes of errors (PostgreSQL, appendix A) after which a retry may succeed: connections, resources, an
 * operator or the system. Errors without a class did not come from the database: a broken socket, a time
 * limit.
 */
const AWAY = /^(?:08|53|57|58)/;

const isAway = (error: unknown): boolean =>
  !(error instanceof SealiftError) && // thrown between two queries
  (!(error instanceof pg.DatabaseError) || AWAY.test(error.code ?? ''));

function describeAway(cause: unknown, host: string): RegistryError {
  const tls = explainTls({ host }, cause);
  if (tls) {
    const { problem, expected, found, hint } = tls;
    const details = { ...withoutUndefined({ expected }), found, hint };
    return new RegistryError('service.database', `the database ${host} ${problem}`, details);
  }
  const message = redactAddresses(cause instanceof Error ? cause.message : String(cause));
  return new RegistryError('service.database', `the database does not answer: ${message}`, {
    hint: 'correct --database, or start PostgreSQL',
  });
}

/**
 * Migrations, each applied once, in order, in its own transaction. A released migration never changes:
 * databases keep it. After the fourth, replicas of before fail: what they write is in no ledger.
 */
const MIGRATIONS: readonly string[] = [
  `CREATE TABLE sealift_records (
     collection text NOT NULL,
     id uuid NOT NULL,
     tenant text NOT NULL,
     revision bigint NOT NULL,
     body text NOT NULL,
     PRIMARY KEY (collection, id)
   )`,
  'CREATE INDEX sealift_records_of_tenant ON sealift_records (collection, tenant, id)',
  'CREATE TABLE sealift_texts (name text PRIMARY KEY, text text NOT NULL)',
  'ALTER TABLE sealift_records RENAME TO sealift_sealed_records',
  'ALTER TABLE sealift_sealed_records ADD COLUMN parent text',
  'DROP INDEX sealift_records_of_tenant',
  'CREATE TABLE sealift_ledger (seq bigint PRIMARY KEY, text text NOT NULL, mac text NOT NULL)',
];

/** Arbitrary lock number: replicas that start together migrate one after the other. */
const MIGRATION_LOCK = 7_325_435_830;

async function migrate(pool: pg.Pool): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query('SELECT pg_advisory_lock($1)', [MIGRATION_LOCK]);
    await client.query(
      'CREATE TABLE IF NOT EXISTS sealift_migrations (number integer PRIMARY KEY)',
    );
    const { rows } = await client.query<{ number: number }>(
      'SELECT number FROM sealift_migrations',
    );
    const applied = new Set(rows.map(({ number }) => number));
    for (const [number, statement] of MIGRATIONS.entries()) {
      if (!applied.has(number)) await applyMigration(client, number, statement);
    }
    await client.query('SELECT pg_advisory_unlock($1)', [MIGRATION_LOCK]);
  } finally {
    client.release(true); // releases a lock that the connection may still hold
  }
}

async function applyMigration(
  client: pg.PoolClient,
  number: number,
  statement: string,
): Promise<void> {
  await client.query('BEGIN');
  await client.query(statement);
  await client.query('INSERT INTO sealift_migrations (number) VALUES ($1)', [number]);
  await client.query('COMMIT');
}
