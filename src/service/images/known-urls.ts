import type { IncomingMessage } from 'node:http';
import type { Offer } from '../../base/http/serve-bytes.ts';
import { maxOf } from '../../base/lists.ts';
import type { FetchedFile } from '../audit/fetches.ts';
import type { State } from '../state/state.ts';

/*
 * Owns the memory of URLs: the image of a URL as it was sent, with its host, once the routes have found it. A download is hundreds of
 * thousands of ranges of one URL, and each would read the record, prove the token and open the overlay again.
 *
 * A URL is forgotten before a change of its records is answered, at its end, and with its ISO.
 */

/** Image that a URL gives to everybody who has it. */
export type KnownImage = {
  readonly offer: Offer;
  /** Bytes of its overlay. */
  readonly bytes: number;
  /** Template of its route. */
  readonly route: string;
  readonly tenant: string;
  /** The image as the audit log names it. */
  readonly file: FetchedFile;
  /** Ids of the records that it depends on. */
  readonly records: readonly string[];
  /** Absent: the URL does not end at a time. */
  readonly expires?: Date;
  /** True while its ISO is in the store. */
  readonly isCurrent: () => boolean;
};

type Remembered = { readonly image: KnownImage; lookedAt: number };

export type KnownUrls = {
  /** False if what is found may change at any time. */
  readonly isLasting: boolean;
  readonly find: (request: IncomingMessage) => KnownImage | undefined;
  /** Notes that a request is looked up from now on: a change in between makes its result too old. */
  readonly begin: (request: IncomingMessage) => void;
  readonly remember: (request: IncomingMessage, image: KnownImage) => void;
  /** Forgets the URLs of a record; without an id, all. Resolves when no process answers with them. */
  readonly forget: (record?: string) => Promise<void>;
};

/**
 * Milliseconds between two looks at the file of an ISO. A URL names its ISO, whose file stays open and is only replaced by
 * renaming another to its name: the bytes of this time are those that were asked for.
 */
const LOOK_EVERY = 1000;

/** URLs, and bytes of their overlays: those of InfraEnvs have some KiB, and may have MiB. */
const MOST = 128;
const MOST_BYTES = 8 << 20;

export function createKnownUrls(now: () => number): KnownUrls {
  const images = new Map<string, Remembered>();
  const begun = new WeakMap<IncomingMessage, number>();
  let changes = 0;
  return {
    isLasting: true,
    find(request) {
      const key = keyOf(request);
      const remembered = images.get(key);
      if (!remembered || !isPlain(request)) return undefined;
      const { image } = remembered;
      const isOver = image.expires !== undefined && image.expires.getTime() <= now();
      if (!isOver && isCurrent(remembered)) return image;
      images.delete(key);
      return undefined;
    },
    begin(request) {
      begun.set(request, changes);
    },
    remember(request, image) {
      const key = keyOf(request);
      if (begun.get(request) !== changes) return;
      images.delete(key);
      if (image.bytes > MOST_BYTES) return;
      images.set(key, { image, lookedAt: performance.now() });
      dropMost(images);
    },
    forget(record) {
      changes += 1;
      for (const [url, { image }] of images) {
        if (record === undefined || image.records.includes(record)) images.delete(url);
      }
      return Promise.resolve();
    },
  };
}

/** The routes look at the name of the host as well. */
const keyOf = ({ url = '', headers: { host = '' } }: IncomingMessage): string => `${host} ${url}`;

/** False for a request that the routes may refuse: they read a token in the head, and answer pages of other origins. */
function isPlain({ headers, rawHeaders }: IncomingMessage): boolean {
  if (headers['image-token'] !== undefined || headers.origin !== undefined) return false;
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    if (rawHeaders[at]?.length === 4 && rawHeaders[at]?.toLowerCase() === 'host') hosts += 1;
  }
  return hosts <= 1;
}

function isCurrent(remembered: Remembered): boolean {
  const at = performance.now();
  if (at - remembered.lookedAt < LOOK_EVERY) return true;
  remembered.lookedAt = at;
  return remembered.image.isCurrent();
}

/** Drops the oldest URLs of the InfraEnv that has most, so that who adds a query to its URL again and again displaces its own. */
function dropMost(images: Map<string, Remembered>): void {
  const parts = new Map<string, number>();
  let [sum, bytes] = [0, 0];
  for (const { image } of images.values()) {
    parts.set(image.file.id, (parts.get(image.file.id) ?? 0) + partOf(image));
    sum += 1;
    bytes += image.bytes;
  }
  const most = maxOf(parts.values());
  for (const [key, { image }] of images) {
    if (sum <= MOST && bytes <= MOST_BYTES) return;
    if ((parts.get(image.file.id) ?? 0) < most) continue;
    sum -= 1;
    bytes -= image.bytes;
    images.delete(key);
  }
  dropMost(images);
}

/** The part of the room that an image takes. */
const partOf = ({ bytes }: KnownImage): number => 1 / MOST + bytes / MOST_BYTES;

/** Remembers nothing: another process may change the records. */
export const NO_KNOWN_URLS: KnownUrls = {
  isLasting: false,
  find: () => undefined,
  begin: () => undefined,
  remember: () => undefined,
  forget: () => Promise.resolve(),
};

/** Remembers nothing here: workers remember. */
export const createKnownByWorkers = (forget: KnownUrls['forget']): KnownUrls => ({
  ...NO_KNOWN_URLS,
  isLasting: true,
  forget,
});

/** A state whose changes are forgotten everywhere before they are answered. */
export function forgetChanges(state: State, { forget }: Pick<KnownUrls, 'forget'>): State {
  return {
    ...state,
    async replace(collection, record) {
      try {
        return await state.replace(collection, record);
      } finally {
        await forget(record.id); // also after an error: the change may have taken effect
      }
    },
    async remove(collection, id) {
      try {
        return await state.remove(collection, id);
      } finally {
        await forget(id);
      }
    },
    async adopt(former, tenant) {
      try {
        await state.adopt(former, tenant);
      } finally {
        await forget();
      }
    },
  };
}
