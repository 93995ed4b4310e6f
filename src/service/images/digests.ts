import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import pLimit from 'p-limit';
import {
  digestFromHex,
  hexOf,
  openSealedBytes,
  sealBytes,
  type Digest,
} from '../../base/digest.ts';
import { makeDirectory, writeFileAtomic } from '../../base/disk/files.ts';
import { readOwnFile } from '../../base/disk/open-file.ts';
import { sleep } from '../../base/wait.ts';
import { identifyIso } from '../../media/areas.ts';
import type { VirtualIso } from '../../media/serve/virtual.ts';
import type { InfraEnv } from '../infra-envs/infra-env.ts';
import type { ServiceKey } from '../state/keys.ts';
import type { Release } from '../store/entry.ts';
import type { Releases } from '../store/releases.ts';
import { createHashQueue, type HashClock, type HashProgress } from './hash-queue.ts';
import { labelOverlay } from './images.ts';
import type { KnownUrls } from './known-urls.ts';
import { createRecent } from './recent.ts';

/*
 * Owns the digests of images. The medium digest is known at once. The SHA-256 of all bytes is computed when a client
 * asks for it, and kept in a file below the data, next to the overlays; the file is sealed and bound to the tag of the
 * image, so that a damaged or moved one counts as absent.
 */

/** An image, with all that its digests depend on. */
export type DigestedImage = {
  readonly infraEnv: Pick<InfraEnv, 'id' | 'revision' | 'tenant'>;
  readonly release: Release;
  readonly image: VirtualIso;
};

/** The SHA-256 of an image, or how far it is. */
export type Sha256State =
  | { readonly digest: Digest }
  | (HashProgress & { /** Bytes a second, at most. */ readonly rate: number })
  | { /** Why it will not be known. */ readonly reason: string };

export type ImageDigests = {
  /** Digest that `sealift verify --medium-digest` compares; undefined on an ISO that has no index of sealift. */
  readonly readMediumDigest: (asked: DigestedImage) => Promise<Digest | undefined>;
  /** SHA-256 of all bytes, if it is known. */
  readonly findSha256: (asked: DigestedImage) => Promise<Digest | undefined>;
  /** Begins to compute the SHA-256, unless it is known. */
  readonly requestSha256: (asked: DigestedImage) => Promise<Sha256State>;
  /** Removes the digests of a revision that is no longer served. */
  readonly forget: (infraEnv: Pick<InfraEnv, 'id' | 'revision'>) => Promise<void>;
  readonly close: () => Promise<void>;
};

export type DigestSettings = {
  readonly key: ServiceKey;
  readonly releases: Pick<Releases, 'list' | 'isCurrent'>;
  readonly knownUrls: Pick<KnownUrls, 'forget'>;
  readonly data: string;
  /** Bytes a second that are hashed; 0: no SHA-256 is computed. */
  readonly rate: number;
  readonly warn: (message: string) => void;
  readonly clock?: HashClock;
};

/** Digests in memory, also those that are not known. */
const MOST = 4096;

const REAL_CLOCK: HashClock = { now: () => performance.now(), sleep };

export const digestsBelow = (data: string): string => join(data, 'digests');

