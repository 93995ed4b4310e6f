import { readdir, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { sweepDirectory } from '../../base/disk/aside.ts';
import { makeDirectory, syncDirectory, writeFileAtomic } from '../../base/disk/files.ts';
import { takeLease, type LeaseOptions } from '../../base/disk/lease.ts';
import { readOwnFile } from '../../base/disk/open-file.ts';
import { DiskError, IntegrityError } from '../../base/errors.ts';
import { decodeJson, ifFaultless } from '../../shape/decode.ts';
import { COLLECTIONS, RECORDS, type Collection, type State, type StoredRecord } from './state.ts';

type Documents = Map<string, StoredRecord>;

/**
 * Opens records that are stored one per file, below a folder that only this process uses. All of them are
 * in memory as well: a file is written first, and read only at the start.
 *
 * @throws DiskError `service.data-in-use`, `file.not-regular`, `file.foreign`; IntegrityError
 * `service.record-damaged`
 */
export async function openFileState(directory: string, lease: LeaseOptions): Promise<State> {
  await makeDirectory(directory, 0o700);
  const unlock = await takeLock(directory, lease);
  try {
    await sweepDirectory(directory, { alone: true });
    const collections = await readCollections(directory);
    return createState(directory, collections, unlock);
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

async function readCollections(directory: string): Promise<Map<Collection, Documents>> {
  const collections = new Map<Collection, Documents>();
  for (const collection of COLLECTIONS) {
    const folder = join(directory, collection);
    await makeDirectory(folder, 0o700);
    await sweepDirectory(folder, { alone: true });
    const documents: Documents = new Map();
    for (const name of (await readdir(folder)).sort()) {
      if (!name.endsWith('.json')) continue;
      const path = join(folder, name);
      const record = parseRecord((await readOwnFile(path)) ?? Buffer.of(), path, collection);
      documents.set(record.id, record);
    }
    collections.set(collection, documents);
  }
  return collections;
}

function parseRecord(bytes: Uint8Array, path: string, collection: Collection): StoredRecord {
  const read = ifFaultless(decodeJson(RECORDS[collection], bytes));
  if (read && basename(path) === `${read.id}.json`) return read;
  throw new IntegrityError('service.record-damaged', `"${path}" is not a record of the service`, {
    hint: 'restore it from a backup, or remove it',
  });
}

function createState(
  directory: string,
  collections: Map<Collection, Documents>,
  unlock: () => Promise<void>,
): State {
  const documentsOf = (collection: Collection): Documents => {
    const documents = collections.get(collection);
    if (documents) return documents;
    throw new TypeError(`no collection ${collection}`);
  };
  const pathOf = (collection: Collection, id: string): string =>
    join(directory, collection, `${id}.json`);
  const write = async (collection: Collection, record: StoredRecord): Promise<void> => {
    await writeFileAtomic(pathOf(collection, record.id), JSON.stringify(record));
    documentsOf(collection).set(record.id, record);
  };
  const inOrder = createQueues();
  return {
    read: (collection, id) => Promise.resolve(documentsOf(collection).get(id)),
    list: (collection, tenant) => {
      const all = [...documentsOf(collection).values()].filter((each) => each.tenant === tenant);
      return Promise.resolve(all.sort((a, b) => (a.id < b.id ? -1 : 1)));
    },
    create: (collection, record) =>
      inOrder(record.id, async () => {
        if (documentsOf(collection).has(record.id)) throw new Error(`${record.id} already exists`);
        await write(collection, record);
      }),
    replace: (collection, record) =>
      inOrder(record.id, async () => {
        const before = documentsOf(collection).get(record.id);
        if (before?.revision !== record.revision - 1) return false;
        await write(collection, record);
        return true;
      }),
    remove: (collection, id) =>
      inOrder(id, async () => {
        if (!documentsOf(collection).has(id)) return false;
        await rm(pathOf(collection, id));
        await syncDirectory(join(directory, collection));
        return documentsOf(collection).delete(id);
      }),
    keepFirst: (name, text) =>
      inOrder(name, async () => {
        const path = join(directory, name);
        const found = await readOwnFile(path);
        if (!found) await writeFileAtomic(path, text);
        return found?.toString('utf8') ?? text;
      }),
    check: () => syncDirectory(directory),
    close: unlock,
  };
}

/** Creates queues that run the changes of a record one after the other. */
function createQueues(): <Result>(id: string, work: () => Promise<Result>) => Promise<Result> {
  const last = new Map<string, Promise<unknown>>();
  return async (id, work) => {
    const mine = (last.get(id) ?? Promise.resolve()).then(work, work);
    last.set(id, mine);
    try {
      return await mine;
    } finally {
      if (last.get(id) === mine) last.delete(id);
    }
  };
}
