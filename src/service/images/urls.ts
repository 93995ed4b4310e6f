import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { Served, ServeOptions } from '../../base/http/plan-answer.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { serveBytes } from '../../base/http/serve-bytes.ts';
import type { AuthType } from '../auth/identity.ts';
import { findCluster, type Cluster } from '../clusters.ts';
import { isMinorVersion, minorOf } from '../../openshift/release/version.ts';
import { findMeant } from '../store/versions.ts';
import type { FetchedFile } from '../audit/fetches.ts';
import { addWarnings, askerOf, NO_EXPIRY, type Exchange, type Service } from '../context.ts';
import type { InfraEnv } from '../infra-envs/infra-env.ts';
import { ApiFailure } from '../openapi.ts';
import { shortDigest, type Release } from '../store/entry.ts';
import { isPlain } from '../transport.ts';
import { describeReaders } from './readers.ts';
import { formatImageName, LONGEST_URL, type ImageName } from './short-url.ts';

/* Owns the URLs of images, their revisions and names, and how bytes are sent. */

export type SignedUrl = {
  /** Short, for controllers and for everybody else. */
  readonly url: string;
  /** The same over plain HTTP, if the service listens for both. */
  readonly httpUrl?: string;
  /** The same image in the form of assisted-service, for clients that read its path. */
  readonly longUrl: string;
  readonly expires: string;
  /** ISO that is customised; absent while the store has no such ISO. */
  readonly release?: Release;
};

/** Kinds of long URLs, by authentication type. */
export const URL_KINDS: Readonly<Record<AuthType, string>> = {
  none: 'byid',
  local: 'byapikey',
  rhsso: 'bytoken',
};

/**
 * Signs the URLs of an InfraEnv's image; undefined while it has no release. They name the revision, so that a
 * controller that continues with the old URL after a change is refused and never gets a mixture.
 */
export async function signImageUrl(
  service: Service,
  exchange: Exchange,
  infraEnv: InfraEnv & { readonly host?: HostUrl },
): Promise<SignedUrl | undefined> {
  const image = await findName(service, infraEnv);
  if (image === undefined) return undefined;
  const release = await service.releases.find(image.version, image.architecture);
  const { id, revision, host } = infraEnv;
  const expires = chooseExpiry(service, host);
  const subject = {
    id,
    revision,
    ...(release && { base: release.base.digest }),
    ...(host && { host: host.number }),
  };
  const path = service.shortUrls.format(subject, expires);
  const nameAt = (origin: string): string => {
    const start = `${origin}${path}/`;
    return start + formatImageName(image, LONGEST_URL - start.length);
  };
  const origin = originOf(service, exchange);
  const plain = plainOriginOf(service, exchange);
  return {
    url: nameAt(origin),
    longUrl: `${origin}/${await formatLongPath(service, { infraEnv, image, release })}`,
    expires: expires?.toISOString() ?? NO_EXPIRY,
    ...(plain !== undefined && { httpUrl: nameAt(plain) }),
    ...withoutUndefined({ release }),
  };
}

/** URL that one host has for itself. */
export type HostUrl = {
  readonly number: number;
  /** Time at which it ends, whichever revision it is for. */
  readonly expires_at?: string | undefined;
};

/** @returns undefined if the URL does not end at a time */
function chooseExpiry({ auth, now, urlLifetime }: Service, host?: HostUrl): Date | undefined {
  if (host?.expires_at !== undefined) return new Date(host.expires_at);
  return auth.type === 'none' ? undefined : new Date(now() + urlLifetime);
}

type LongUrl = {
  readonly infraEnv: InfraEnv;
  readonly image: ImageName;
  readonly release: Release | undefined;
};

async function formatLongPath(
  { auth, urlTokens }: Service,
  { infraEnv, image, release }: LongUrl,
): Promise<string> {
  const { version, architecture } = image;
  const revision = formatRevision(infraEnv, release);
  const { id } = infraEnv;
  const key = auth.type === 'none' ? id : (await urlTokens.sign({ id, revision })).token;
  const parts = [URL_KINDS[auth.type], key, version, architecture, 'disconnected.iso'];
  return `${parts.map(encodeURIComponent).join('/')}?revision=${revision}`;
}

/** Includes the ISO, because another ISO of the same release is another image. */
export const formatRevision = (
  { revision }: Pick<InfraEnv, 'revision'>,
  release: Release | undefined,
): string => (release ? `${revision}-${shortDigest(release)}` : String(revision));

/** Origin of a request; the client can use it again. */
export function originOf(service: Service, exchange: Exchange): string {
  if (isPlain(service, exchange)) return plainOriginOf(service, exchange) ?? '';
  const { publicUrl, isTls } = service;
  return publicUrl ?? `${isTls ? 'https' : 'http'}://${hostOf(exchange)}`;
}

