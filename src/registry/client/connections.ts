import { readText } from '../../base/http/body.ts';
import { kindOfHost } from '../../base/http/address.ts';
import {
  isCertificateFailure,
  isPassingStatus,
  networkCodeOf,
} from '../../base/http/network-failure.ts';
import { untilAborted } from '../../base/wait.ts';
import { explainAnswer } from './answer.ts';
import { parseChallenges, type Challenge } from './auth/challenge.ts';
import type { Endpoint, Transport, TransportResponse } from './transport.ts';

/** How a registry is spoken to: found out once, by GET /v2/ (distribution-spec, end-1). */
type Connection = {
  /** `https://quay.io/` */
  readonly base: URL;
  /** What it asks of those who come without an Authorization; empty for an open registry. */
  readonly challenges: readonly Challenge[];
};

export type Connections = (endpoint: Endpoint, signal: AbortSignal) => Promise<Connection>;

/** Docker Hub's API has another address than the name its images go by. */
const API_HOSTS: Readonly<Record<string, string>> = { 'docker.io': 'registry-1.docker.io' };

/**
 * Asks each registry once, and again after a failure. Plain HTTP is only tried where a registry is
 * marked insecure or is on this machine, and only when nobody speaks TLS there: a certificate that
 * is not trusted never leads to plain HTTP.
 */
export function createConnections(transport: Transport, now: () => number): Connections {
  const known = new Map<string, Promise<Connection>>();
  return (endpoint, signal) => {
    const key = JSON.stringify([endpoint.host, endpoint.insecure]);
    const held = known.get(key);
    if (held) return untilAborted(held, signal);
    const connecting = connect(endpoint, transport, now);
    known.set(key, connecting);
    connecting.catch(() => known.delete(key));
    return untilAborted(connecting, signal);
  };
}

async function connect(
  endpoint: Endpoint,
  transport: Transport,
  now: () => number,
): Promise<Connection> {
  const host = API_HOSTS[endpoint.host] ?? endpoint.host;
  const ping = async (scheme: 'https' | 'http'): Promise<Connection> => {
    const base = new URL(`${scheme}://${host}/`);
    const response = await transport({ endpoint, url: new URL('v2/', base) });
    const { status, headers } = response;
    const text = await readText(response.body);
    if (isPassingStatus(status)) {
      throw explainAnswer(endpoint.host, { status, headers, text, about: 'GET /v2/' }, now());
    }
    return { base, challenges: challengesOf(response, base) };
  };
  try {
    return await ping('https');
  } catch (error) {
    const mayBePlain =
      endpoint.insecure || kindOfHost(new URL(`https://${host}`).hostname) === 'loopback';
    if (!mayBePlain || isCertificateFailure(error) || networkCodeOf(error) === undefined) {
      throw error;
    }
    return ping('http');
  }
}

/** Only the registry's own origin may ask for credentials, not one that it redirects to. */
export function challengesOf(
  { status, headers, url }: TransportResponse,
  base: URL,
): readonly Challenge[] {
  if (status !== 401 || url.origin !== base.origin) return [];
  return parseChallenges(headers['www-authenticate']);
}
