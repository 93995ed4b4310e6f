import { routePath } from 'hono/route';
import { readTerms, type ServeOptions } from '../../base/http/plan-answer.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { VirtualIso } from '../../media/serve/virtual.ts';
import { askerOf, type Exchange, type Service } from '../context.ts';
import type { Release } from '../store/entry.ts';
import type { DigestedImage } from './digests.ts';
import type { AskedImage } from './find-image.ts';
import { endOnce } from './host-urls.ts';
import type { KnownImage } from './known-urls.ts';
import { answerSha256, describeSha256 } from './sha256.ts';
import { encodeOffer } from '../workers/image-offer.ts';
import { OFFERED } from '../workers/pass-words.ts';
import { chooseLastModified, describeFile, sendFile, withSecrecy } from './urls.ts';

/* Owns how an image is sent once it is found: what is remembered of its URL, and noted of its client. */

export type FoundImage = AskedImage & {
  readonly release: Release;
  readonly filename: string;
  /** True if the URL asks for the SHA-256 of the image. */
  readonly isSha256: boolean;
};

/**
 * Sends an image. A range is a range on every form of URL. Where the URL names no revision, the tag tells
 * images apart, and only a client that sends it in If-Range is safe from a mixture.
 */
export async function sendImage(
  service: Service,
  exchange: Exchange,
  found: FoundImage,
): Promise<Response> {
  const { infraEnv, release, filename, host } = found;
  const image = await service.images.open(infraEnv, release);
  const digested = { infraEnv, release, image };
  if (found.isSha256) return answerSha256(service, exchange, { ...digested, filename });
  const { id, tenant, revision } = infraEnv;
  service.budgets.admit(exchange.env, tenant);
  const sent = await describeImage(service, exchange, { found, image });
  const address = service.addresses.clientOf(exchange.env.incoming);
  const end = service.readers.begin({ id, revision, address, host: host?.host });
  try {
    const offered = offerImage(service, exchange, sent);
    if (offered) return offered;
    rememberImage(service, exchange, sent);
    return await sendFile(service, exchange, { served: image, ...sent });
  } finally {
    end();
    await noteDelivered(service, exchange, { ...found, size: image.size });
  }
}

type SentImage = Pick<KnownImage, 'route' | 'tenant' | 'records' | 'expires' | 'file'> & {
  readonly found: FoundImage;
  readonly image: VirtualIso;
  readonly options: ServeOptions;
  /** True if the URL alone says which bytes, until a record changes. */
  readonly isLasting: boolean;
};

async function describeImage(
  service: Service,
  exchange: Exchange,
  { found, image }: Pick<SentImage, 'found' | 'image'>,
): Promise<SentImage> {
  const { infraEnv, release, revision, expires, filename, host } = found;
  const digested = { infraEnv, release, image };
  const sha256 = await service.digests.findSha256(digested);
  const medium = await findMedium(service, digested);
  const isNamed = revision !== undefined;
  const lastModified = chooseLastModified(service, infraEnv, isNamed ? undefined : release);
  const headers = describeSha256(sha256);
  const about = withoutUndefined({ host: host?.host, sha256, medium });
  // The time is not sent before it is strong. Hosts are counted.

  return {
    found,
    image,
    options: {
      contentType: IMAGE_CONTENT,
      filename,
      headers,
      ...withoutUndefined({ lastModified }),
    },
    isLasting: !host && isNamed && isByUrl(exchange) && lastModified !== undefined,
    route: routePath(exchange, -1),
    tenant: infraEnv.tenant,
    records: [infraEnv.id, infraEnv.cluster_id ?? ''],
    file: describeFile(infraEnv, image, { file: 'image', release, ...about }),
    ...withoutUndefined({ expires }),
  };
}

function rememberImage(service: Service, exchange: Exchange, sent: SentImage): void {
  const { found, image, options, isLasting, ...about } = sent;
  if (!isLasting) return;
  service.knownUrls.remember(exchange.env.incoming, {
    ...about,
    offer: { served: image, terms: readTerms(image, withSecrecy(options)) },
    bytes: image.overlay?.packed.length ?? 0,
    isCurrent: () => service.releases.isCurrent(found.release),
  });
}

/**
 * Hands an image to the worker that passed the request on, which answers it; undefined if this process has to. Those are
 * images of hosts, which are counted, of users with a token, and of ISOs that are elsewhere.
 */
function offerImage(
  { audit, knownUrls }: Service,
  exchange: Exchange,
  { found, image, options, isLasting, ...about }: SentImage,
): Response | undefined {
  const { file, digest } = found.release.base;
  const isAnybody = !found.host && exchange.get('identity') === undefined;
  if (exchange.env.passed?.takesOffer !== true || !isAnybody || !file) return undefined;
  const offer = encodeOffer({
    ...about,
    base: { file, digest },
    overlay: image.overlay,
    options: withSecrecy(options),
    isLasting: isLasting && knownUrls.isLasting,
  });
  exchange.set('isOffered', true);
  audit.fetch(about.file, audit.clientOf(askerOf(exchange)))();
  return exchange.body(new Uint8Array(offer), 200, { [OFFERED]: '1' });
}

/** The digest that `sealift verify` compares, for the audit log. */
const findMedium = async (
  { audit, digests }: Service,
  image: DigestedImage,
): Promise<string | undefined> => (audit.isOn ? digests.readMediumDigest(image) : undefined);

/** Ends a one-time URL once every byte was delivered. */
async function noteDelivered(
  service: Service,
  exchange: Exchange,
  { infraEnv, host, size }: FoundImage & { readonly size: number },
): Promise<void> {
  const entry = exchange.get('served');
  if (host?.once !== true || !entry) return;
  const key = `${infraEnv.id} ${infraEnv.revision} ${host.number}`;
  if (!service.coverage.add({ key, owner: infraEnv.tenant, size }, entry)) return;
  await endOnce(service, infraEnv, host.number);
  const { id, revision } = infraEnv;
  const ended = { event: 'url.end', id, revision, host: host.host } as const;
  service.audit.noteLater(askerOf(exchange), ended);
}

/** True for routes that look at nothing but the URL to know who asks. */
const isByUrl = ({ req }: Exchange): boolean => !req.path.startsWith('/images/');

/** As assisted-image-service has it. */
const IMAGE_CONTENT = 'application/x-cd-image';
