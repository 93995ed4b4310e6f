import { RegistryError, type SealiftError } from '../../base/errors.ts';
import { headerOf } from '../../base/http/body.ts';
import { isPassingStatus, TransientError } from '../../base/http/network-failure.ts';
import { objectOrEmpty } from '../../base/lists.ts';
import { parseRetryAfter } from '../../base/retry.ts';
import { redactAddresses } from '../../base/text/redact.ts';

/** An unsuccessful answer: what it was about, and its body. */
export type Refusal = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** `GET /v2/...` */
  readonly about: string;
};

/** The error for an answer that its request does not expect. */
export function explainAnswer(host: string, refusal: Refusal, now: number): RegistryError {
  const { status, headers, text, about } = refusal;
  const said = describeErrors(text);
  const message = `${host} answers ${status} to ${about}${said === '' ? '' : `: ${said}`}`;
  const found = String(status);
  if (!isPassingStatus(status)) return new RegistryError('registry.answer', message, { found });
  const limited = status === 429;
  return new TransientError(limited ? 'registry.rate-limited' : 'registry.unavailable', message, {
    found,
    host,
    limited,
    answered: true,
    retryAfter: parseRetryAfter(headerOf(headers, 'retry-after'), now),
    hint: limited
      ? 'send fewer requests at once, or run the same command again later: cached data is reused'
      : 'run the same command again later: cached data is reused',
  });
}

/** Characters of the longest message of a server that is shown. */
const LONGEST = 300;

/**
 * distribution-spec 1.1, "Error Codes": code and message of each, without control characters. Of a long
 * message not even a part: it may end within a secret, which could not be masked any more.
 */
export function describeErrors(text: string): string {
  const errors = parseErrors(text).slice(0, 3);
  const shown = errors.map((error) =>
    error.length > LONGEST ? `[${error.length} characters]` : error,
  );
  // eslint-disable-next-line no-control-regex -- a server's words go to a terminal
  return redactAddresses(shown.join('; ').replaceAll(/[\x00-\x1f\x7f-\x9f]/g, ' '));
}

export const listErrorCodes = (text: string): readonly string[] =>
  readErrors(text).flatMap(({ code }) => (typeof code === 'string' ? [code] : []));

const parseErrors = (text: string): string[] =>
  readErrors(text).map(({ code, message }) =>
    [code, message].filter((part) => typeof part === 'string').join(': '),
  );

function readErrors(text: string): readonly Readonly<Record<string, unknown>>[] {
  try {
    const { errors } = objectOrEmpty(JSON.parse(text));
    return Array.isArray(errors) ? errors.map(objectOrEmpty) : [];
  } catch {
    return []; // a proxy's HTML page says nothing that the status does not
  }
}

/**
 * The credential of a request: `from` names the credential that was found for it. One is looked for
 * only if the host asks, because a credential helper may open a window.
 */
export type Carried = {
  readonly asked: boolean;
  readonly from: string | undefined;
  readonly sent: boolean;
  /** The failure of the helper that should have it. */
  readonly failure?: SealiftError | undefined;
  /** True if its password ends in a line break. */
  readonly isBroken?: boolean;
};

type Refused = {
  readonly host: string;
  readonly repository: string;
  readonly isPush?: boolean;
};

/** Explains which side caused a 401 or 403, by name, and what to do about it. */
export function explainRefusal(
  { host, repository, isPush = false }: Refused,
  { status, text }: { readonly status: number; readonly text: string },
  carried: Carried,
): SealiftError {
  const { from, sent, failure } = carried;
  if (failure) return failure;
  const code = status === 401 ? 'registry.unauthorized' : 'registry.forbidden';
  const who = from === undefined || !sent ? 'an anonymous request' : `the credential "${from}"`;
  const said = text === '' ? '' : ` (${text})`;
  return new RegistryError(code, `${host} refuses ${who} for ${repository}: ${status}${said}`, {
    hint: adviseOnRefusal({ host, repository, isPush }, carried),
    found: String(status),
  });
}

function adviseOnRefusal(
  { host, repository, isPush = false }: Refused,
  { asked, from, sent, isBroken = false }: Carried,
): string {
  if (!asked) return `check the address of ${repository}: ${host} asks for no credential`;
  if (from === undefined) {
    return `add an entry for ${host} to the pull secret, or log in with "podman login ${host}"`;
  }
  if (sent && isBroken) {
    return `the password of "${from}" ends in a line break: log in again with "podman login ${host}"`;
  }
  return sent
    ? `check that "${from}" is still valid and may ${isPush ? 'push to' : 'pull'} ${repository}`
    : `check the address of the registry: ${host} did not ask for "${from}", so it was not sent`;
}

