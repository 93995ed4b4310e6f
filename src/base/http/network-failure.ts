import { explainLimit } from '../disk/disk-errors.ts';
import { RegistryError, SealiftError, type ErrorDetails } from '../errors.ts';
import { diagnoseTls, isCertificateCode, TlsFailure, type TlsDiagnosis } from './tls-failure.ts';

type TransientDetails = ErrorDetails & {
  /** Host that failed, with port: `quay.io`, `127.0.0.1:5000`. Absent: the host that was asked. */
  readonly host?: string | undefined;
  readonly answered?: boolean;
  readonly retryAfter?: number | undefined;
  readonly limited?: boolean;
};

/** A failure that may pass: the same request is made again later. */
export class TransientError extends RegistryError {
  readonly host: string | undefined;
  readonly answered: boolean;
  /** Milliseconds that the server asks us to wait (Retry-After), if it does. */
  readonly retryAfter: number | undefined;
  /** True if the server counts requests (429): it needs longer pauses than a server with a passing fault. */
  readonly limited: boolean;

  constructor(code: string, message: string, details: TransientDetails = {}) {
    super(code, message, details);
    this.host = details.host;
    this.answered = details.answered ?? false;
    this.retryAfter = details.retryAfter;
    this.limited = details.limited ?? false;
  }
}

/** The variable that holds the user and the password of a proxy, and whether they were sent. */
type ProxyLogin = { readonly variable: string; readonly isSent: boolean };

/** The failure of a proxy to open a tunnel or forward a request: its answer, or the reason for none. */
export class ProxyFailure extends Error {
  /** `http://proxy.example:3128`, without credentials. */
  readonly proxy: string;
  /** The method of the request that the proxy answered. */
  readonly method: string;
  /** `quay.io:443` */
  readonly target: string;
  /** Status of its answer, if it gave one. */
  readonly status: number | undefined;
  readonly login: ProxyLogin | undefined;

  constructor(
    about: {
      readonly proxy: string;
      readonly target: string;
      /** Default: CONNECT. */
      readonly method?: string;
      readonly status?: number;
      readonly login?: ProxyLogin;
    },
    cause?: unknown,
  ) {
    super(`${about.proxy} does not reach ${about.target}`, { cause });
    this.proxy = about.proxy;
    this.method = about.method ?? 'CONNECT';
    this.target = about.target;
    this.status = about.status;
    this.login = about.login;
  }
}

const PASSING = new Set([
  'ECONNRESET',
  'ECONNREFUSED',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'ENETUNREACH',
  'EHOSTUNREACH',
  'EAI_AGAIN',
  'UND_ERR_SOCKET',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
]);

/** The code of the network's own error (ECONNRESET, UND_ERR_SOCKET), also if it caused one of ours. */
export function networkCodeOf(error: unknown): string | undefined {
  for (let next = error; next instanceof Error; next = next.cause) {
    if (next instanceof SealiftError) continue;
    if ('code' in next && typeof next.code === 'string') return next.code;
    // undici gives some of these no code.
    if (next.name === 'HTTPParserError') return 'HPE_INVALID';
  }
  return undefined;
}

/** HPE_ codes are an answer that breaks off or is not HTTP: a proxy on the way with a passing fault. */
const isPassing = (code: string): boolean => PASSING.has(code) || code.startsWith('HPE_');

export const isCertificateFailure = (error: unknown): boolean =>
  isCertificateCode(networkCodeOf(error) ?? '');

/** RFC 9110: statuses that mean "later". 501 and 505 mean "never". */
export const isPassingStatus = (status: number): boolean =>
  status === 408 ||
  status === 425 ||
  status === 429 ||
  (status >= 500 && status !== 501 && status !== 505);

/**
 * The meaning of a value that the network threw: a TransientError if another try may help, a
 * RegistryError if the network refuses, and anything else as it is, because it is a bug.
 */
