import type { IncomingMessage } from 'node:http';
import type { Served, ServeOptions } from '../../base/http/plan-answer.ts';
import type { State } from '../state/state.ts';

/*
 * Owns the memory of URLs: the image of a URL as it was sent, once the routes have found it. A download is hundreds of
 * thousands of ranges of one URL, and each would read the record, prove the token and open the overlay again.
 *
 * A URL is forgotten before a change of its records is answered, at its end, and with its ISO.
 */

/** Image that a URL gives to everybody who has it. */
export type KnownImage = {
  readonly served: Served;
  readonly options: ServeOptions;
  /** Template of its route. */
  readonly route: string;
  readonly tenant: string;
  /** Ids of the records that it depends on. */
  readonly records: readonly string[];
  /** Absent: the URL does not end at a time. */
  readonly expires?: Date;
  /** True while its ISO is in the store. */
  readonly isCurrent: () => boolean;
};

export type KnownUrls = {
  readonly find: (request: IncomingMessage) => KnownImage | undefined;
  /** Notes that a request is looked up from now on: a change in between makes its result too old. */
  readonly begin: (request: IncomingMessage) => void;
  readonly remember: (request: IncomingMessage, image: KnownImage) => void;
  /** Forgets the URLs of a record; without an id, all. */
  readonly forget: (record?: string) => void;
};

/** Bytes of overlays are held by the URLs: those of InfraEnvs have 60 KiB. */
const MOST = 128;

export function createKnownUrls(now: () => number): KnownUrls {
  const images = new Map<string, KnownImage>();
  const begun = new WeakMap<IncomingMessage, number>();
  let changes = 0;
  return {
    find({ url = '', headers }) {
      const image = images.get(url);
      // The routes read a token in the head, and answer pages of other origins.
      const isPlain = headers['image-token'] === undefined && headers.origin === undefined;
      if (!image || !isPlain) return undefined;
      const isOver = image.expires !== undefined && image.expires.getTime() <= now();
      if (!isOver && image.isCurrent()) return image;
      images.delete(url);
      return undefined;
    },
    begin(request) {
      begun.set(request, changes);
    },
    remember(request, image) {
      const { url = '' } = request;
      if (begun.get(request) !== changes) return;
      images.delete(url);
      images.set(url, image);
      const [oldest] = images.keys();
      if (images.size > MOST && oldest !== undefined) images.delete(oldest);
    },
    forget(record) {
      changes += 1;
      for (const [url, { records }] of images) {
        if (record === undefined || records.includes(record)) images.delete(url);
      }
    },
  };
}

/** Remembers nothing: another process may change the records. */
export const NO_KNOWN_URLS: KnownUrls = {
  find: () => undefined,
  begin: () => undefined,
  remember: () => undefined,
  forget: () => undefined,
};

/** A state whose changes are forgotten before they are answered. */
export function forgetChanges(state: State, { forget }: Pick<KnownUrls, 'forget'>): State {
  return {
    ...state,
    async replace(collection, record) {
      try {
        return await state.replace(collection, record);
      } finally {
        forget(record.id); // also after an error: the change may have taken effect
      }
    },
    async remove(collection, id) {
      try {
        return await state.remove(collection, id);
      } finally {
        forget(id);
      }
    },
    async adopt(former, tenant) {
      try {
        await state.adopt(former, tenant);
      } finally {
        forget();
      }
    },
  };
}