function hostOf({ req }: Exchange): string {
  const host = req.header('host') ?? '';
  const isHost = /^(?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/.test(host);
  return isHost ? host : 'localhost';
}

/** Origin of the same images over plain HTTP; undefined unless the service listens for both. */
function plainOriginOf({ publicUrl, ports }: Service, exchange: Exchange): string | undefined {
  if (ports.http === undefined) return undefined;
  const origin = new URL(publicUrl ?? `http://${hostOf(exchange)}`);
  return new URL(`http://${origin.hostname}:${ports.http}`).origin;
}

/** Every answer of an InfraEnv may have secrets. */
const SECRET = { 'Cache-Control': 'no-store' };

export const withSecrecy = (options: ServeOptions): ServeOptions => ({
  ...options,
  headers: { ...SECRET, ...options.headers },
});

/** Sends bytes of an InfraEnv, or of others if `isPublic`, by range, resumable. */
export async function sendBytes(
  exchange: Exchange,
  served: Served,
  { isPublic = false, ...options }: ServeOptions & { readonly isPublic?: boolean },
): Promise<Response> {
  const { incoming: request, outgoing: response } = exchange.env;
  // There is no HTTP/2 here.
  const all = isPublic ? options : withSecrecy(options);
  const entry = await serveBytes({ request, response }, served, all);
  exchange.set('served', entry);
  return RESPONSE_ALREADY_SENT;
}

/** A file with values of one customer, and the options with which it is sent. */
export type CustomerFile = {
  readonly served: Served;
  readonly options: ServeOptions;
  readonly file: FetchedFile;
};

export const describeFile = (
  { id, revision, tenant }: InfraEnv,
  { size, etag }: Served,
  {
    release,
    ...about
  }: Pick<FetchedFile, 'file' | 'host' | 'sha256' | 'medium'> & { readonly release?: Release },
): FetchedFile => ({
  ...about,
  id,
  revision,
  tenant,
  size,
  etag,
  ...(release && {
    version: release.version,
    architecture: release.architecture,
    base: release.base.digest,
  }),
});

/** Sends a file with values of a customer, and notes who has it. */
export async function sendFile(
  { audit }: Pick<Service, 'audit'>,
  exchange: Exchange,
  { served, options, file }: CustomerFile,
): Promise<Response> {
  const end = audit.fetch(file, audit.clientOf(askerOf(exchange)));
  try {
    return await sendBytes(exchange, served, options);
  } finally {
    end(exchange.get('served'));
  }
}

/**
 * The time of an image that is strong (RFC 9110 8.8.2.2), so that a download may be resumed by it; undefined
 * during its second, in which another change may follow. If the URL names no revision, the ISO may be
 * replaced, and its own time counts as well.
 */
export function chooseLastModified(
  { now }: Pick<Service, 'now'>,
  { updated_at }: Pick<InfraEnv, 'updated_at'>,
  release?: Pick<Release, 'openedAt'>,
): Date | undefined {
  const seconds = Math.floor(Math.max(Date.parse(updated_at), release?.openedAt ?? 0) / 1000);
  return seconds < Math.floor(now() / 1000) ? new Date(seconds * 1000) : undefined;
}

/** Forgets a revision whose URLs have ended, and warns of the clients that still read it. */
export async function endUrls(
  service: Service,
  exchange: Exchange,
  infraEnv: Pick<InfraEnv, 'id' | 'revision'>,
): Promise<void> {
  await service.images.forget(infraEnv);
  await service.digests.forget(infraEnv);
  const readers = service.readers.list(infraEnv.id);
  const late = readers.filter(({ revision }) => revision <= infraEnv.revision);
  addWarnings(service, exchange, describeReaders(late));
}

/** Finds the name of an image; undefined while the InfraEnv has no version. */
export async function findName(
  service: Pick<Service, 'state' | 'releases'>,
  infraEnv: InfraEnv,
): Promise<ImageName | undefined> {
  const { name, openshift_version: own, cpu_architecture: architecture } = infraEnv;
  const cluster = await findBound(service, infraEnv);
  const bound = cluster?.openshift_version;
  // A minor version was stored before versions were exact, or without a store.
  const isOfBound = own === undefined || (isMinorVersion(own) && own === minorOf(bound ?? ''));
  const asked = isOfBound ? bound : own;
  if (asked === undefined) return undefined;
  const all = (await service.releases.list()).filter((each) => each.architecture === architecture);
  return { cluster: cluster?.name ?? name, version: findMeant(all, asked) ?? asked, architecture };
}

/** Finds the cluster of an InfraEnv; it may be removed before it. */
async function findBound(
  service: Pick<Service, 'state'>,
  infraEnv: InfraEnv,
): Promise<Cluster | undefined> {
  if (infraEnv.cluster_id === undefined) return undefined;
  try {
    return await findCluster(service, infraEnv.cluster_id, infraEnv);
  } catch (error) {
    if (error instanceof ApiFailure && error.status === 404) return undefined;
    throw error;
  }
}
