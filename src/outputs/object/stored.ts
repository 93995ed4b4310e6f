import { RegistryError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { formatS3Address, type S3Address } from '../../base/s3/object.ts';
import type { S3, S3Call } from '../../base/s3/s3.ts';

/** Description of an object by the service. */
export type FoundObject = {
  readonly size: number;
  readonly etag: string;
  /** Metadata that the maker of the object gave it, by names in lower case. */
  readonly metadata: Readonly<Record<string, string>>;
};

export type ListedPart = { readonly size: number; readonly etag: string };

type PartOf = { readonly upload: string; readonly number: number };
type Metadata = FoundObject['metadata'];

/** The requests that concern one object. Each throws the errors of `S3.call`. */
export type StoredObject = {
  /** `s3://bucket/key` */
  readonly name: string;
  /** Returns undefined if there is no object. */
  readonly look: () => Promise<FoundObject | undefined>;
  readonly read: () => Promise<Uint8Array>;
  readonly write: (text: string, about: { type: string; metadata: Metadata }) => Promise<void>;
  readonly remove: () => Promise<void>;
  /** Ids of unfinished uploads; undefined if listing them is not permitted. */
  readonly listUploads: () => Promise<readonly string[] | undefined>;
  readonly beginUpload: (metadata: Metadata) => Promise<string>;
  /** Parts by number; undefined if the service does not know the upload. */
  readonly listParts: (upload: string) => Promise<ReadonlyMap<number, ListedPart> | undefined>;
  /** @returns its ETag */
  readonly sendPart: (part: PartOf, bytes: Uint8Array) => Promise<string>;
  /** Copies bytes of the existing object, if it has the ETag. @returns the ETag of the part */
  readonly copyPart: (part: PartOf, range: Copied) => Promise<string>;
  /** @returns the ETag of the object, if the service reports it */
  readonly complete: (upload: string, parts: Completed) => Promise<string | undefined>;
  readonly abort: (upload: string) => Promise<void>;
};

type Copied = { readonly offset: number; readonly size: number; readonly etag: string };

type Completed = {
  readonly etags: readonly string[];
  /** ETag of the object that it may replace. */
  readonly replaces: string | undefined;
};

/** Milliseconds: a part takes long on a slow line, and a service takes long to copy or put together. */
const LONG = 10 * 60_000;

export function openStoredObject(s3: S3, address: S3Address, signal: AbortSignal): StoredObject {
  const name = formatS3Address(address);
  const at = { Bucket: address.bucket, Key: address.key };
  const ask = <Output>(operation: (call: S3Call) => Promise<Output>, timeout?: number) =>
    s3.call(operation, { about: name, signal, ...withoutUndefined({ timeout }) });
  return {
    name,
    look: () => look(ask, at),
    read: () =>
      ask(async ({ sdk, client, options }) => {
        const { Body: body } = await client.send(new sdk.GetObjectCommand(at), options);
        return (await body?.transformToByteArray()) ?? new Uint8Array();
      }),
    async write(text, { type, metadata }) {
      const object = { ...at, Body: text, ContentType: type, Metadata: metadata };
      await ask(({ sdk, client, options }) =>
        client.send(new sdk.PutObjectCommand(object), options),
      );
    },
    remove: () =>
      orNothing(() =>
        ask(({ sdk, client, options }) => client.send(new sdk.DeleteObjectCommand(at), options)),
      ),
    ...openUploads(ask, at),
  };
}

const look = (ask: Ask, at: At): Promise<FoundObject | undefined> =>
  orAbsent(async () => {
    const found = await ask(({ sdk, client, options }) =>
      client.send(new sdk.HeadObjectCommand(at), options),
    );
    const { ContentLength: size = 0, ETag: etag = '', Metadata: metadata = {} } = found;
    return { size, etag: bareEtag(etag), metadata };
  });

type Ask = <Output>(
  operation: (call: S3Call) => Promise<Output>,
  timeout?: number,
) => Promise<Output>;
type At = { readonly Bucket: string; readonly Key: string };

type Uploads = Omit<StoredObject, 'name' | 'look' | 'read' | 'write' | 'remove'>;

function openUploads(ask: Ask, at: At): Uploads {
  return {
    listUploads: () => listUploads(ask, at),
    async beginUpload(metadata) {
      const wanted = { ...at, ContentType: 'application/x-iso9660-image', Metadata: metadata };
      const { UploadId: upload } = await ask(({ sdk, client, options }) =>
        client.send(new sdk.CreateMultipartUploadCommand(wanted), options),
      );
      return upload ?? '';
    },
    listParts: (upload) => orAbsent(() => listParts(ask, { ...at, UploadId: upload })),
    async sendPart(part, bytes) {
      const { ETag: etag = '' } = await ask(
        ({ sdk, client, options }) =>
          client.send(new sdk.UploadPartCommand({ ...partOf(at, part), Body: bytes }), options),
        LONG,
      );
      return bareEtag(etag);
    },
    ...openConditional(ask, at),
    abort: (upload) =>
      orNothing(() =>
        ask(({ sdk, client, options }) =>
          client.send(new sdk.AbortMultipartUploadCommand({ ...at, UploadId: upload }), options),
        ),
      ),
  };
}

const partOf = (at: At, { upload, number }: PartOf) => ({
  ...at,
  UploadId: upload,
  PartNumber: number,
});

/** Requests that may be made only while the object is the one that was looked at. */
function openConditional(ask: Ask, at: At): Pick<StoredObject, 'copyPart' | 'complete'> {
  return {
    async copyPart(part, { offset, size, etag }) {
      const from = {
        ...partOf(at, part),
        CopySource: `${at.Bucket}/${at.Key.split('/').map(encodeURIComponent).join('/')}`,
        CopySourceRange: `bytes=${offset}-${offset + size - 1}`,
      };
      const copy = async (condition: { readonly CopySourceIfMatch?: string }): Promise<string> => {
        const { CopyPartResult: result } = await ask(
          ({ sdk, client, options }) =>
            client.send(new sdk.UploadPartCopyCommand({ ...from, ...condition }), options),
          LONG,
        );
        return bareEtag(result?.ETag ?? '');
      };
      return unlessRefused(
        () => copy({ CopySourceIfMatch: `"${etag}"` }),
        async () => {
          await requireSame(ask, at, etag);
          const copied = await copy({});
          await requireSame(ask, at, etag);
          return copied;
        },
      );
    },
    async complete(upload, { etags, replaces }) {
      const Parts = etags.map((etag, index) => ({ PartNumber: index + 1, ETag: `"${etag}"` }));
      const wanted = { ...at, UploadId: upload, MultipartUpload: { Parts } };
      const complete = (condition: { readonly IfNoneMatch?: string; readonly IfMatch?: string }) =>
        ask(({ sdk, client, options }) => {
          const command = new sdk.CompleteMultipartUploadCommand({ ...wanted, ...condition });
          return client.send(command, options);
        }, LONG);
      const condition =
        replaces === undefined ? { IfNoneMatch: '*' } : { IfMatch: `"${replaces}"` };
      const { ETag: etag } = await unlessRefused(
        () => complete(condition),
        async () => {
          if (replaces !== undefined) await requireSame(ask, at, replaces);
          return complete({});
        },
        replaces !== undefined,
      );
      return etag && bareEtag(etag);
    },
  };
}

/**
 * Asks with a condition, and without one if the service does not support it: it answers 501, or denies the
 * ETag that it reports itself, as Swift does for an object that was sent in parts.
 */
async function unlessRefused<Output>(
  conditional: () => Promise<Output>,
  checked: () => Promise<Output>,
  isOfEtag = true,
): Promise<Output> {
  try {
    return await conditional();
  } catch (error) {
    if (!(error instanceof RegistryError)) throw error;
    if (error.found !== '501' && !(isOfEtag && error.found === '412')) throw error;
    return checked();
  }
}

async function requireSame(ask: Ask, at: At, expected: string): Promise<void> {
  const found = (await look(ask, at))?.etag;
  if (found === expected) return;
  const name = formatS3Address({ bucket: at.Bucket, key: at.Key });
  throw objectChanged(name, { expected, found: found ?? 'no object' });
}

export const objectChanged = (
  name: string,
  found: { readonly expected?: string; readonly found?: string } = {},
): RegistryError =>
  new RegistryError('object-store.changed', `${name} changed while the ISO was sent`, {
    ...found,
    hint: 'run again when nobody else writes to it',
  });

async function listParts(ask: Ask, upload: At & { readonly UploadId: string }) {
  const listed = new Map<number, ListedPart>();
  for (let marker: string | undefined = '0'; marker !== undefined;) {
    const PartNumberMarker: string = marker;
    const page = await ask(({ sdk, client, options }) =>
      client.send(new sdk.ListPartsCommand({ ...upload, PartNumberMarker }), options),
    );
    for (const { PartNumber: number = 0, Size: size = 0, ETag: etag = '' } of page.Parts ?? []) {
      listed.set(number, { size, etag: bareEtag(etag) });
    }
    marker = page.IsTruncated === true ? page.NextPartNumberMarker : undefined;
  }
  return listed;
}

/** Listing uploads needs a separate permission, and not every service can do it. */
async function listUploads(ask: Ask, { Bucket, Key }: At): Promise<readonly string[] | undefined> {
  try {
    const { Uploads: uploads = [] } = await ask(({ sdk, client, options }) =>
      client.send(new sdk.ListMultipartUploadsCommand({ Bucket, Prefix: Key }), options),
    );
    return uploads.flatMap(({ Key: key, UploadId: id }) =>
      key === Key && id !== undefined ? [id] : [],
    );
  } catch (error) {
    if (error instanceof RegistryError && REFUSALS.has(error.code)) return undefined;
    throw error;
  }
}

const REFUSALS = new Set(['object-store.forbidden', 'object-store.answer']);

/** ETags are compared without the quotes that some services leave out. */
export const bareEtag = (etag: string): string => etag.replaceAll('"', '');

const ABSENT = new Set(['object-store.not-found', 'object-store.upload-lost']);

async function orAbsent<Output>(work: () => Promise<Output>): Promise<Output | undefined> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof RegistryError && ABSENT.has(error.code)) return undefined;
    throw error;
  }
}

const orNothing = async (work: () => Promise<unknown>): Promise<void> => {
  await orAbsent(work);
};
