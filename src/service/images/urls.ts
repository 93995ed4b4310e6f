import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { Served, ServeOptions } from '../../base/http/plan-answer.ts';
import { serveBytes } from '../../base/http/serve-bytes.ts';
import type { AuthType } from '../auth/identity.ts';
import type { Cluster } from '../clusters.ts';
import { isMinorVersion } from '../../openshift/release/version.ts';
import { findMeant } from '../store/versions.ts';
import type { Exchange, Service } from '../context.ts';
import type { InfraEnv } from '../infra-envs/infra-env.ts';
import { ApiFailure } from '../openapi.ts';
import { shortDigest, type Release } from '../store/entry.ts';

/* Owns the URLs of images and their revisions, and the requirements of every download. */

export type SignedUrl = { readonly url: string; readonly expires: string };

/** Go's zero time, which assisted-service returns for a URL that does not expire. */
export const NO_EXPIRY = '0001-01-01T00:00:00.000Z';

/** Kinds of short URLs, by authentication type. */
export const URL_KINDS: Readonly<Record<AuthType, string>> = {
  none: 'byid',
  local: 'byapikey',
  rhsso: 'bytoken',
};

/**
 * Signs the URL of an InfraEnv's image. It names the revision, so that a controller that continues with
 * the old URL after a change is refused and never gets a mixture.
 *
 * @returns undefined while the InfraEnv has no release
 */
export async function signImageUrl(
  service: Service,
  exchange: Exchange,
  infraEnv: InfraEnv,
): Promise<SignedUrl | undefined> {
  const version = await findVersion(service, infraEnv);
  if (version === undefined) return undefined;
  const { id, cpu_architecture: architecture } = infraEnv;
  const release = await service.releases.find(version, architecture);
  const { type } = service.auth;
  const signed = type === 'none' ? undefined : await service.urlTokens.sign(id);
  const parts = [URL_KINDS[type], signed?.token ?? id, version, architecture, 'disconnected.iso'];
  const path = parts.map(encodeURIComponent).join('/');
  return {
    url: `${originOf(service, exchange)}/${path}?revision=${formatRevision(infraEnv, release)}`,
    expires: signed?.expires.toISOString() ?? NO_EXPIRY,
  };
}

/**
 * Formats the revision of an image; it includes the ISO, because another ISO of the same release is
 * another image.
 */
export const formatRevision = (
  { revision }: Pick<InfraEnv, 'revision'>,
  release: Release | undefined,
): string => (release ? `${revision}-${shortDigest(release)}` : String(revision));

/** Reads the short digest of the ISO that a URL was made for. */
export const readShortDigest = ({ req }: Exchange): string | undefined =>
  req.query('revision')?.split('-')[1];

/** Origin of a request; the client can use it again. */
export function originOf({ publicUrl, isTls }: Service, { req }: Exchange): string {
  if (publicUrl !== undefined) return publicUrl;
  const host = req.header('host') ?? '';
  const isHost = /^(?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/.test(host);
  return `${isTls ? 'https' : 'http'}://${isHost ? host : 'localhost'}`;
}

/**
 * Requires the current revision. A request without a revision might continue another image, so ranges are
 * refused unless If-Range names the image.
 */
export function requireRevision(
  { req, env }: Exchange,
  infraEnv: InfraEnv,
  release: Release,
): void {
  const { headers } = env.incoming;
  const revision = req.query('revision');
  if (revision === undefined) {
    if (headers['if-range'] === undefined) delete headers.range;
  } else if (revision !== formatRevision(infraEnv, release)) {
    const isSame = revision.split('-')[0] === String(infraEnv.revision);
    const changed = isSame
      ? `the ISO of ${release.version} for ${release.architecture} was replaced`
      : `infra env ${infraEnv.id} has changed`;
    throw new ApiFailure(410, `${changed}: request the URL of its image again`);
  }
}

/**
 * Finds the release of an InfraEnv.
 *
 * @param named ISO of that release, by `shortDigest`, if it is in the store
 * @throws ApiFailure 404, 500, 503
 */
export async function findRelease(
  service: Pick<Service, 'state' | 'releases'>,
  infraEnv: InfraEnv,
  named?: string,
): Promise<Release> {
  const { releases } = service;
  const { id, cpu_architecture: architecture } = infraEnv;
  const version = await findVersion(service, infraEnv);
  if (version === undefined) {
    throw new ApiFailure(404, `infra env ${id} has no version, and is not bound to a cluster`);
  }
  const release = await releases.find(version, architecture, named);
  if (release) return release;
  if (releases.isPartial()) {
    throw new ApiFailure(
      503,
      `part of the store cannot be read now, and may have the ISO of ${version}`,
    );
  }
  throw new ApiFailure(
    500,
    `failed to get installer release: failed to get release image for version ${version}: ` +
      `the store has no ISO of this version for ${architecture}`,
  );
}

/** Refuses requests while the store is empty. @throws ApiFailure 503 */
export async function requireStore({ releases }: Pick<Service, 'releases'>): Promise<void> {
  if (!(await releases.isEmpty())) return;
  throw new ApiFailure(503, 'the store has no ISO yet');
}

/**
 * Refuses network boot of an ISO of sealift: its registry is read from the mounted ISO, which a network
 * boot lacks. @throws ApiFailure 400
 */
export function requireNetworkBoot({ isOwn, version, architecture }: Release): void {
  if (!isOwn) return;
  throw new ApiFailure(
    400,
    `the ISO of ${version} for ${architecture} cannot boot from the network: ` +
      'its registry is read from the mounted ISO',
  );
}

/** Sends bytes by range, resumable. */
export async function sendBytes(
  exchange: Exchange,
  served: Served,
  options: ServeOptions,
): Promise<Response> {
  const { incoming: request, outgoing: response } = exchange.env;
  const entry = await serveBytes(
    // There is no HTTP/2 here.
    { request, response },
    served,
    options,
  );
  exchange.set('served', entry);
  return RESPONSE_ALREADY_SENT;
}

/**
 * Finds the version of an InfraEnv's medium: its own; that of its cluster if it has none, or if it was stored
 * as a minor version, before versions were exact.
 */
async function findVersion(
  service: Pick<Service, 'state' | 'releases'>,
  { tenant, cluster_id: cluster, openshift_version: own, cpu_architecture }: InfraEnv,
): Promise<string | undefined> {
  if (own !== undefined && !isMinorVersion(own)) return own;
  const record = cluster === undefined ? undefined : await service.state.read('clusters', cluster);
  const { openshift_version: bound } =
    record?.tenant === tenant ? (record.body as Pick<Cluster, 'openshift_version'>) : {};
  const version = bound ?? own;
  const all = await service.releases.list();
  const ofArchitecture = all.filter(({ architecture }) => architecture === cpu_architecture);
  return findMeant(ofArchitecture, version) ?? version;
}
