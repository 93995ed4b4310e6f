import { createHash } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Digest } from '../../base/digest.ts';
import { explaining } from '../../base/disk/disk-errors.ts';
import { makeDirectory, writeFileAtomic } from '../../base/disk/files.ts';
import { openOwnFile, readOwnFile } from '../../base/disk/open-file.ts';
import { IntegrityError, SealiftError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { formatCanonicalJson, type Json, digestCanonicalJson } from '../../base/text/json.ts';
import { decodeJson, ifFaultless } from '../../shape/decode.ts';
import {
  COUNT,
  DIGEST,
  LEFT_OUT,
  list,
  oneOf,
  partial,
  record,
  TEXT,
  tuple,
  type Shape,
} from '../../shape/shape.ts';
import { OBJECT_KEYS, type SendOptions } from './sent.ts';
import { partsOf, type PartGroup, type PartPlan } from './parts.ts';
import { objectChanged, type FoundObject, type ListedPart, type StoredObject } from './stored.ts';

export type UploadHeader = {
  readonly format: 1;
  /** `s3://bucket/key`, and the address of the service. */
  readonly object: string;
  readonly endpoint: string;
  readonly upload: string;
  readonly layout: Digest;
  /** Digest of the plan of parts. */
  readonly plan: Digest;
};

/**
 * Progress of an upload, one JSON text a line, in the work directory:
 *
 *     {"format":1,...}             the header
 *     [<group>,["<ETag>",...]]     all spans of the group were verified, all its parts exist
 *     {"digest":"sha256:..."}      digest of the whole ISO, if every byte passed; before the upload is completed
 *     {"etag":"..."}               of the object: the expected one, before the upload is completed; then the real one
 *
 * A part counts only if the service still lists it with its ETag. A torn last line is ignored.
 */
export type UploadRecord = UploadHeader & {
  readonly groups: ReadonlyMap<number, readonly string[]>;
  readonly digest?: Digest;
  readonly etag?: string;
};

export type OpenRecord = {
  readonly noteGroup: (group: number, etags: readonly string[]) => Promise<void>;
  readonly noteDigest: (digest: Digest) => Promise<void>;
  readonly noteEtag: (etag: string) => Promise<void>;
  readonly close: () => Promise<void>;
};

/** An upload that takes parts. */
export type Upload = {
  readonly id: string;
  readonly object: StoredObject;
  /** Groups that an earlier run finished, with the ETags of their parts. */
  readonly done: ReadonlyMap<number, readonly string[]>;
  /** Parts that the service has, by number; a part that is sent again is removed. */
  readonly listed: Map<number, ListedPart>;
  readonly record: OpenRecord;
};

const HEADER: Shape<UploadHeader> = record(
  {
    format: oneOf(1),
    object: TEXT,
    endpoint: TEXT,
    upload: TEXT,
    layout: DIGEST,
    plan: DIGEST,
  },
  LEFT_OUT,
);
const GROUP = tuple(COUNT, list(TEXT));
const NOTE = partial({ digest: DIGEST, etag: TEXT }, LEFT_OUT);

/** Returns undefined if there is no record written by this user and program. */
export async function readUploadRecord(path: string): Promise<UploadRecord | undefined> {
  const text = (await explaining(path, () => readOwnFile(path)))?.toString('utf8') ?? '';
  const [first = '', ...lines] = text.slice(0, text.lastIndexOf('\n') + 1).split('\n');
  const header = ifFaultless(decodeJson(HEADER, first));
  if (!header) return undefined;
  const notes = readLines(NOTE, lines);
  const digest = notes.findLast((note) => note.digest !== undefined)?.digest;
  const etag = notes.findLast((note) => note.etag !== undefined)?.etag;
  const groups = new Map(readLines(GROUP, lines));
  return { ...header, groups, ...withoutUndefined({ digest, etag }) };
}

const readLines = <T>(shape: Shape<T>, lines: readonly string[]): readonly T[] =>
  lines.flatMap((line) => {
    const read = ifFaultless(decodeJson(shape, line));
    return read === undefined ? [] : [read];
  });

export const removeUploadRecord = (path: string): Promise<void> => rm(path, { force: true });

/** Continues the upload of an earlier run only if it has the same parts. */
export async function beginUpload(options: SendOptions, plan: PartPlan): Promise<Upload> {
  const { endpoint, digest: layout, record: path, signal, warn } = options;
  const object = options.open(signal);
  const header = {
    format: 1,
    object: object.name,
    endpoint,
    layout,
    plan: namePlan(options, plan),
  } as const;
  const held = await readUploadRecord(path);
  const listed = held && (await findParts(held, { header, object, warn }));
  await nameStrangers(object, { own: held?.upload, warn });
  const id = held && listed ? held.upload : await object.beginUpload(options.metadata);
  const record = await openUploadRecord(path, {
    header: { ...header, upload: id },
    continues: listed !== undefined,
  });
  // Until this upload is complete, the record states that the existing object may be copied from.
  if (options.earlier) await record.noteEtag(options.earlier.etag);
  const done = [...(listed ? held.groups : [])].filter(([index, etags]) =>
    isThere(plan.groups[index], etags, listed),
  );
  return { id, object, record, done: new Map(done), listed: new Map(listed) };
}

/** Two plans are the same when every part of theirs is made of the same bytes. */
const namePlan = ({ replaces, digest }: SendOptions, { groups }: PartPlan) =>
  digestCanonicalJson({
    layout: digest,
    replaces: replaces ?? null,
    groups: groups.map((group) => [
      group.kind === 'copy' ? group.from : null,
      ...partsOf(group).map(({ size }) => size),
    ]),
  });

type Finding = Pick<SendOptions, 'warn'> & {
  readonly header: Omit<UploadHeader, 'upload'>;
  readonly object: StoredObject;
};

/** The parts of the upload of a record; undefined if the upload cannot be continued. */
async function findParts(
  held: UploadRecord,
  { header, object, warn }: Finding,
): Promise<ReadonlyMap<number, ListedPart> | undefined> {
  const { object: name, upload } = held;
  if (name !== header.object || held.endpoint !== header.endpoint) {
    warn(`upload ${upload} of ${name} at ${held.endpoint} is unfinished, and nothing continues it`);
    return undefined;
  }
  if (held.layout !== header.layout || held.plan !== header.plan) {
    await object.abort(upload);
    warn(`upload ${upload} of ${name} has other bytes: it is aborted, and a new one begins`);
    return undefined;
  }
  const listed = await object.listParts(upload);
  if (!listed) warn(`the service no longer has upload ${upload} of ${name}: a new one begins`);
  return listed;
}

/** Warns of uploads by others or by a killed run: they take up space until they are aborted. */
async function nameStrangers(
  object: StoredObject,
  { own, warn }: { readonly own: string | undefined } & Pick<SendOptions, 'warn'>,
): Promise<void> {
  for (const id of (await object.listUploads()) ?? []) {
    if (id === own) continue;
    warn(
      `upload ${id} of ${object.name} is unfinished and has no record here: abort it if it is not needed`,
    );
  }
}

/** Begins a record, or continues the one that exists. */
async function openUploadRecord(
  path: string,
  { header, continues }: { readonly header: UploadHeader; readonly continues: boolean },
): Promise<OpenRecord> {
  if (!continues) {
    await makeDirectory(dirname(path));
    await writeFileAtomic(path, `${formatCanonicalJson(header)}\n`, 0o600);
  }
  const file = await explaining(path, () => openOwnFile(path, { append: true }));
  // Lines must not interleave.
  let last: Promise<unknown> = Promise.resolve();
  const append = async (line: Json): Promise<void> => {
    const write = last.then(() =>
      explaining(path, () => file.appendFile(`${formatCanonicalJson(line)}\n`)),
    );
    last = write.catch(() => undefined);
    await write;
  };
  return {
    noteGroup: (group, etags) => append([group, etags]),
    noteDigest: (digest) => append({ digest }),
    noteEtag: (etag) => append({ etag }),
    async close() {
      await last;
      await file.close();
    },
  };
}

const isThere = (
  group: PartGroup | undefined,
  etags: readonly string[],
  listed: ReadonlyMap<number, ListedPart> | undefined,
): boolean =>
  group !== undefined &&
  partsOf(group).length === etags.length &&
  partsOf(group).every(({ number, size }, index) => {
    const part = listed?.get(number);
    return part?.etag === etags[index] && part?.size === size;
  });

/** The record has the ETag of the result, even if the process ends before the service has answered. */
export async function completeUpload(
  { replaces, digest, layout }: SendOptions,
  { object, id, record }: Upload,
  etags: readonly string[],
): Promise<void> {
  const before = await object.look();
  if (before?.etag !== replaces) throw objectChanged(object.name);
  const expected = etagOf(etags);
  if (expected !== undefined) await record.noteEtag(expected);
  const completed = await completeOrFail(object, { id, etags, replaces });
  const found = await object.look();
  /** The object that already existed may have had the same bytes in the same parts. */
  const isWhatWasSent = ({ etag }: FoundObject): boolean =>
    completed.etag === undefined ? etag !== replaces || etag === expected : etag === completed.etag;
  const isSent = found?.metadata[OBJECT_KEYS.layout] === digest && isWhatWasSent(found);
  if (!isSent) throw completed.failure ?? objectChanged(object.name);
  await record.noteEtag(found.etag);
  if (found.size !== layout.size) throw wrongSize(object.name, layout.size, found.size);
}

const wrongSize = (name: string, expected: number, found: number): IntegrityError =>
  new IntegrityError(
    'object-store.wrong-size',
    `${name} should have ${expected} bytes, but has ${found}`,
    { expected: String(expected), found: String(found), hint: 'remove it and build again' },
  );

/** The ETag that S3 makes of the MD5s of parts, unless the service has its own keys. Undefined under FIPS. */
function etagOf(parts: readonly string[]): string | undefined {
  try {
    const hash = createHash('md5').update(Buffer.from(parts.join(''), 'hex'));
    return `${hash.digest('hex')}-${parts.length}`;
  } catch {
    return undefined;
  }
}

type Completed = { readonly etag?: string; readonly failure?: SealiftError };

/** The answer may be lost although the object is complete: looking at the object decides. */
async function completeOrFail(
  object: StoredObject,
  { id, ...parts }: { id: string; etags: readonly string[]; replaces: string | undefined },
): Promise<Completed> {
  try {
    return withoutUndefined({ etag: await object.complete(id, parts) });
  } catch (error) {
    if (error instanceof SealiftError) return { failure: error };
    throw error;
  }
}
