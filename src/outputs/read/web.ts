import { formatBasic } from '../../base/http/basic.ts';
import { checkTransient } from '../../base/download/fetch.ts';
import { judgeOutOfRange, parseContentRange } from '../../base/download/range-forms.ts';
import { RegistryError } from '../../base/errors.ts';
import { readUserInfo } from '../../base/http/address.ts';
import { headerOf } from '../../base/http/body.ts';
import type { Http } from '../../base/http/http.ts';
import type { RangeSource } from '../../base/random-access.ts';
import { redactUrl } from '../../base/text/redact.ts';
import {
  createCertsReader,
  createTransport,
  type Credential,
  credentialsFromFiles,
  SYSTEM_CERTS_DIRS,
  type TransportResponse,
} from '../../registry/index.ts';

/** The tools for opening a source; they live as long as the source is open. */
export type SourceTools = {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** `/etc/containers`; absent: registries.conf of the system is not read. */
  readonly containersDir?: string;
  readonly signal: AbortSignal;
  readonly http: Http;
};

export type OpenedRanges = {
  readonly source: RangeSource;
  /** Host of the server, for messages while it is waited for: `example.com:8443`. */
  readonly host: string;
  readonly close?: () => Promise<void>;
};

/** Opens the source at an address of one scheme, which can be parsed as a URL. */
export type RangeOpener = (text: string, tools: SourceTools) => Promise<OpenedRanges>;

/**
 * Opens a file by ranges (RFC 9110, 14). The credentials of the URL, or of the registries' credential files,
 * are sent when the server asks for them, to its own origin only.
 */
export async function openWebRanges(text: string, tools: SourceTools): Promise<OpenedRanges> {
  const url = new URL(text);
  const { host } = url;
  const { signal, http } = tools;
  const name = redactUrl(url);
  const ask = createAsker(url, tools);
  const found = await http.retries.run({ host, signal }, () => probe(ask, name, signal));
  const source: RangeSource = {
    name,
    ...found,
    open: (range, signal = tools.signal) => openRange(ask, { name, range, found }, signal),
  };
  return { source, host };
}

/** Opens a range; a 416 inside the file is asked again in the other form (RFC 9110 14.1.2). */
async function openRange(ask: Ask, taking: Taking, signal: AbortSignal) {
  const { range, found } = taking;
  const response = await ask(range, { ...found, signal });
  const stated = headerOf(response.headers, 'content-range');
  const isRefused =
    response.status === 416 &&
    judgeOutOfRange(stated, (size) => size === found.size) === 'out of range';
  if (!isRefused) return takeRange(response, taking);
  response.body.destroy();
  const toEnd = { offset: range.offset, size: found.size - range.offset };
  const again = await ask({ offset: range.offset }, { ...found, signal });
  return cutOff(takeRange(again, { ...taking, range: toEnd }), range.size);
}

