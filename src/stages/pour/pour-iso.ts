import type { Digest } from '../../base/digest.ts';
import type { FileInput } from '../../base/disk/file-digests.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { Stage } from '../../engine/stage.ts';
import type { Layout } from '../../iso/extent.ts';
import type { PouredDevice } from '../../pour/device.ts';
import { pourIso as pourExtents } from '../../pour/pour.ts';
import type { FileDigests } from '../../base/disk/file-digests.ts';
import type { PlannedBlob } from '../../openshift/mirror/plan.ts';
import type { BlobCache } from '../../base/store/store.ts';
import type { RegistryClient } from '../../registry/client.ts';
import { isSameStamp, readStamp } from '../../base/disk/file-digests.ts';
import { IntegrityError } from '../../base/errors.ts';
import type { ReusableIso } from '../../media/seeds.ts';
import { createExtentOpener } from '../../media/output/open-extents.ts';

export type PourIsoInput = {
  readonly layout: Layout;
  /** Absent where the layout has no bytes of a base. */
  readonly base?: FileInput;
  readonly blobs: readonly PlannedBlob[];
  /** Absolute path of the ISO. */
  readonly output: string;
  /** The block device that takes its bytes; its files are beside `output`. */
  readonly device?: PouredDevice;
  /** Permission bits of the output. */
  readonly mode: number;
  /** Whether the digest of the whole is computed in any case. */
  readonly checksum?: boolean;
  /** Extents poured at a time. */
  readonly lanes: number;
};

export type PourIsoTools = {
  readonly client: RegistryClient;
  readonly cache: BlobCache;
  readonly digests: FileDigests;
  readonly isos: readonly ReusableIso[];
};

/** What the pour adds to the report. */
export type PourReport = {
  /** Of the whole ISO; absent where nobody has seen every byte, as `noChecksum` says. */
  readonly digest?: Digest;
  readonly noChecksum?: string;
  /** Of the artifact, where the ISO was pushed. */
  readonly manifest?: Digest;
  readonly bytes: {
    /** Over the network while pouring. */
    readonly fetched: number;
    /** From the cache and the base ISO. */
    readonly copied: number;
    /** Stood in the interrupted output already. */
    readonly reused: number;
    readonly written: number;
    /** Read again from the output for its digest. */
    readonly readBack: number;
    /** By an object store, out of the object that was there. */
    readonly copiedByServer?: number;
  };
  readonly hosts: readonly {
    readonly host: string;
    readonly requests: number;
    readonly retries: number;
    readonly bytes: number;
  }[];
};

/** Brings every byte to its place in the partial output, verified and synced. `sealIso` names it. */
export const pourIso: Stage<PourIsoInput, PourReport, PourIsoTools> = {
  name: 'pour ISO',
  async run(
    { layout, base, blobs, output, device, mode, lanes, checksum = false },
    { client, cache, digests, isos },
    { signal, onProgress, warn },
  ) {
    const earlier = device ? undefined : chooseEarlier(layout, isos);
    const { digest, fetched, copied, reused, written, readBack } = await pourExtents({
      layout,
      output,
      mode,
      lanes,
      checksum,
      signal,
      ...withoutUndefined({ device, earlier }),
      openExtent: createExtentOpener({ base, blobs, cache, client, digests }),
      onProgress: (bytes) => {
        onProgress(bytes, device ? 2 * layout.size : layout.size);
      },
      warn,
    });
    await requireSame(isos);
    return {
      ...(digest === undefined ? { noChecksum: CLONED } : { digest }),
      bytes: { fetched, copied, reused, written, readBack },
      hosts: client.statistics(),
    };
  },
};

const CLONED = 'most of it was cloned and not read; --checksum reads it';

/** The ISO that has most of the bytes where this one is to have them. */
function chooseEarlier({ extents }: Layout, isos: readonly ReusableIso[]): ReusableIso | undefined {
  const countInPlace = (iso: ReusableIso): number =>
    extents
      .filter(({ digest, offset }) => digest && iso.extents.get(digest)?.offset === offset)
      .reduce((sum, { size }) => sum + size, 0);
  const counted = isos.map((iso) => ({ iso, bytes: countInPlace(iso) }));
  return counted.sort((a, b) => b.bytes - a.bytes)[0]?.iso;
}

/**
 * Whose bytes were taken by their record must be the same file still.
 *
 * @throws IntegrityError `seed.changed`
 */
async function requireSame(isos: readonly ReusableIso[]): Promise<void> {
  for (const { path, stamp, isRecorded } of isos) {
    const now = isRecorded ? await readStamp(path) : stamp;
    if (now && isSameStamp(now, stamp)) continue;
    throw new IntegrityError('seed.changed', `"${path}" changed while its bytes were taken over`, {
      hint: 'run the same command again with --rehash',
    });
  }
}
