import { RegistryError } from '../../base/errors.ts';
import { objectOrEmpty } from '../../base/lists.ts';
import { isPassingStatus, TransientError } from '../../base/http/network-failure.ts';
import { redact } from '../../base/text/redact.ts';
import { parseRetryAfter } from '../../base/retry.ts';
import { headerOf } from '../../base/http/body.ts';

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
      ? 'ask for less at once, or run the same command again later: what is cached stays'
      : 'run the same command again later: what is cached stays',
  });
}

/** distribution-spec 1.1, "Error Codes": code and message of each, without control characters. */
export function describeErrors(text: string): string {
  const errors = parseErrors(text).slice(0, 3);
  // eslint-disable-next-line no-control-regex -- a server's words go to a terminal
  return redact(errors.join('; ').replaceAll(/[\x00-\x1f\x7f-\x9f]/g, ' ')).slice(0, 300);
}

/** The codes alone. */
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

/** What a request carried: `from` names the credential that was found for it. */
export type Carried = { readonly from: string | undefined; readonly sent: boolean };

/** What somebody may not do. */
type Refused = {
  readonly host: string;
  readonly repository: string;
  /** Whether they would write to the repository. */
  readonly isPush?: boolean;
};

/** Whose fault a 401 or 403 is, by name, and what to do about it. */
export function explainRefusal(
  { host, repository, isPush = false }: Refused,
  { status, text }: { readonly status: number; readonly text: string },
  { from, sent }: Carried,
): RegistryError {
  const code = status === 401 ? 'registry.unauthorized' : 'registry.forbidden';
  const who = from === undefined || !sent ? 'an anonymous request' : `the credential "${from}"`;
  const said = text === '' ? '' : ` (${text})`;
  return new RegistryError(code, `${host} refuses ${who} for ${repository}: ${status}${said}`, {
    hint: adviseOnRefusal({ host, repository, isPush }, { from, sent }),
    found: String(status),
  });
}

function adviseOnRefusal(
  { host, repository, isPush = false }: Refused,
  { from, sent }: Carried,
): string {
  if (from === undefined) {
    return `add an entry for ${host} to the pull secret, or log in with "podman login ${host}"`;
  }
  return sent
    ? `check that "${from}" is still valid and may ${isPush ? 'push to' : 'pull'} ${repository}`
    : `check the address of the registry: ${host} did not ask for "${from}", so it was not sent`;
}

/** Where a registry redirects to is sent no credential, and its refusal is about none. */
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
      hint: `check that the clock of this machine is right and that a proxy permits ${storage}`,
    },
  );
