import { IntegrityError, RegistryError } from '../../base/errors.ts';
import { headerOf, readBodyText } from '../../base/http/body.ts';
import { TransientError } from '../../base/http/network-failure.ts';
import type { Budget, Retries } from '../../base/retry.ts';
import type { Descriptor } from '../manifest.ts';
import { describeErrors, explainAnswer, listErrorCodes } from './answer.ts';
import { refusesAccess } from './auth.ts';
import type { Ask, Requester } from './requester.ts';
import { resolveTarget, type Endpoint, type TransportResponse } from './transport.ts';

export type BlobToPush = {
  readonly blob: Pick<Descriptor, 'digest' | 'size'>;
  /** Opens all of its bytes, in order; called again for each attempt. */
  readonly open: () => AsyncIterable<Uint8Array>;
  /** Repositories of the same registry that may have the blob, in this order. */
  readonly mountFrom: readonly string[];
  readonly signal: AbortSignal;
  /** Called with the size of each piece that was sent. */
  readonly onSent: (size: number) => void;
};

export type PushedBlob = 'present' | 'mounted' | 'sent';

/** Writes to one repository of a registry (distribution-spec 1.1, "Push"). */
export type RegistryWriter = {
  /**
   * Brings a blob into the repository. It is sent only if the repository does not have it, and if it
   * cannot be mounted from another one.
   *
   * @throws RegistryError; IntegrityError `blob.too-short`; what `open` throws; the signal's reason
   */
  pushBlob: (pushed: BlobToPush) => Promise<PushedBlob>;
  /**
   * Writes a manifest. The blobs and manifests that it names must already exist.
   *
   * @param name a tag or the digest of the bytes
   * @throws RegistryError `registry.manifest-refused`, and those of every request
   */
  putManifest: (
    bytes: Uint8Array,
    options: {
      readonly mediaType: string;
      readonly name: string;
      readonly signal: AbortSignal;
    },
  ) => Promise<void>;
};

/** Milliseconds for an answer once all is sent: registries on object stores copy a blob before they answer. */
const COMMIT_TIME = 10 * 60_000;

type Place = {
  readonly endpoint: Endpoint;
  readonly repository: string;
  readonly retries: Retries;
};

export function createRegistryWriter(requester: Requester, place: Place): RegistryWriter {
  const { endpoint, repository, retries } = place;
  const { host } = endpoint;
  return {
    pushBlob: (pushed) =>
      retries.run({ host, signal: pushed.signal }, (budget) =>
        pushBlob({ ...place, ...pushed, requester, budget }),
      ),
    putManifest: (bytes, { mediaType, name, signal }) =>
      requester(
        {
          endpoint,
          repository,
          path: `manifests/${name}`,
          method: 'PUT',
          headers: { 'content-type': mediaType },
          body: () => bytes,
          scopes: [pushTo(repository)],
          headersTimeout: COMMIT_TIME,
          signal,
        },
        async ({ status, body }) => {
          const text = await readBodyText(body);
          if (status === 201 || status === 200) return;
          throw refusedManifest(`${host}/${repository}`, { status, text, size: bytes.length });
        },
      ),
  };
}

const pushTo = (repository: string): string => `repository:${repository}:pull,push`;
const pullFrom = (repository: string): string => `repository:${repository}:pull`;

type Work = BlobToPush &
  Place & {
    readonly requester: Requester;
    readonly budget: Budget;
  };

async function pushBlob(work: Work): Promise<PushedBlob> {
  const { repository, mountFrom } = work;
  if (await hasBlob(work, repository)) return 'present';
  let from: string | undefined;
  for (const other of mountFrom) {
    if (other === repository || !(await hasBlob(work, other))) continue;
    from = other;
    break;
  }
  const session = await beginUpload(work, from);
  if (session === undefined) return 'mounted';
  await sendBlob(work, session);
  return 'sent';
}

/** A failed request starts the whole push again, as the state of its upload is not known. */
const askOnce = ({ endpoint, repository, signal, budget }: Work): Omit<Ask, 'path'> => ({
  endpoint,
  repository,
  scopes: [pushTo(repository)],
  signal,
  budget,
  isOnce: true,
});