/** Explains a refusal of the storage that a registry redirects to: not about credentials, as none is sent. */
export const explainStorageRefusal = (
  { host, repository }: { readonly host: string; readonly repository: string },
  storage: string,
  status: number,
): RegistryError =>
  new RegistryError(
    status === 401 ? 'registry.unauthorized' : 'registry.forbidden',
    `${storage}, to which ${host} redirects for ${repository}, answers ${status}`,
    {
      found: String(status),
      hint: `check that the clock of this machine is right and that no proxy blocks ${storage}`,
    },
  );

/** A challenge of WWW-Authenticate (RFC 9110 11.6.1), scheme and parameter names in lower case. */
export type Challenge = {
  readonly scheme: string;
  readonly parameters: Readonly<Record<string, string>>;
};

// RFC 9110 5.6.2 (token), 5.6.4 (quoted-string), 11.2 (token68); sticky, read from one position on.
const TOKEN = /[!#$%&'*+\-.^_`|~0-9A-Za-z]+/y;
const SEPARATORS = /[\s,]*/y;
const EQUALS = /\s*=\s*/y;
const QUOTED = /"((?:[^"\\]|\\.)*)"/y;
const TOKEN68 = /[A-Za-z0-9\-._~+/]+=*(?=\s*(?:,|$))/y;

/**
 * Reads every challenge of one or several header lines. A line is read as far as it makes sense:
 * anything after a malformed parameter is ignored, as no caller could fix it.
 */
export function parseChallenges(header: string | readonly string[] | undefined): Challenge[] {
  if (header === undefined) return [];
  return (typeof header === 'string' ? [header] : header).flatMap(parseLine);
}

type Cursor = { readonly text: string; at: number };

/**
 * A comma separates parameters as well as challenges: a token that is followed by `=` is a
 * parameter of the challenge before it, any other token is a new scheme.
 */
function parseLine(text: string): Challenge[] {
  const cursor: Cursor = { text, at: 0 };
  const challenges: { scheme: string; parameters: Record<string, string> }[] = [];
  for (;;) {
    take(cursor, SEPARATORS);
    const word = take(cursor, TOKEN)?.[0].toLowerCase();
    if (word === undefined) return challenges;
    const current = challenges.at(-1);
    if (current === undefined || take(cursor, EQUALS) === undefined) {
      challenges.push({ scheme: word, parameters: Object.create(null) as Record<string, string> });
      skipToken68(cursor);
      continue;
    }
    const value = takeValue(cursor);
    if (value === undefined) return challenges;
    current.parameters[word] = value;
  }
}

/** Negotiate and NTLM have a token68 after the scheme; neither is supported here. */
function skipToken68(cursor: Cursor): void {
  const start = cursor.at;
  const hasSpace = take(cursor, /[ \t]+/y) !== undefined;
  if (!hasSpace || take(cursor, TOKEN68) === undefined) cursor.at = start;
}

function takeValue(cursor: Cursor): string | undefined {
  const quoted = take(cursor, QUOTED)?.[1];
  return quoted?.replaceAll(/\\(.)/g, '$1') ?? take(cursor, TOKEN)?.[0];
}

function take(cursor: Cursor, pattern: RegExp): RegExpExecArray | undefined {
  pattern.lastIndex = cursor.at;
  const match = pattern.exec(cursor.text);
  if (match === null) return undefined;
  cursor.at = pattern.lastIndex;
  return match;
}

/** Counts for one host. Retries include bodies that broke off and were continued. */
export type HostStatistics = {
  readonly host: string;
  requests: number;
  retries: number;
  /** Size of bodies, including token and error answers. */
  bytes: number;
};

export type Statistics = {
  of: (host: string) => HostStatistics;
  list: () => readonly Readonly<HostStatistics>[];
};

export function createStatistics(): Statistics {
  const hosts = new Map<string, HostStatistics>();
  return {
    of(host) {
      const known = hosts.get(host) ?? { host, requests: 0, retries: 0, bytes: 0 };
      hosts.set(host, known);
      return known;
    },
    list: () => [...hosts.values()].map((entry) => ({ ...entry })),
  };
}
