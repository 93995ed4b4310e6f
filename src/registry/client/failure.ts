import { RegistryError, SealiftError, type ErrorDetails } from '../../base/errors.ts';

/** A failure that may pass: the same request is made again later. */
export class TransientError extends RegistryError {
  /** Milliseconds the server asks us to wait (Retry-After), if it does. */
  readonly retryAfter: number | undefined;
  /** A server that counts requests (429) wants longer pauses than one that stumbled. */
  readonly limited: boolean;

  constructor(
    code: string,
    message: string,
    details: ErrorDetails & {
      readonly retryAfter?: number | undefined;
      readonly limited?: boolean;
    },
  ) {
    super(code, message, details);
    this.retryAfter = details.retryAfter;
    this.limited = details.limited ?? false;
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

const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|HOSTNAME_MISMATCH/;

/** The code of an error or of the first of its causes that has one: ECONNRESET, UND_ERR_SOCKET. */
export function networkCodeOf(error: unknown): string | undefined {
  for (let next = error; next instanceof Error; next = next.cause) {
    if ('code' in next && typeof next.code === 'string') return next.code;
  }
  return undefined;
}

/** HPE_ codes are an answer that breaks off or is no HTTP: a proxy in between that stumbled. */
const isPassing = (code: string): boolean => PASSING.has(code) || code.startsWith('HPE_');

export const isCertificateFailure = (error: unknown): boolean =>
  CERTIFICATE.test(networkCodeOf(error) ?? '');

/**
 * What a thrown value of the transport means: a TransientError where another try may help, a
 * RegistryError where the network says no, and anything else as it is, because it is a bug.
 */
export function explainNetworkFailure(host: string, cause: unknown): unknown {
  if (cause instanceof SealiftError) return cause;
  const code = networkCodeOf(cause);
  if (code === undefined) return cause;
  const details = { cause, found: code };
  if (isCertificateFailure(cause)) {
    return new RegistryError(
      'registry.certificate',
      `${host} shows a certificate we do not trust`,
      {
        ...details,
        hint: `add the CA that signed it: build.caBundle, or a .crt file in certs.d/${host}`,
      },
    );
  }
  if (isPassing(code)) {
    return new TransientError('registry.unreachable', `${host} broke off: ${code}`, details);
  }
  if (code === 'ENOTFOUND') {
    return new RegistryError('registry.unknown-host', `${host} is not known to DNS`, {
      ...details,
      hint: 'check the name, the resolver and the proxy settings',
    });
  }
  if (!/^(?:E[A-Z]+|ERR_(?:SSL|TLS)|UND_ERR_)/.test(code)) return cause;
  return new RegistryError('registry.unreachable', `${host} cannot be reached: ${code}`, details);
}
