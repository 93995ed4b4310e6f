import { RegistryError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/members.ts';
import { formatS3Address, type S3Address } from '../../base/s3/address.ts';
import type { S3, S3Call } from '../../base/s3/s3.ts';

/** What the service says of an object. */
export type FoundObject = {
  readonly size: number;
  readonly etag: string;
  /** What its maker said of it, by names in small letters. */
  readonly metadata: Readonly<Record<string, string>>;
};

export type ListedPart = { readonly size: number; readonly etag: string };

type PartOf = { readonly upload: string; readonly number: number };
type Metadata = FoundObject['metadata'];

/** The requests that concern one object. Each throws what `S3.call` throws. */
export type StoredObject = {
  /** `s3://bucket/key` */
  readonly name: string;
  /** undefined where there is none. */
  readonly look: () => Promise<FoundObject | undefined>;
  readonly read: () => Promise<Uint8Array>;
  readonly write: (text: string, about: { type: string; metadata: Metadata }) => Promise<void>;
  readonly remove: () => Promise<void>;
  /** Ids of unfinished uploads; undefined where nobody may list them. */
  readonly listUploads: () => Promise<readonly string[] | undefined>;
  readonly beginUpload: (metadata: Metadata) => Promise<string>;
  /** By number; undefined where the service does not know the upload. */
  readonly listParts: (upload: string) => Promise<ReadonlyMap<number, ListedPart> | undefined>;
  /** @returns its ETag */
  readonly sendPart: (part: PartOf, bytes: Uint8Array) => Promise<string>;
  /** Copies bytes of the object that is there. @returns the ETag of the part */
  readonly copyPart: (part: PartOf, range: { offset: number; size: number }) => Promise<string>;
  readonly complete: (upload: string, parts: Completed) => Promise<void>;
  readonly abort: (upload: string) => Promise<void>;
};

type Completed = {
  readonly etags: readonly string[];
  /** Whether it may take the place of another object. */
  readonly replaces: boolean;
};

/** Milliseconds: a part may take a slow line, and a service long to copy or put together. */
const LONG = 10 * 60_000;

export function openStoredObject(s3: S3, address: S3Address, signal: AbortSignal): StoredObject {
  const name = formatS3Address(address);
  const at = { Bucket: address.bucket, Key: address.key };
  const ask = <Output>(operation: (call: S3Call) => Promise<Output>, timeout?: number) =>
    s3.call(operation, { about: name, signal, ...withoutUndefined({ timeout }) });
  return {
    name,
    look: () =>
      orAbsent(async () => {
        const found = await ask(({ sdk, client, options }) =>
          client.send(new sdk.HeadObjectCommand(at), options),
        );
        const { ContentLength: size = 0, ETag: etag = '', Metadata: metadata = {} } = found;
        return { size, etag: bare(etag), metadata };
      }),
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

type Ask = <Output>(
  operation: (call: S3Call) => Promise<Output>,
  timeout?: number,
) => Promise<Output>;
type At = { readonly Bucket: string; readonly Key: string };

type Uploads = Omit<StoredObject, 'name' | 'look' | 'read' | 'write' | 'remove'>;

function openUploads(ask: Ask, at: At): Uploads {
  const partOf = ({ upload, number }: PartOf) => ({ ...at, UploadId: upload, PartNumber: number });
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
          client.send(new sdk.UploadPartCommand({ ...partOf(part), Body: bytes }), options),
        LONG,
      );
      return bare(etag);
    },
    async copyPart(part, { offset, size }) {
      const from = {
        CopySource: `${at.Bucket}/${at.Key.split('/').map(encodeURIComponent).join('/')}`,
        CopySourceRange: `bytes=${offset}-${offset + size - 1}`,
      };
      const { CopyPartResult: result } = await ask(
        ({ sdk, client, options }) =>
          client.send(new sdk.UploadPartCopyCommand({ ...partOf(part), ...from }), options),
        LONG,
      );
      return bare(result?.ETag ?? '');
    },
    async complete(upload, { etags, replaces }) {
      const Parts = etags.map((etag, index) => ({ PartNumber: index + 1, ETag: `"${etag}"` }));
      const wanted = { ...at, UploadId: upload, MultipartUpload: { Parts } };
      const complete = (condition: { readonly IfNoneMatch?: string }): Promise<unknown> =>
        ask(({ sdk, client, options }) => {
          const command = new sdk.CompleteMultipartUploadCommand({ ...wanted, ...condition });
          return client.send(command, options);
        }, LONG);
      try {
        await complete(replaces ? {} : { IfNoneMatch: '*' });
      } catch (error) {
        if (!(error instanceof RegistryError) || error.found !== '501') throw error;
        await complete({}); // a service without conditions
      }
    },
    abort: (upload) =>
      orNothing(() =>
        ask(({ sdk, client, options }) =>
          client.send(new sdk.AbortMultipartUploadCommand({ ...at, UploadId: upload }), options),
        ),
      ),
  };
}

async function listParts(ask: Ask, upload: At & { readonly UploadId: string }) {
  const listed = new Map<number, ListedPart>();
  for (let marker: string | undefined = '0'; marker !== undefined;) {
    const PartNumberMarker: string = marker;
    const page = await ask(({ sdk, client, options }) =>
      client.send(new sdk.ListPartsCommand({ ...upload, PartNumberMarker }), options),
    );
    for (const { PartNumber: number = 0, Size: size = 0, ETag: etag = '' } of page.Parts ?? []) {
      listed.set(number, { size, etag: bare(etag) });
    }
    marker = page.IsTruncated === true ? page.NextPartNumberMarker : undefined;
  }
  return listed;
}

/** To list them is a permission of its own, and not every service can. */
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
const bare = (etag: string): string => etag.replaceAll('"', '');

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