/** distribution-spec end-2. A refusal of HEAD decides nothing: that of the upload is reported. */
async function hasBlob(work: Work, from: string): Promise<boolean> {
  const { digest, size } = work.blob;
  const isOwn = from === work.repository;
  const scopes = isOwn ? [pushTo(from)] : [pullFrom(from)];
  try {
    return await work.requester(
      { ...askOnce(work), method: 'HEAD', repository: from, scopes, path: `blobs/${digest}` },
      async ({ status, headers, body }) => {
        await readBodyText(body);
        const length = headerOf(headers, 'content-length');
        return status === 200 && (length === undefined || Number(length) === size);
      },
    );
  } catch (error) {
    if (refusesAccess(error)) return false;
    throw error;
  }
}

/** The URL to send a blob to (end-4a); undefined if it was mounted (end-11). */
function beginUpload(work: Work, from: string | undefined): Promise<URL | undefined> {
  const { repository, endpoint } = work;
  const isMount = from !== undefined;
  const query = isMount ? `?mount=${work.blob.digest}&from=${encodeURIComponent(from)}` : '';
  return work.requester(
    {
      ...askOnce(work),
      method: 'POST',
      path: `blobs/uploads/${query}`,
      headers: { 'content-length': '0' },
      scopes: [pushTo(repository), ...(isMount ? [pullFrom(from)] : [])],
    },
    async (response) => {
      const { status, headers, url, body } = response;
      const location = headerOf(headers, 'location');
      const isMounted = status === 201 && isMount;
      if (!isMounted && (status !== 202 || location === undefined)) {
        throw await refuse(work, response, `POST ${repository}/blobs/uploads/`);
      }
      await readBodyText(body);
      return isMounted ? undefined : resolveTarget(location ?? '', url, endpoint);
    },
  );
}

/** All of it in one request (end-6). */
function sendBlob(work: Work, session: URL): Promise<void> {
  const { digest, size } = work.blob;
  const url = new URL(session);
  url.searchParams.set('digest', digest);
  return work.requester(
    {
      ...askOnce(work),
      method: 'PUT',
      path: url,
      headers: { 'content-type': 'application/octet-stream', 'content-length': String(size) },
      body: () => watchSent(work),
      headersTimeout: COMMIT_TIME,
    },
    async (response) => {
      const { status } = response;
      if (status === 201 || status === 200) {
        await readBodyText(response.body);
        return;
      }
      const error = await refuse(work, response, `PUT ${work.repository}/blobs/${digest}`);
      // The upload is lost, as after a restart of the registry: a new one is begun.
      if (status !== 404 && status !== 416) throw error;
      const { host } = work.endpoint;
      const details = { host, answered: true, found: String(status) };
      throw new TransientError('registry.upload-lost', error.message, details);
    },
  );
}

async function refuse(
  { endpoint: { host } }: Work,
  { status, headers, body }: TransportResponse,
  about: string,
): Promise<RegistryError> {
  const text = await readBodyText(body);
  return explainAnswer(host, { status, headers, text, about }, Date.now());
}

async function* watchSent({ open, blob, budget, onSent }: Work): AsyncGenerator<Uint8Array> {
  let sent = 0;
  for await (const piece of open()) {
    yield piece;
    sent += piece.length;
    onSent(piece.length);
    budget.progress();
  }
  if (sent === blob.size) return;
  throw new IntegrityError(
    'blob.too-short',
    `blob ${blob.digest} should be ${blob.size} bytes, but there are ${sent} to send`,
    { expected: String(blob.size), found: String(sent) },
  );
}

const refusedManifest = (
  where: string,
  { status, text, size }: { readonly status: number; readonly text: string; readonly size: number },
): RegistryError => {
  const said = describeErrors(text);
  return new RegistryError(
    'registry.manifest-refused',
    `${where} refuses a manifest of ${size} bytes: ${status}${said === '' ? '' : ` (${said})`}`,
    { found: [status, ...listErrorCodes(text)].join(' ') },
  );
};
