import { RegistryError } from '../../base/errors.ts';
import { kindOfHost } from '../../base/http/address.ts';
import { formatBasic } from '../../base/http/basic.ts';
import { headerOf, readBodyText } from '../../base/http/body.ts';
import type { Http } from '../../base/http/http.ts';
import { explainNetworkFailure } from '../../base/http/network-failure.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { untilAborted } from '../../base/wait.ts';
import { explainAnswer, explainRefusal, type Challenge } from './answer.ts';
import { hasLineBreak, type Credential } from './credential-helper.ts';
import type { Endpoint, Transport, TransportRequest, TransportResponse } from './transport.ts';

/* Owns the tokens of registries (distribution's token specification): how they are asked for, and kept. */

type TokenRequest = {
  readonly endpoint: Endpoint;
  /** Address of the registry itself. */
  readonly base: URL;
  readonly repository: string;
  readonly scopes: readonly string[];
  readonly challenge: Challenge;
  readonly credential: Credential | undefined;
  readonly signal: AbortSignal;
  /** The token that was refused: not to be sent again. */
  readonly refused: string | undefined;
};

export type Tokens = { get: (request: TokenRequest) => Promise<string> };

/** A token is fresh until `freshUntil`, in milliseconds on the clock of `now`. */
type Token = { readonly value: string; readonly freshUntil: number };

/** Shortest and default life of a token, in seconds (docker's token server documentation). */
const MIN_LIFE = 60;

/** A token is renewed after this part of its life, so that none expires during a request. */
const FRESH_PART = 0.8;

/** Name of this program in the statistics of token servers. */
const CLIENT_ID = 'sealift';

export type TokensParts = {
  readonly transport: Transport;
  readonly http: Pick<Http, 'kindOf' | 'redaction'>;
  readonly now: () => number;
};

/** Holds one token for each realm, service, scope and credential; requests each once at a time. */
export function createTokens(parts: TokensParts): Tokens {
  const { now } = parts;
  const known = new Map<string, Promise<Token>>();
  return {
    async get(request) {
      const { signal, refused, credential } = request;
      const question = parseQuestion(request);
      const key = JSON.stringify([question, credential?.from]);
      for (let held = known.get(key); held; held = known.get(key)) {
        const token = await untilAborted(held, signal);
        if (token.value !== refused && token.freshUntil > now()) return token.value;
        if (known.get(key) === held) known.delete(key);
      }
      const fetching = fetchToken(parts, { request, question });
      known.set(key, fetching);
      fetching.catch(() => known.delete(key));
      return (await untilAborted(fetching, signal)).value;
    },
  };
}

/** A question to the token server (distribution's token specification). */
type Question = {
  readonly realm: string;
  readonly service?: string;
  readonly scopes: readonly string[];
};

function parseQuestion({ endpoint, base, challenge, scopes }: TokenRequest): Question {
  const { realm = '', service, scope, error } = challenge.parameters;
  const reason = whyRefused(realm, base);
  if (reason !== undefined) {
    throw new RegistryError('registry.realm', `${endpoint.host} names a token server ${reason}`);
  }
  return {
    realm,
    ...withoutUndefined({ service }),
    // Only a refusal of a token names the scopes that it lacked.
    scopes: error === 'insufficient_scope' && scope ? scope.split(' ') : scopes,
  };
}

/** A password may go over TLS, to the host of a registry without TLS, or to this machine. */
function whyRefused(realm: string, base: URL): string | undefined {
  if (!URL.canParse(realm)) return 'whose realm is not a valid URL';
  const { protocol, hostname, host } = new URL(realm);
  if (protocol === 'https:') return undefined;
  const isBeside = base.protocol === 'http:' && hostname === base.hostname;
  const isLocal = [hostname, base.hostname].every((name) => kindOfHost(name) === 'loopback');
  if (protocol === 'http:' && (isBeside || isLocal)) return undefined;
  return `that would get the password unencrypted: ${protocol}//${host}`;
}

