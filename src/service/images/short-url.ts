import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { digestOf, hexOf, type Digest } from '../../base/digest.ts';
import { formatUuid, markUuid } from '../../base/uuid.ts';

/*
 * Owns the form of short URLs, which management controllers take:
 *
 *     /i/<token>/<revision>[.<number of the host>]/<name>.iso
 *
 * The token is base64url of these bytes, in order:
 *
 *     9 or 16   the InfraEnv: the first bytes of its id, or the whole id
 *     4         seconds since 2020 when the URL ends, big-endian; 0: never
 *     11        HMAC-SHA-256, truncated (RFC 2104 5), of all members of its subject
 *
 * The code covers the whole digest of the ISO below, so that a URL never gives bytes of another ISO.
 */

export type ShortUrlSubject = {
  /** Id of the InfraEnv. */
  readonly id: string;
  readonly revision: number;
  /** Digest of the ISO that is customised; absent while the store has no such ISO. */
  readonly base?: Digest;
  /** Number of the host's URL, from 1, never used again; absent: the URL is for every host. */
  readonly host?: number;
};

/** A short URL as a client sent it; unproven until it was compared with its subject. */
export type ReadShortUrl = {
  readonly id: string;
  readonly revision: number;
  readonly host?: number;
  /** Absent: it does not end at a time. */
  readonly expires?: Date;
  readonly isFor: (base: Digest | undefined) => boolean;
};

export type ShortUrls = {
  /** @returns the path up to the name, without its slash. @param expires rounded up to seconds */
  readonly format: (subject: ShortUrlSubject, expires?: Date) => string;
  /** @returns undefined if it has another form */
  readonly read: (token: string, revision: string) => ReadShortUrl | undefined;
};

/** Bytes of an id that are random; the rest follows from them. */
const KEY = 9;
const ID = 16;
const CODE = 11;
/** Seconds from 1970 to 2020. */
const EPOCH = 1_577_836_800;

/**
 * Creates the id of an InfraEnv: a UUID (RFC 9562 5.8, version 8) whose first nine bytes determine the
 * rest, so that a short URL needs no more than those. 66 of their bits are random.
 */
export function createShortId(): string {
  return completeId(markUuid(randomBytes(KEY), 8));
}

/** @param key 32 bytes, used for short URLs alone */
export function createShortUrls(key: Uint8Array): ShortUrls {
  const sign = (parts: readonly unknown[]): Buffer =>
    createHmac('sha256', key).update(JSON.stringify(parts)).digest().subarray(0, CODE);
  const signSubject = (subject: ShortUrlSubject, seconds: number): Buffer => {
    const { id, revision, base = '', host = 0 } = subject;
    return sign([id, revision, base, host, seconds]);
  };
  return {
    format(subject, expires) {
      const seconds = expires ? Math.ceil(expires.getTime() / 1000) - EPOCH : 0;
      const end = Buffer.alloc(4);
      end.writeUInt32BE(seconds);
      const bytes = [shortenId(subject.id), end, signSubject(subject, seconds)];
      const { revision, host } = subject;
      const place = host === undefined ? String(revision) : `${revision}.${host}`;
      return `/i/${Buffer.concat(bytes).toString('base64url')}/${place}`;
    },
    read(token, place) {
      const bytes = Buffer.from(token, 'base64url');
      const size = bytes.length - 4 - CODE;
      const [, revision, host] = /^([1-9]\d{0,14})(?:\.([1-9]\d{0,5}))?$/.exec(place) ?? [];
      const isWhole = bytes.toString('base64url') === token;
      if (!isWhole || revision === undefined || (size !== KEY && size !== ID)) return undefined;
      const id =
        size === KEY ? completeId(bytes.subarray(0, KEY)) : formatUuid(bytes.subarray(0, ID));
      const seconds = bytes.readUInt32BE(size);
      const hosts = host === undefined ? {} : { host: Number(host) };
      const about = { id, revision: Number(revision), ...hosts };
      return {
        ...about,
        ...(seconds !== 0 && { expires: new Date((seconds + EPOCH) * 1000) }),
        isFor: (base) =>
          timingSafeEqual(
            signSubject({ ...about, ...(base && { base }) }, seconds),
            bytes.subarray(size + 4),
          ),
      };
    },
  };
}

/** The bytes of an id that a URL needs: all of them, unless `createShortId` made it. */
function shortenId(id: string): Buffer {
  const bytes = Buffer.from(id.replaceAll('-', ''), 'hex');
  const key = bytes.subarray(0, KEY);
  return completeId(key) === id ? key : bytes;
}

function completeId(key: Uint8Array): string {
  const rest = Buffer.from(hexOf(digestOf(key)), 'hex').subarray(0, ID - KEY);
  return formatUuid(Buffer.concat([key, rest]));
}

/** Longest URL that every known controller takes, in characters. */
export const LONGEST_URL = 99;

/** Parts of a file name, the less important ones first. */
export type ImageName = {
  readonly cluster: string;
  readonly version: string;
  readonly architecture: string;
};

/** If there is no room, the architecture is left out, then the cluster is cut. `room` includes `.iso`. */
export function formatImageName(
  { cluster, version, architecture }: ImageName,
  room = Infinity,
): string {
  const words = [cluster, version, architecture].map(toNameWord);
  const [name = '', release = '', machine = ''] = words;
  const cut = name.slice(0, Math.max(0, room - release.length - '-.iso'.length));
  const forms = [
    [name, release, machine],
    [name, release],
    [cut.replace(/[._-]+$/, ''), release],
  ];
  const names = forms.map((form) => `${form.filter((word) => word !== '').join('-')}.iso`);
  return names.find((each) => each.length <= room) ?? 'image.iso';
}

/** Characters that need no percent sign in a URL, and none that a controller could take for something else. */
const toNameWord = (text: string): string =>
  text
    .replaceAll(/[^A-Za-z0-9._-]+/g, '-')
    .replaceAll(/^[._-]+|[._-]+$/g, '')
    .slice(0, 64);

/** Names that a short URL may end in. */
export const IMAGE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,200}\.iso$/;
