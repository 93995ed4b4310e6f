import { hexOf, type Digest } from '../base/digest.ts';
import { UsageError } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import { formatS3Address, parseS3Address, type S3Address } from '../base/s3/object.ts';
import type { S3 } from '../base/s3/s3.ts';
import { formatReadableJson } from '../base/text/json.ts';
import { digestLayout } from '../pour/index.ts';
import { sendIso } from './object/send.ts';
import {
  isAsSent,
  nameExtents,
  OBJECT_KEYS,
  objectsBeside,
  openEarlierObject,
  type EarlierObject,
  type OpenStored,
} from './object/sent.ts';
import { openStoredObject, type FoundObject, type StoredObject } from './object/stored.ts';
import { readUploadRecord, removeUploadRecord } from './object/upload.ts';
import {
  parseReport,
  recordPathOf,
  type FinishedOutput,
  type IsoPlace,
  type MediaReader,
  type Output,
  type PutReport,
  type PutWork,
  type SealedIso,
  type WantedIso,
} from './place.ts';

/*
 * An ISO as an object: its place is claimed before the build, the object gets its checksum and
 * report, and a later build recognizes it and copies bytes from it.
 */

export type ObjectOutputTools = Pick<MediaReader, 'readExtents'> & {
  readonly s3: S3;
  readonly workDir: string;
  readonly signal: AbortSignal;
  readonly warn: (message: string) => void;
};

type Target = ObjectOutputTools & {
  readonly address: S3Address;
  /** Path of the record of the upload. */
  readonly record: string;
  readonly open: OpenStored;
};

export function createObjectOutput({ output, force }: IsoPlace, tools: ObjectOutputTools): Output {
  const { s3, workDir, signal } = tools;
  const target: Target = {
    ...tools,
    address: parseS3Address(output),
    record: recordPathOf({ output, workDir }),
    open: (address) => openStoredObject(s3, address, signal),
  };
  let etag: string | undefined; // of the object that an earlier build finished
  return {
    claim: () => claimObject(target, force),
    async look(wanted) {
      const found = await findFinished(target, wanted);
      etag = found?.etag;
      return found;
    },
    put: (work) => send(target, work),
    seal: (made) => sealObject(target, { ...made, ...withoutUndefined({ etag }) }),
  };
}

const isOurs = ({ metadata }: FoundObject): boolean => metadata[OBJECT_KEYS.layout] !== undefined;

/** An object and the two next to it may be written if they do not exist, are ours, or `force` is given. */
async function claimObject({ address, open }: Target, force: boolean): Promise<void> {
  await open(address).listUploads(); // only this request reports that the bucket does not exist
  for (const one of [address, ...Object.values(objectsBeside(address))]) {
    const found = await open(one).look();
    if (!found || isOurs(found) || force) continue;
    throw new UsageError('output.exists', `${formatS3Address(one)} exists and would be replaced`, {
      expected: 'nothing, or an object that a build sent',
      found: `an object of ${found.size} bytes`,
      hint: 'name another key, or replace this object with --force',
    });
  }
}

/** Undefined unless the object has this layout and is as a build of ours left it. */
async function findFinished(
  { address, record, open }: Target,
  { layout, size }: WantedIso,
): Promise<(FinishedOutput & { readonly etag: string }) | undefined> {
  const known = await readUploadRecord(record);
  const found = await open(address).look();
  if (found?.metadata[OBJECT_KEYS.layout] !== layout || found.size !== size) return undefined;
  if (!(await isAsSent({ address, etag: found.etag }, known?.etag, open))) return undefined;
  const sealed = await readReport(open(objectsBeside(address).report), found);
  const noted = known?.layout === layout ? known.digest : undefined;
  const digest = sealed.isSealed ? sealed.digest : noted;
  const whole = digest === undefined ? { noChecksum: 'an earlier run sent it' } : { digest };
  return { etag: found.etag, isSealed: sealed.isSealed, ...whole };
}

/** A damaged report counts as missing: it is written again. */
async function readReport(
  report: StoredObject,
  { metadata, etag }: FoundObject,
): Promise<{ readonly isSealed: boolean; readonly digest?: Digest }> {
  const { metadata: told = {} } = (await report.look()) ?? {};
  const isOfIt =
    told[OBJECT_KEYS.layout] === metadata[OBJECT_KEYS.layout] && told[OBJECT_KEYS.etag] === etag;
  const content = isOfIt && parseReport(await report.read());
  return content
    ? { isSealed: true, ...withoutUndefined({ digest: content.digest }) }
    : { isSealed: false };
}

async function send(target: Target, work: PutWork): Promise<PutReport> {
  const { s3, address, record, open, signal, warn } = target;
  const { layout, lanes, openExtent, onProgress } = work;
  const found = await open(address).look();
  const earlier = found && (await openEarlier(found, target));
  const digest = digestLayout(layout);
  const {
    digest: sha256,
    noChecksum,
    ...bytes
  } = await sendIso({
    layout,
    digest,
    metadata: { [OBJECT_KEYS.layout]: digest, [OBJECT_KEYS.extents]: nameExtents(layout) },
    endpoint: s3.endpoint ?? '',
    record,
    open: (signal) => openStoredObject(s3, address, signal),
    ...withoutUndefined({ replaces: found?.etag, earlier }),
    openExtent,
    lanes,
    signal,
    onProgress: (bytes, fetched) => {
      onProgress(bytes, layout.size, fetched);
    },
    warn,
    // A checksum of other bytes must not be next to an object.
    beforeComplete: () => open(objectsBeside(address).checksum).remove(),
  });
  return { ...withoutUndefined({ digest: sha256, noChecksum }), bytes: { ...bytes, readBack: 0 } };
}

/** Opens the object that is replaced, if its bytes may be copied. */
async function openEarlier(
  found: FoundObject,
  { s3, address, record, open, readExtents, signal, warn }: Target,
): Promise<EarlierObject | undefined> {
  const noted = (await readUploadRecord(record))?.etag;
  if (await isAsSent({ address, etag: found.etag }, noted, open)) {
    return openEarlierObject(s3, { ...found, address }, { readExtents, signal });
  }
  if (isOurs(found)) {
    const name = formatS3Address(address);
    warn(`nothing shows that ${name} is as a build left it: every byte is sent again`);
  }
  return undefined;
}

/** Marks both with the object's ETag, by which a later build recognizes it. */
async function sealObject(
  { address, record, open }: Target,
  { layout, digest, report, ...known }: SealedIso & { readonly etag?: string },
): Promise<void> {
  const names = objectsBeside(address);
  const metadata = { [OBJECT_KEYS.layout]: layout };
  const etag = known.etag ?? (await readUploadRecord(record))?.etag;
  if (digest !== undefined) {
    const name = address.key.split('/').at(-1) ?? '';
    const about = { type: 'text/plain', metadata };
    await open(names.checksum).write(`${hexOf(digest)}  ${name}\n`, about);
  }
  const marked = { ...metadata, ...(etag !== undefined && { [OBJECT_KEYS.etag]: etag }) };
  const about = { type: 'application/json', metadata: marked };
  await open(names.report).write(formatReadableJson(report), about);
  await removeUploadRecord(record);
}