type Fetching = { readonly request: TokenRequest; readonly question: Question };

/** All callers that wait share the request: time limits end it, and none of their signals. */
async function fetchToken(parts: TokensParts, fetching: Fetching): Promise<Token> {
  const { request } = fetching;
  const { now } = parts;
  const askedAt = now();
  const { endpoint, repository, credential } = request;
  const { response, text } = await ask(parts, fetching);
  if (response.status === 401 || response.status === 403) {
    throw explainRefusal(
      { host: endpoint.host, repository },
      { status: response.status, text: `token server ${response.url.host}` },
      {
        asked: true,
        from: credential?.from,
        sent: response.url.origin === new URL(fetching.question.realm).origin,
        isBroken: hasLineBreak(credential),
      },
    );
  }
  if (response.status !== 200) {
    throw explainAnswer(response.url.host, { ...response, text, about: 'a token request' }, now());
  }
  const token = parseToken(text, response, askedAt);
  parts.http.redaction.add(token.value);
  return token;
}

/** A network failure is reported for the token server, not for the registry that named it. */
async function ask(
  { transport, http }: TokensParts,
  fetching: Fetching,
): Promise<{ readonly response: TransportResponse; readonly text: string }> {
  const { endpoint, base } = fetching.request;
  const question = formatQuestion(fetching);
  try {
    // The named server gets the password, and its answer is sent to the registry: a remote registry must
    // not name this machine or its metadata server.
    const namedBy = await http.kindOf(base);
    const response = await transport({ endpoint, ...question, namedBy });
    return { response, text: await readBodyText(response.body) };
  } catch (error) {
    if (error instanceof RegistryError && error.code === 'registry.address') {
      throw new RegistryError(
        'registry.realm',
        `${endpoint.host} names a token server that must not be asked`,
        { cause: error },
      );
    }
    throw explainNetworkFailure(question.url.host, error);
  }
}

function formatQuestion({ request, question }: Fetching): Omit<TransportRequest, 'endpoint'> {
  const { credential } = request;
  const { realm, service, scopes } = question;
  const url = new URL(realm);
  const about = withoutUndefined({ service });
  if (credential?.kind === 'identity') {
    // RFC 6749 6, in the form that docker's token server takes.
    const form = {
      grant_type: 'refresh_token',
      client_id: CLIENT_ID,
      refresh_token: credential.token,
    };
    return {
      url,
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ ...form, ...about, scope: scopes.join(' ') }).toString(),
    };
  }
  if (credential) url.searchParams.set('account', credential.username);
  for (const [name, value] of Object.entries(about)) url.searchParams.set(name, value);
  url.searchParams.delete('scope');
  for (const scope of scopes) url.searchParams.append('scope', scope);
  return { url, headers: credential ? { authorization: formatBasic(credential) } : {} };
}

/** The answer holds the token: no part of it goes into an error. */
function parseToken(text: string, { url, headers }: TransportResponse, askedAt: number): Token {
  const answer = parseObject(text);
  // An empty text counts as absent.
  const value = [answer['token'], answer['access_token']].find(
    (text) => typeof text === 'string' && text !== '',
  );
  if (typeof value !== 'string' || !/^[\x21-\x7e]+$/.test(value)) {
    const type = headerOf(headers, 'content-type') ?? 'no type';
    throw new RegistryError('registry.token', `${url.host} answers without a token (${type})`);
  }
  const { expires_in: given } = answer;
  const life = typeof given === 'number' || typeof given === 'string' ? Number(given) : NaN;
  const seconds = Number.isFinite(life) ? Math.max(MIN_LIFE, life) : MIN_LIFE;
  return { value, freshUntil: askedAt + seconds * 1000 * FRESH_PART };
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  } catch {
    return {}; // JSON.parse would quote the token; the caller reports the missing token
  }
  return {};
}
