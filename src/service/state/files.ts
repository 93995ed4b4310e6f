import { readdir, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { sweepDirectory } from '../../base/disk/aside.ts';
import { makeDirectory, syncDirectory, writeFileAtomic } from '../../base/disk/files.ts';
import { takeLease, type LeaseOptions } from '../../base/disk/lease.ts';
import { readOwnFile } from '../../base/disk/open-file.ts';
import { DiskError, SealiftError } from '../../base/errors.ts';
import type { Json } from '../../base/text/json.ts';
import { decodeJson, ifFaultless } from '../../shape/decode.ts';
import type { Backend, Change, RowPlace, Row } from './backend.ts';
import type { Texts } from './keys.ts';
import { openLedgerFile, type LedgerFile } from './ledger-file.ts';
import { COLLECTIONS, RECORD_FILE } from './state.ts';

/** One file for each record, and one for the ledger, below a folder that only this process uses. */
export async function openFileBackend(directory: string, lease: LeaseOptions): Promise<Backend> {
  await makeDirectory(directory, 0o700);
  const unlock = await takeLock(directory, lease);
  try {
    for (const folder of ['', ...COLLECTIONS]) {
      await makeDirectory(join(directory, folder), 0o700);
      await sweepDirectory(join(directory, folder), { alone: true });
    }
    const ledger = await openLedgerFile(join(directory, 'ledger'));
    return createBackend(directory, ledger, unlock);
  } catch (error) {
    await unlock();
    throw error;
  }
}

async function takeLock(directory: string, options: LeaseOptions): Promise<() => Promise<void>> {
  try {
    const { release } = await takeLease(join(directory, 'service.lock'), options);
    return release;
  } catch (cause) {
    if (!(cause instanceof DiskError) || cause.code !== 'output.locked') throw cause;
    throw new DiskError('service.data-in-use', `another process uses "${directory}"`, {
      hint: 'stop it, name another --data, or use --database for several processes',
    });
  }
}

function createBackend(
  directory: string,
  ledger: LedgerFile,
  unlock: () => Promise<void>,
): Backend {
  const pathOf = ({ collection, id }: RowPlace): string =>
    join(directory, collection, `${id}.json`);
  const readRow = async (place: RowPlace): Promise<Row | undefined> =>
    parseRow(place.id, await readIfOurs(pathOf(place)));
  const inOrder = createQueue();
  const carryOut = async ({ put = [], gone = [] }: Change): Promise<void> => {
    for (const place of put) await writeFileAtomic(pathOf(place), formatRow(place.id, place.row));
    for (const place of gone) {
      await rm(pathOf(place), { force: true });
      await syncDirectory(join(directory, place.collection));
    }
  };
  return {
    ...createTexts(directory, inOrder),
    async look(since, place) {
      const row = place && (await readRow(place));
      return { ...ledger.linesFrom(since), ...(row && { row }) };
    },
    async readMany(collection, ids) {
      const rows = new Map<string, Row>();
      for (const id of ids) {
        const row = await readRow({ collection, id });
        if (row) rows.set(id, row);
      }
      return rows;
    },
    change: (since, plan) =>
      inOrder(async () => {
        const change = plan(ledger.linesFrom(since()).lines);
        if (change?.isBase) await ledger.replace(change.lines);
        else if (change) await makeChange(ledger, change, { carryOut, readRow });
      }),
    async *scan() {
      for (const collection of COLLECTIONS) {
        for (const name of (await readdir(join(directory, collection))).sort()) {
          if (!name.endsWith('.json')) continue;
          const place = { collection, id: basename(name, '.json') };
          yield { ...place, row: await readRow(place) };
        }
      }
    },
    check: () => syncDirectory(directory),
    async close() {
      await ledger.close();
      await unlock();
    },
  };
}

type RowTools = {
  readonly carryOut: (change: Change) => Promise<void>;
  readonly readRow: (place: RowPlace) => Promise<Row | undefined>;
};

/** The ledger is written first. If the rows cannot be, it is as before. */
async function makeChange(
  ledger: LedgerFile,
  change: Change,
  { carryOut, readRow }: RowTools,
): Promise<void> {
  if (change.lines.length > 0) await ledger.append(change.lines);
  try {
    await carryOut(change);
  } catch (error) {
    if (!(await isCarriedOut(change, readRow))) {
      await ledger.takeBack();
      throw error;
    }
  }
  if (change.lines.length > 0) ledger.settle();
}

/** True if the rows are there although their durability is in doubt. */
async function isCarriedOut(
  { put = [], gone = [] }: Change,
  readRow: RowTools['readRow'],
): Promise<boolean> {
  for (const place of put) {
    if ((await readRow(place))?.body !== place.row.body) return false;
  }
  for (const place of gone) {
    if (await readRow(place)) return false;
  }
  return true;
}

function createTexts(directory: string, inOrder: Queue): Texts {
  const readText = async (name: string): Promise<string | undefined> =>
    (await readOwnFile(join(directory, name)))?.toString('utf8');
  return {
    get: readText,
    keepFirst: (name, text) =>
      inOrder(async () => {
        const found = await readText(name);
        if (found === undefined) await writeFileAtomic(join(directory, name), text);
        return found ?? text;
      }),
    swap: (name, before, after) =>
      inOrder(async () => {
        if ((await readText(name)) !== before) return false;
        await writeFileAtomic(join(directory, name), after);
        return true;
      }),
    list: async (prefix) =>
      (await readdir(directory)).filter((name) => name.startsWith(prefix)).sort(),
  };
}

/** Bytes of a file; undefined for links, pipes, folders, and files of other users. */
async function readIfOurs(path: string): Promise<Uint8Array | undefined> {
  try {
    return await readOwnFile(path);
  } catch (error) {
    if (error instanceof SealiftError) return undefined;
    throw error;
  }
}

const formatRow = (id: string, { body, ...head }: Row): string =>
  JSON.stringify({ id, ...head, body: JSON.parse(body) as Json });

/** Undefined if the bytes are not a record of this id. */
function parseRow(id: string, bytes: Uint8Array | undefined): Row | undefined {
  const read = bytes && ifFaultless(decodeJson(RECORD_FILE, bytes));
  if (read?.id !== id) return undefined;
  const { tenant, revision, parent, body } = read;
  return {
    tenant,
    revision,
    ...(parent !== undefined && { parent }),
    body: JSON.stringify(body),
  };
}

/** Runs one piece of work after the other. */
type Queue = <Result>(work: () => Promise<Result>) => Promise<Result>;

function createQueue(): Queue {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const mine = last.then(work, work);
    last = mine.catch(() => undefined);
    return mine;
  };
}
