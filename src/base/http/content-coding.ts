import { type Duplex, pipeline, type Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { RegistryError } from '../errors.ts';

/*
 * The one door between the bytes on a connection and the bytes that a caller hashes: content codings
 * (RFC 9110 8.4) are declined, and taken off if a server or a proxy applies one anyway.
 */

/** Coding by name; RFC 9110 8.4.1.3 gives `gzip` a second one. */
const DECODERS: ReadonlyMap<string, () => Duplex> = new Map<string, () => Duplex>([
  ['gzip', createGunzip],
  ['x-gzip', createGunzip],
  ['deflate', createInflate],
  ['br', createBrotliDecompress],
]);

/** RFC 9110 12.5.3: without this header, a server may choose any coding. */
export const declineCodings = (headers: Readonly<Record<string, string>> = {}) => ({
  'accept-encoding': 'identity',
  ...headers,
});

/** An answer with header names in lower case. */
type Coded = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Readable;
};

/** Takes off the coding of an answer, together with the headers that describe the coded bytes. */
export function takeOffCoding(
  response: Coded,
  { method, url }: { readonly method?: string; readonly url: URL },
): Coded {
  const coding = readCoding(response.headers['content-encoding']);
  if (coding === '') return response;
  const headers = withoutNames(response.headers, ['content-encoding', 'content-length']);
  if (method === 'HEAD') return { ...response, headers };
  const isRange = response.status === 206;
  const create = isRange ? undefined : DECODERS.get(coding);
  if (!create) {
    response.body.destroy();
    throw refuseCoding(url.host, coding, isRange);
  }
  const decoder = create();
  // The reader of the decoder gets every error, and its end ends the answer.
  pipeline(response.body, decoder, () => undefined);
  return { ...response, headers, body: decoder };
}

/** The codings of an answer, in one text; '' if its bytes are as they are. */
export const readCoding = (header: string | string[] | undefined): string =>
  [header ?? '']
    .flat()
    .join()
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && name !== 'identity')
    .join(', ');

const withoutNames = (headers: Coded['headers'], names: readonly string[]) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name)));

const refuseCoding = (host: string, coding: string, isRange: boolean): RegistryError =>
  new RegistryError(
    'http.content-coding',
    `${host} sends ${isRange ? 'a range of the' : 'the'} content coding ${coding}`,
    {
      expected: 'content as it is (accept-encoding: identity)',
      found: coding,
      hint: 'a proxy in between may change answers: leave this host out of it',
    },
  );
