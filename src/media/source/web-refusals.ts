import { RegistryError } from '../../base/errors.ts';
import type { Credential } from '../../registry/client/credentials.ts';
import type { TransportResponse } from '../../registry/client/transport.ts';

/** Who was asked for what. */
export type Refusing = {
  /** Printable. */
  readonly name: string;
  readonly host: string;
  /** What was found for the host when it asked for a credential. */
  readonly credential?: Credential | undefined;
};

/** The error for an answer that gives no bytes. */
export function createRefusal(
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
  if (status !== 401 && status !== 403) return 'check the address; it must be that of a file';
  if (credential?.kind === 'basic')
    return `check that "${credential.from}" is still valid for ${host}`;
  if (credential)
    return `log in with user and password: "${credential.from}" is a token for a registry`;
  return `log in with "podman login ${host}", or check that the address has not expired`;
}

export const noRanges = (name: string): RegistryError =>
  new RegistryError('source.no-ranges', `the server of ${name} gives no ranges of it`, {
    expected: '206',
    found: '200',
    hint: 'download it, and name the file',
  });

export const wrongRange = (
  name: string,
  { offset, size }: { readonly offset: number; readonly size: number },
  found: string,
): RegistryError =>
  new RegistryError(
    'source.range',
    `the server of ${name} gives another range than was asked for`,
    {
      expected: `206, bytes ${offset}-${offset + size - 1} and the size of the file`,
      found,
      hint: 'download it, and name the file',
    },
  );

export const changed = (name: string, expected: string, found: string): RegistryError =>
  new RegistryError('source.changed', `${name} changed while it was read`, {
    expected,
    found,
    hint: 'run the same command again',
  });