async function* cutOff(body: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Uint8Array> {
  let left = size;
  for await (const bytes of body) {
    yield bytes.subarray(0, left);
    left -= bytes.length;
    if (left <= 0) return;
  }
}

type Found = Pick<RangeSource, 'size' | 'version'>;

type Range = Parameters<RangeSource['open']>[0];

type Ask = (
  range: { readonly offset: number; readonly size?: number },
  options: Pick<Found, 'version'> & { readonly signal: AbortSignal },
) => Promise<TransportResponse>;

/** Asks without a credential first; after the server has asked for one, each request has it. */
function createAsker(named: URL, { env, http }: SourceTools): Ask {
  const transport = createTransport(http, createCertsReader({ certsDirs: SYSTEM_CERTS_DIRS }));
  const userInfo = readUserInfo(named, http.redaction);
  const url = new URL(named);
  url.username = url.password = url.hash = '';
  let credential: Credential | undefined;
  const findCredential = async (signal: AbortSignal): Promise<Credential | undefined> => {
    if (userInfo) return { kind: 'basic', ...userInfo, from: 'the URL' };
    const place = { registry: url.host, repository: url.pathname.slice(1) };
    return credentialsFromFiles(env, http.redaction).find(place, signal);
  };
  const send: Ask = ({ offset, size }, { version, signal }) =>
    transport({
      endpoint: { host: url.host, insecure: false },
      url,
      signal,
      headers: {
        range: `bytes=${offset}-${size === undefined ? '' : offset + size - 1}`,
        // RFC 9110 13.1.1: a weak tag never matches.
        ...(version?.startsWith('"') === true && { 'if-match': version }),
        ...(credential?.kind === 'basic' && { authorization: formatBasic(credential) }),
      },
    });
  const refusing: Refusing = { name: redactUrl(url), host: url.host };
  return async (range, options) => {
    const had = credential;
    let response = await send(range, options);
    if (response.status === 401 && response.url.origin === url.origin && !had) {
      credential ??= await findCredential(options.signal);
      if (credential?.kind === 'basic') {
        response.body.destroy();
        response = await send(range, options);
      }
    }
    checkTransient(response, response.url);
    if (ANSWERS.includes(response.status)) return response;
    response.body.destroy();
    throw createRefusal(response, { ...refusing, credential });
  };
}

/** OK, Partial Content, Precondition Failed, Range Not Satisfiable (RFC 9110). */
const ANSWERS: readonly number[] = [200, 206, 412, 416];

/** Asks for one byte: not every server answers HEAD, and no signed URL works for both. */
async function probe(ask: Ask, name: string, signal: AbortSignal): Promise<Found> {
  const range = { offset: 0, size: 1 };
  const response = await ask(range, { signal });
  const { status, headers, body } = response;
  const given = headerOf(headers, 'content-range');
  if (status === 416 && given === 'bytes */0') {
    body.destroy();
    return { size: 0 };
  }
  if (status === 206) body.resume();
  else body.destroy();
  if (status === 200) throw noRanges(name);
  const { first, size } = parseContentRange(given);
  if (status !== 206 || first !== 0 || size === undefined) {
    throw wrongRange(name, range, describeAnswer(response));
  }
  const version = versionOf(response);
  return { size, ...(version !== undefined && { version }) };
}

type Taking = { readonly name: string; readonly range: Range; readonly found: Found };

/** The body, if its headers state the range that was asked for, of the file that was found. */
function takeRange(
  response: TransportResponse,
  { name, range, found }: Taking,
): TransportResponse['body'] {
  const problem =
    findChange(response, name, found) ??
    (response.status === 200 ? noRanges(name) : undefined) ??
    (isRange(response, range) ? undefined : wrongRange(name, range, describeAnswer(response)));
  if (!problem) return response.body;
  response.body.destroy();
  throw problem;
}

function findChange(
  response: TransportResponse,
  name: string,
  found: Found,
): RegistryError | undefined {
  const { status, headers } = response;
  const { size = found.size } = parseContentRange(headerOf(headers, 'content-range'));
  const version = versionOf(response);
  if (status === 412 || (version !== found.version && status !== 416)) {
    return changed(name, found.version ?? 'no ETag', version ?? 'another ETag');
  }
  if (size === found.size) return undefined;
  return changed(name, `${found.size} bytes`, `${size} bytes`);
}

function isRange(response: TransportResponse, { offset, size }: Range): boolean {
  const { first, last } = parseContentRange(headerOf(response.headers, 'content-range'));
  const isInside = last !== undefined && last < offset + size;
  return response.status === 206 && first === offset && isInside;
}

/** The value that changes with the bytes: the ETag, else the time of the last change. */
const versionOf = ({ headers }: TransportResponse): string | undefined =>
  headerOf(headers, 'etag') ?? headerOf(headers, 'last-modified');

const describeAnswer = (response: TransportResponse): string => {
  const { status, headers } = response;
  return `${status}, ${headerOf(headers, 'content-range') ?? 'no Content-Range'}`;
};

/** `host` is the one that refused the request. */
export type Refusing = {
  /** Printable name. */
  readonly name: string;
  readonly host: string;
  /** Credential that was found for the host when it asked for one. */
  readonly credential?: Credential | undefined;
};

function createRefusal(
  { status, url }: Pick<TransportResponse, 'status' | 'url'>,
  { name, host, credential }: Refusing,
): RegistryError {
  const to = url.host === host ? '' : `, to which ${host} redirects,`;
  const code = CODES[status] ?? 'source.refused';
  return new RegistryError(code, `${to === '' ? name : `${url.host}${to}`} answers ${status}`, {
    expected: '206',
    found: String(status),
    hint: advise(status, host, credential),
  });
}

const CODES: Readonly<Record<number, string>> = {
  401: 'source.unauthorized',
  403: 'source.forbidden',
  404: 'source.not-found',
  410: 'source.not-found',
};

function advise(status: number, host: string, credential: Credential | undefined): string {
  if (status === 404 || status === 410) return 'check the address';
  if (status !== 401 && status !== 403)
    return 'check the address; it must be the address of a file';
  if (credential?.kind === 'basic')
    return `check that "${credential.from}" is still valid for ${host}`;
  if (credential)
    return `log in with user and password: "${credential.from}" is a token for a registry`;
  return `log in with "podman login ${host}", or check that the address has not expired`;
}

const noRanges = (name: string): RegistryError =>
  new RegistryError('source.no-ranges', `the server does not serve ranges of ${name}`, {
    expected: '206',
    found: '200',
    hint: 'download it, and name the file',
  });

const wrongRange = (
  name: string,
  { offset, size }: { readonly offset: number; readonly size: number },
  found: string,
): RegistryError =>
  new RegistryError(
    'source.range',
    `the server of ${name} sent another range than the requested one`,
    {
      expected: `206, bytes ${offset}-${offset + size - 1} and the size of the file`,
      found,
      hint: 'download it, and name the file',
    },
  );

const changed = (name: string, expected: string, found: string): RegistryError =>
  new RegistryError('source.changed', `${name} changed while it was read`, {
    expected,
    found,
    hint: 'run the same command again',
  });