export function createDigests(settings: DigestSettings): ImageDigests {
  const { releases, knownUrls, rate, warn, clock = REAL_CLOCK } = settings;
  const closing = new AbortController();
  const queue = createHashQueue({ rate, clock, signal: closing.signal, warn });
  const files = createDigestFiles(settings);
  const inOrder = pLimit(1); // a file is not removed while it is written
  const known = createRecent<Digest | undefined>(MOST);
  const media = createRecent<Digest | undefined>(MOST);
  const findSha256 = (asked: DigestedImage): Promise<Digest | undefined> =>
    known.get(nameOf(asked), () => files.read(asked));
  const add = (asked: DigestedImage): HashProgress => {
    const { infraEnv, release, image } = asked;
    const name = nameOf(asked);
    return queue.add({
      name,
      tenant: infraEnv.tenant,
      base: release.base,
      image,
      isWanted: () => releases.isCurrent(release),
      async done(digest, isDropped) {
        await inOrder(async () => {
          if (!isDropped()) await files.write(asked, digest).catch(warnOf(warn));
        });
        known.forget(name);
        await known.get(name, () => Promise.resolve(digest));
        void knownUrls.forget(infraEnv.id); // their heads have no Repr-Digest yet
      },
    });
  };
  return {
    findSha256,
    readMediumDigest: (asked) => media.get(nameOf(asked), () => readMediumDigest(asked)),
    async requestSha256(asked) {
      const digest = await findSha256(asked);
      if (digest) return { digest };
      const reason = explainAbsence(asked.release, rate);
      return reason === undefined ? { ...add(asked), rate } : { reason };
    },
    async forget(infraEnv) {
      queue.drop((name) => name.startsWith(prefixOf(infraEnv)));
      for (const release of await releases.list()) {
        await inOrder(() => files.remove(infraEnv, release));
      }
    },
    async close() {
      closing.abort();
      await queue.idle();
    },
  };
}

function explainAbsence({ isElsewhere }: Release, rate: number): string | undefined {
  if (rate === 0) return 'this service computes no SHA-256 of images';
  return isElsewhere
    ? 'the SHA-256 of an image whose ISO another server holds is not computed: all of it would be fetched'
    : undefined;
}

/** A digest that cannot be kept is known until the end of this process. */
const warnOf =
  (warn: (message: string) => void) =>
  (error: unknown): void => {
    warn(`a SHA-256 cannot be kept: ${error instanceof Error ? error.message : String(error)}`);
  };

/**
 * The tag names the bytes that the ISO below should have, and of the overlay; a file with the same tag that takes its place, as
 * after a repair, may have others.
 */
const nameOf = ({ infraEnv, image, release }: DigestedImage): string => {
  const { ino, size, mtimeMs } = release.base.file ?? {};
  return `${prefixOf(infraEnv)}${image.etag} ${ino ?? ''} ${size ?? ''} ${mtimeMs ?? ''}`;
};

const prefixOf = ({ id, revision }: Pick<InfraEnv, 'id' | 'revision'>): string =>
  `${id} ${revision} `;

async function readMediumDigest({ release, image }: DigestedImage): Promise<Digest | undefined> {
  if (!release.contents) return undefined;
  return identifyIso(release.contents, async (offset, size, buffer = Buffer.alloc(size)) => {
    const bytes = buffer.subarray(0, size);
    await image.fill(bytes, offset, new AbortController().signal);
    return bytes;
  });
}

type DigestFiles = {
  readonly read: (asked: DigestedImage) => Promise<Digest | undefined>;
  readonly write: (asked: DigestedImage, digest: Digest) => Promise<void>;
  readonly remove: (infraEnv: Pick<InfraEnv, 'id' | 'revision'>, release: Release) => Promise<void>;
};

/** A file for each image: 32 bytes, sealed. */
function createDigestFiles({ key, data }: Pick<DigestSettings, 'key' | 'data'>): DigestFiles {
  const directory = digestsBelow(data);
  const own = key.derive('digests');
  const pathOf = (
    infraEnv: Pick<InfraEnv, 'id' | 'revision'>,
    { base }: Pick<Release, 'base'>,
  ): string => join(directory, labelOverlay(infraEnv) + hexOf(base.digest));
  return {
    async read(asked) {
      const sealed = await readOwnFile(pathOf(asked.infraEnv, asked.release));
      const bytes = sealed && openSealedBytes(sealed, own, nameOf(asked));
      return bytes && digestFromHex(bytes.toString('hex'));
    },
    async write(asked, digest) {
      await makeDirectory(directory, 0o700);
      const sealed = sealBytes(Buffer.from(hexOf(digest), 'hex'), own, nameOf(asked));
      await writeFileAtomic(pathOf(asked.infraEnv, asked.release), sealed);
    },
    remove: (infraEnv, release) => rm(pathOf(infraEnv, release), { force: true }),
  };
}
