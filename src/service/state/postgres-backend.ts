import type pg from 'pg';
import type { Backend, Change, RowPlace, Row } from './backend.ts';
import type { Texts } from './keys.ts';
import { rolledBack, type LedgerLine } from './ledger.ts';

/* Owns the statements of records and their ledger in PostgreSQL. */

/** Runs queries; a failure of the connection becomes a refusal. */
type Guard = <Result>(work: () => Promise<Result>) => Promise<Result>;

type Query = <R extends pg.QueryResultRow>(
  text: string,
  values: unknown[],
) => Promise<pg.QueryResult<R>>;

type StoredLine = readonly [number, string, string];

/** Columns of a row; they are null if there is no such row. */
type Columns = {
  readonly tenant: string | null;
  readonly revision: string;
  readonly parent: string | null;
  readonly body: string;
};

const RECORDS = 'sealift_sealed_records';
const COLUMNS = 'r.tenant, r.revision, r.parent, r.body';

/** One statement sees one moment, so the row is that of the lines. */
const LOOK = `
  SELECT (SELECT json_agg(json_build_array(seq, text, mac) ORDER BY seq)
          FROM sealift_ledger WHERE seq >= $1) AS lines, ${COLUMNS}
  FROM (SELECT 1) AS one LEFT JOIN ${RECORDS} r ON r.collection = $2 AND r.id = $3::uuid`;

/** Arbitrary lock number: changes of all replicas are made one after the other. */
const CHANGE_LOCK = 7_325_435_831;

/** Rows of a statement that lists all of them. */
const BATCH = 500;

export function createPostgresBackend(pool: pg.Pool, guard: Guard): Backend {
  const query: Query = (text, values) => guard(() => pool.query(text, values));
  let last: Promise<unknown> = Promise.resolve();
  return {
    ...createTexts(query),
    async look(since, place) {
      const values = [since, place?.collection ?? null, place?.id ?? null];
      const { rows } = await query<Columns & { lines: StoredLine[] | null }>(LOOK, values);
      const [found] = rows;
      const lines = toLines(since, found?.lines ?? []);
      const row = found && toRow(found);
      return { lines, unsettled: 0, ...(row && { row }) };
    },
    async readMany(collection, ids) {
      const { rows } = await query<Columns & { id: string }>(
        `SELECT r.id, ${COLUMNS} FROM ${RECORDS} r WHERE collection = $1 AND id = ANY($2::uuid[])`,
        [collection, ids],
      );
      return new Map(rows.flatMap((each) => pair(each.id, toRow(each))));
    },
    change(since, plan) {
      // One at a time holds a connection while it waits for other replicas.
      const work = (): Promise<void> => guard(() => changeOnce(pool, since, plan));
      const mine = last.then(work, work);
      last = mine.catch(() => undefined);
      return mine;
    },
    async *scan() {
      for (let after: RowPlace | undefined, isMore = true; isMore;) {
        const { rows } = await query<Columns & RowPlace>(
          `SELECT r.collection, r.id, ${COLUMNS} FROM ${RECORDS} r
           WHERE (collection, id) > ($1, $2::uuid) ORDER BY collection, id LIMIT ${BATCH}`,
          [after?.collection ?? '', after?.id ?? '00000000-0000-0000-0000-000000000000'],
        );
        for (const each of rows) {
          const { collection, id } = each;
          after = { collection, id };
          yield { collection, id, row: toRow(each) };
        }
        isMore = rows.length === BATCH;
      }
    },
    async check() {
      await query('SELECT 1', []);
    },
    close: () => pool.end(),
  };
}

function createTexts(query: Query): Texts {
  const get: Texts['get'] = async (name) => {
    const found = await query<{ text: string }>('SELECT text FROM sealift_texts WHERE name = $1', [
      name,
    ]);
    return found.rows[0]?.text;
  };
  return {
    get,
    async keepFirst(name, text) {
      await query('INSERT INTO sealift_texts VALUES ($1, $2) ON CONFLICT DO NOTHING', [name, text]);
      return (await get(name)) ?? text;
    },
    async swap(name, before, after) {
      const { rowCount } = await query(
        'UPDATE sealift_texts SET text = $3 WHERE name = $1 AND text = $2',
        [name, before, after],
      );
      return rowCount === 1;
    },
    async list(prefix) {
      const { rows } = await query<{ name: string }>(
        'SELECT name FROM sealift_texts WHERE starts_with(name, $1) ORDER BY name',
        [prefix],
      );
      return rows.map(({ name }) => name);
    },
  };
}

async function changeOnce(
  pool: pg.Pool,
  since: () => number,
  plan: (lines: readonly LedgerLine[]) => Change | undefined,
): Promise<void> {
  const client = await pool.connect();
  let isDone = false;
  try {
    await client.query('BEGIN');
    await client.query('SELECT pg_advisory_xact_lock($1)', [CHANGE_LOCK]);
    const from = since();
    const { rows } = await client.query<{ seq: string; text: string; mac: string }>(
      'SELECT seq, text, mac FROM sealift_ledger WHERE seq >= $1 ORDER BY seq',
      [from],
    );
    const stored = rows.map(({ seq, text, mac }): StoredLine => [Number(seq), text, mac]);
    const change = plan(toLines(from, stored));
    if (change) await applyChange(client, change);
    await client.query('COMMIT');
    isDone = true;
  } finally {
    client.release(!isDone); // a connection that is closed rolls back
  }
}

async function applyChange(
  client: pg.PoolClient,
  { lines, isBase = false, put = [], gone = [] }: Change,
): Promise<void> {
  if (isBase) await client.query('DELETE FROM sealift_ledger');
  await client.query(
    'INSERT INTO sealift_ledger SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[])',
    [lines.map(({ seq }) => seq), lines.map(({ text }) => text), lines.map(({ mac }) => mac)],
  );
  for (const { collection, id, row } of put) {
    await client.query(
      `INSERT INTO ${RECORDS} (collection, id, tenant, revision, parent, body)
       VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (collection, id) DO UPDATE
       SET tenant = $3, revision = $4, parent = $5, body = $6`,
      [collection, id, row.tenant, row.revision, row.parent ?? null, row.body],
    );
  }
  for (const { collection, id } of gone) {
    await client.query(`DELETE FROM ${RECORDS} WHERE collection = $1 AND id = $2`, [
      collection,
      id,
    ]);
  }
}

function toLines(since: number, stored: readonly StoredLine[]): readonly LedgerLine[] {
  if (since > 0 && stored.length === 0) throw rolledBack(since);
  return stored.map(([seq, text, mac]) => ({ seq, text, mac }));
}

function toRow({ tenant, revision, parent, body }: Columns): Row | undefined {
  if (tenant === null) return undefined;
  return { tenant, revision: Number(revision), ...(parent !== null && { parent }), body };
}

const pair = <Value>(key: string, value: Value | undefined): readonly [string, Value][] =>
  value === undefined ? [] : [[key, value]];
