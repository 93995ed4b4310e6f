import { type Exchange, type Service, identify } from '../context.ts';
import type { InfraEnv } from '../infra-envs/infra-env.ts';
import { findInfraEnv } from '../infra-envs/routes.ts';
import { ApiFailure, notFound, requireUuid } from '../openapi.ts';
import { type Release } from '../store/entry.ts';
import { findHostUrl } from './host-urls.ts';
import type { ReadShortUrl } from './short-url.ts';
import { findName, formatRevision, type HostUrl } from './urls.ts';

/* Owns what a download requires: an InfraEnv that the client may have, its revision, and its release. */

export type AskedImage = {
  readonly infraEnv: InfraEnv;
  /** Revision that the URL was made for; absent if it names none. */
  readonly revision?: string | undefined;
  /** Host that the URL is for. */
  readonly host?: (HostUrl & { readonly host: string; readonly once: boolean }) | undefined;
  /** End of the URL, if it ends at a time. */
  readonly expires?: Date | undefined;
};

/** Finds an InfraEnv for a download; a token of the InfraEnv also allows its files. */
export async function findForDownload(service: Service, exchange: Exchange): Promise<AskedImage> {
  const id = requireUuid(exchange.req.param('infra_env_id') ?? '', 'infra_env_id');
  const token = readToken(service, exchange);
  if (token !== undefined) return findByToken(service, exchange, { token, expected: id });
  return findPlain(service, exchange, await identify(service, exchange));
}

/** Finds the InfraEnv that the path names, for a tenant. */
export async function findPlain(
  service: Service,
  exchange: Exchange,
  identity: Parameters<typeof findInfraEnv>[2],
): Promise<AskedImage> {
  const id = requireUuid(exchange.req.param('infra_env_id') ?? '', 'infra_env_id');
  const infraEnv = await findInfraEnv(service, id, identity);
  return requireNumber({ infraEnv, revision: exchange.req.query('revision') });
}

/** Token of an InfraEnv that a request has in a header or its query; without authentication it is ignored. */
export function readToken({ auth }: Service, { req }: Exchange): string | undefined {
  if (auth.type === 'none') return undefined;
  return req.header('image-token') ?? req.query('image_token') ?? req.query('api_key');
}

type GivenToken = { readonly token: string; readonly expected?: string };

/** Finds the InfraEnv of a token. The token is for one revision, and ends with it on every route. */
export async function findByToken(
  service: Service,
  { req }: Exchange,
  { token, expected }: GivenToken,
): Promise<AskedImage> {
  const { id, revision, expires } = await service.urlTokens.verify(token);
  const record = await service.state.read('infra-envs', id);
  if (!record || (expected !== undefined && id !== expected)) {
    throw notFound();
  }
  const infraEnv = await findInfraEnv(service, id, record);
  requireNumber({ infraEnv, revision });
  if ((req.query('revision') ?? revision) !== revision) throw changed(infraEnv);
  return { infraEnv, revision, expires };
}

function requireNumber(asked: AskedImage): AskedImage {
  const { infraEnv, revision } = asked;
  const [number] = revision?.split('-') ?? [];
  if (number === undefined || number === String(infraEnv.revision)) return asked;
  throw changed(infraEnv);
}

const changed = ({ id }: InfraEnv): ApiFailure =>
  new ApiFailure(410, `infra env ${id} has changed: request the URL of its image again`);

const replaced = ({ version, architecture }: Release): ApiFailure =>
  new ApiFailure(
    410,
    `the ISO of ${version} for ${architecture} was replaced: request the URL of its image again`,
  );

/** Finds the release of an InfraEnv. If the URL names a revision, it is the ISO that the URL was made for. */
export async function findRelease(
  service: Pick<Service, 'state' | 'releases'>,
  { infraEnv, revision }: AskedImage,
): Promise<Release> {
  const release = await findCurrent(service, infraEnv, revision?.split('-')[1]);
  if (revision !== undefined && revision !== formatRevision(infraEnv, release)) {
    throw replaced(release);
  }
  return release;
}

/** @param named ISO of the release, by `shortDigest`, if it is in the store */
async function findCurrent(
  service: Pick<Service, 'state' | 'releases'>,
  infraEnv: InfraEnv,
  named?: string,
): Promise<Release> {
  const { releases } = service;
  const { version, architecture } = await findVersion(service, infraEnv);
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

async function findVersion(
  service: Pick<Service, 'state' | 'releases'>,
  infraEnv: InfraEnv,
): Promise<Pick<Release, 'version' | 'architecture'>> {
  const found = await findName(service, infraEnv);
  if (found) return found;
  throw new ApiFailure(404, `infra env ${infraEnv.id} has no version, and no cluster`);
}

/** Tries each ISO of the release: the URL may be for one that is not the first. */
export async function findByShortUrl(
  service: Service,
  { req }: Exchange,
): Promise<AskedImage & { readonly release: Release }> {
  const { url, infraEnv } = await findUnproven(service, req);
  const host = url.host === undefined ? undefined : await findHostUrl(service, infraEnv, url.host);
  const { version, architecture } = await findVersion(service, infraEnv);
  const isAsked = (each: Release): boolean =>
    each.version === version && each.architecture === architecture;
  const found = (await service.releases.list()).find(
    (each) => isAsked(each) && url.isFor(each.base.digest),
  );
  // An ISO that was just being opened may be open now.
  const release = found ?? (await findCurrent(service, infraEnv));
  if (!url.isFor(release.base.digest)) throw replaced(release);
  const { expires } = url;
  return { infraEnv, host, release, revision: formatRevision(infraEnv, release), expires };
}

/** Finds the InfraEnv that a short URL names, without a proof. */
async function findUnproven(
  service: Service,
  req: Exchange['req'],
): Promise<{ readonly url: ReadShortUrl; readonly infraEnv: InfraEnv }> {
  const url = service.shortUrls.read(req.param('token') ?? '', req.param('revision') ?? '');
  const record = url && (await service.state.read('infra-envs', url.id));
  if (!url || !record) throw new ApiFailure(404, 'no image has this URL');
  if (url.expires && url.expires.getTime() <= service.now()) {
    throw new ApiFailure(410, 'the URL has expired: request the URL of the image again');
  }
  const infraEnv = await findInfraEnv(service, url.id, record);
  if (url.revision !== infraEnv.revision) throw changed(infraEnv);
  return { url, infraEnv };
}

export async function requireStore({ releases }: Pick<Service, 'releases'>): Promise<void> {
  if (!(await releases.isEmpty())) return;
  throw new ApiFailure(503, 'the store has no ISO yet');
}

export function requireNetworkBoot({ isOwn, version, architecture }: Release): void {
  if (!isOwn) return;
  throw new ApiFailure(
    400,
    `the ISO of ${version} for ${architecture} cannot boot from the network: ` +
      'its registry is read from the mounted ISO',
  );
}
