import type { AuthType } from '../auth/identity.ts';
import { findCluster } from '../clusters.ts';
import type { Exchange, Service } from '../context.ts';
import { ApiFailure } from '../api-failure.ts';
import type { InfraEnv } from '../infra-envs/infra-env.ts';

/** Go's zero time: what assisted-service says of a URL that does not expire. */
export const NO_EXPIRY = '0001-01-01T00:00:00.000Z';

/** The kinds of short URLs, by how clients are known. */
const URL_KINDS: Readonly<Record<AuthType, string>> = {
  none: 'byid',
  local: 'byapikey',
  rhsso: 'bytoken',
};

export type SignedUrl = { readonly url: string; readonly expires: string };

/**
 * Where the image of an InfraEnv is. It names the revision: behind a change, a controller that goes on with
 * the old URL is refused, and never gets a mixture.
 *
 * @returns undefined while nobody said which release it is of
 */
export async function signImageUrl(
  service: Service,
  exchange: Exchange,
  infraEnv: InfraEnv,
): Promise<SignedUrl | undefined> {
  const version = await findVersion(service, infraEnv);
  if (version === undefined) return undefined;
  const { id, revision, cpu_architecture: architecture } = infraEnv;
  const { type } = service.auth;
  const signed = type === 'none' ? undefined : await service.urlTokens.sign(id);
  const parts = [URL_KINDS[type], signed?.token ?? id, version, architecture, 'disconnected.iso'];
  const path = parts.map(encodeURIComponent).join('/');
  return {
    url: `${originOf(service, exchange)}/${path}?revision=${revision}`,
    expires: signed?.expires.toISOString() ?? NO_EXPIRY,
  };
}

async function findVersion(service: Service, infraEnv: InfraEnv): Promise<string | undefined> {
  const { cluster_id: cluster, openshift_version: version } = infraEnv;
  if (cluster === undefined) return version;
  try {
    return (await findCluster(service, cluster, infraEnv)).openshift_version;
  } catch (error) {
    if (error instanceof ApiFailure && error.status === 404) return version;
    throw error;
  }
}

/** What the client asked is where it can ask again. */
function originOf({ publicUrl, isTls }: Service, { req }: Exchange): string {
  if (publicUrl !== undefined) return publicUrl;
  const host = req.header('host') ?? '';
  const isHost = /^(?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/.test(host);
  return `${isTls ? 'https' : 'http'}://${isHost ? host : 'localhost'}`;
}
