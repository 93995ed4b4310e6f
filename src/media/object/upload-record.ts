import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isDigest, type Digest } from '../../base/digest.ts';
import { makeDirectory, writeFileAtomic } from '../../base/disk/files.ts';
import { openOwnFile, readOwnFile } from '../../base/disk/open-file.ts';
import { explaining } from '../../base/disk/disk-errors.ts';
import { isObject, withoutUndefined } from '../../base/lists.ts';
import { formatCanonicalJson, type Json } from '../../base/text/json.ts';

/** Which upload it is, and of what. */
export type UploadHeader = {
  readonly format: 1;
  /** `s3://bucket/key`, and the address of the service. */
  readonly object: string;
  readonly endpoint: string;
  /** What the service calls the upload. */
  readonly upload: string;
  readonly layout: Digest;
  /** Of the plan of parts. */
  readonly plan: Digest;
};

/**
 * What an upload has achieved, one JSON text a line, in the work directory:
 *
 *     {"format":1,...}             the header
 *     [<group>,["<ETag>",...]]     all spans of the group were verified, all its parts are there
 *     {"digest":"sha256:..."}      of the whole ISO, where every byte passed; before the upload is completed
 *     {"etag":"..."}               of the object: as it should be, before the upload is completed; then as it is
 *
 * A part counts only where the service still lists it with its ETag. A torn last line is ignored.
 */
export type UploadRecord = UploadHeader & {
  readonly groups: ReadonlyMap<number, readonly string[]>;
  readonly digest?: Digest;
  readonly etag?: string;
};

/** undefined where nothing is there that was written by this user and program. */
export async function readUploadRecord(path: string): Promise<UploadRecord | undefined> {
  const text = (await explaining(path, () => readOwnFile(path)))?.toString('utf8') ?? '';
  const [header, ...lines] = text
    .slice(0, text.lastIndexOf('\n') + 1)
    .split('\n')
    .slice(0, -1)
    .map(parse);
  if (!isHeader(header)) return undefined;
  const groups = new Map<number, readonly string[]>();
  for (const line of lines) {
    if (Array.isArray(line)) groups.set(Number(line[0]), line[1] as readonly string[]);
  }
  const digest = lastText(lines, 'digest');
  const etag = lastText(lines, 'etag');
  const isKnown = digest !== undefined && isDigest(digest);
  return { ...header, groups, ...(isKnown && { digest }), ...withoutUndefined({ etag }) };
}

const lastText = (lines: readonly unknown[], key: string): string | undefined =>
  lines
    .filter(isObject)
    .map((line) => line[key])
    .findLast((value) => typeof value === 'string');

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

const TEXTS = ['object', 'endpoint', 'upload', 'layout', 'plan'] as const;

const isHeader = (value: unknown): value is UploadHeader =>
  isObject(value) && value['format'] === 1 && TEXTS.every((key) => typeof value[key] === 'string');

export type OpenRecord = {
  readonly noteGroup: (group: number, etags: readonly string[]) => Promise<void>;
  readonly noteDigest: (digest: Digest) => Promise<void>;
  readonly noteEtag: (etag: string) => Promise<void>;
  readonly close: () => Promise<void>;
};

/** Begins a record, or continues the one that is there. @throws DiskError of the file system */
export async function openUploadRecord(
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

export const removeUploadRecord = (path: string): Promise<void> => rm(path, { force: true });