export function explainNetworkFailure(host: string, cause: unknown): unknown {
  if (cause instanceof SealiftError) return cause;
  if (cause instanceof ProxyFailure) return explainProxyFailure(host, cause);
  const code = networkCodeOf(cause);
  if (code === undefined) return cause;
  const details = { cause, host, found: code };
  const known = explainLimit(cause, `a connection to ${host}`) ?? explainTlsFailure(host, cause);
  if (known) return known;
  if (isPassing(code)) {
    return new TransientError(
      'registry.unreachable',
      `the connection to ${host} failed: ${code}`,
      details,
    );
  }
  if (code === 'ENOTFOUND') {
    return new RegistryError('registry.unknown-host', `${host} is not known to DNS`, {
      ...details,
      hint: 'check the name, the resolver and the proxy settings',
    });
  }
  if (/^(?:Z_|ERR__ERROR)/.test(code)) return damagedCoding(host, details);
  if (!/^(?:E[A-Z]+|ERR_(?:SSL|TLS)|UND_ERR_)/.test(code)) return cause;
  return new RegistryError('registry.unreachable', `${host} cannot be reached: ${code}`, details);
}

function explainTlsFailure(host: string, cause: unknown): RegistryError | undefined {
  const diagnosis = explainTls({ host }, cause);
  if (!diagnosis) return undefined;
  const { problem, isCertificate, ...values } = diagnosis;
  const code = isCertificate ? 'registry.certificate' : 'registry.unreachable';
  return new RegistryError(code, `${host} ${problem}`, { cause, ...values });
}

/** Explains the failure of a TLS connection to a server or a proxy; undefined for any other error. */
export function explainTls(
  who: { readonly host: string; readonly isProxy?: boolean },
  error: unknown,
): TlsDiagnosis | undefined {
  let failure = error;
  while (failure instanceof Error && !(failure instanceof TlsFailure)) failure = failure.cause;
  const about = failure instanceof TlsFailure ? failure : {};
  return diagnoseTls({ ...who, code: networkCodeOf(error) ?? '', failure: about });
}

/** The error for a body that does not have the content coding that its answer names. */
const damagedCoding = (
  host: string,
  details: { readonly cause: unknown; readonly found: string },
): RegistryError =>
  new RegistryError('http.content-coding', `${host} sends a damaged content coding`, {
    ...details,
    hint: 'a proxy in between may change answers: leave this host out of it',
  });

/** Explains the failure of a proxy, with its name; `host` is the host that was requested through it. */
function explainProxyFailure(host: string, failure: ProxyFailure): unknown {
  const { proxy, target, status } = failure;
  if (status !== undefined) return explainProxyAnswer(host, failure, status);
  const code = networkCodeOf(failure);
  if (code === undefined) return failure.cause;
  const details = { cause: failure.cause, found: code };
  const tls = explainTls({ host: new URL(proxy).host, isProxy: true }, failure);
  if (tls) {
    const { problem, isCertificate, ...values } = tls;
    const kind = isCertificate ? 'proxy.certificate' : 'proxy.unreachable';
    const { cause } = failure;
    return new RegistryError(kind, `proxy ${proxy} ${problem}`, { cause, ...values });
  }
  if (code === 'ENOTFOUND') {
    return new RegistryError('proxy.unknown-host', `proxy ${proxy} is not known to DNS`, {
      ...details,
      hint: 'check HTTPS_PROXY and HTTP_PROXY',
    });
  }
  return new TransientError(
    'proxy.unreachable',
    `proxy ${proxy} failed before it reached ${target}: ${code}`,
    { ...details, host, hint: CHECK_PROXY },
  );
}

const CHECK_PROXY = 'check HTTPS_PROXY and HTTP_PROXY, or add the host to NO_PROXY';

function explainProxyAnswer(host: string, failure: ProxyFailure, status: number): RegistryError {
  const { proxy, method, target } = failure;
  const message = `proxy ${proxy} answers ${status} to ${method} ${target}`;
  const found = String(status);
  if (isPassingStatus(status)) {
    return new TransientError('proxy.unavailable', message, { host, found, hint: CHECK_PROXY });
  }
  // tinyproxy answers 401 to a wrong password.
  if (status === 407 || status === 401) {
    return new RegistryError('proxy.unauthorized', message, {
      found,
      hint: adviseOnLogin(failure.login),
    });
  }
  const code = status === 403 ? 'proxy.forbidden' : 'proxy.answer';
  const hint = `have the proxy allow ${target}, or add the host to NO_PROXY`;
  return new RegistryError(code, message, { found, hint });
}

const adviseOnLogin = ({ variable = 'HTTPS_PROXY', isSent = false }: Partial<ProxyLogin> = {}) =>
  isSent
    ? `correct the user or the password in ${variable}: the proxy refuses them`
    : `put user and password into ${variable}: http://USER:PASSWORD@HOST:PORT`;
