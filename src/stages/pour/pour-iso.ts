import type { FileInput } from '../../base/disk/file-input.ts';
import type { Json } from '../../base/text/canonical-json.ts';
import type { Stage } from '../../engine/stage.ts';
import type { Layout } from '../../iso/extent.ts';
import { pourIso as pourExtents, type PourResult } from '../../iso/pour/pour-iso.ts';
import type { FileDigests } from '../../openshift/files/file-digests.ts';
import type { PlannedBlob } from '../../openshift/mirror/mirror-plan.ts';
import type { BlobCache } from '../../registry/cache/blob-cache.ts';
import type { RegistryClient } from '../../registry/client.ts';
import { createExtentOpener } from '../../media/output/open-extents.ts';
import { claimIso, type IsoPlace } from '../../media/output/claim-iso.ts';
import { discardSeal, publishSeal, sealIso } from '../../media/output/seal-iso.ts';

export type StageTimes = readonly {
  readonly stage: string;
  readonly milliseconds: number;
  readonly reused: boolean;
}[];

export type PourIsoInput = {
  readonly layout: Layout;
  /** Absent where the layout has no bytes of a base. */
  readonly base?: FileInput;
  readonly blobs: readonly PlannedBlob[];
  readonly place: IsoPlace;
  /** Permission bits of the output. */
  readonly mode: number;
  /** Extents poured at a time. */
  readonly lanes: number;
  /** All that is known of the ISO before it is poured. */
  readonly report: Readonly<Record<string, Json | undefined>>;
  /** Of the stages before this one. */
  readonly times: StageTimes;
};

export type PourIsoTools = {
  readonly client: RegistryClient;
  readonly cache: BlobCache;
  readonly digests: FileDigests;
};

/** What the pour adds to the report. */
export type PourReport = {
  /** Of the whole ISO. */
  readonly digest: string;
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
  };
  readonly hosts: readonly {
    readonly host: string;
    readonly requests: number;
    readonly retries: number;
    readonly bytes: number;
  }[];
  readonly stages: StageTimes;
};

/**
 * Brings every byte to its place. Checksum and report are written before the ISO has its name, and
 * get theirs right after it: they are never of an ISO that is not there.
 */
export const pourIso: Stage<PourIsoInput, PourReport, PourIsoTools> = {
  name: 'pour ISO',
  async run(input, { client, cache, digests }, { signal, onProgress, warn }) {
    const { layout, base, blobs, place, mode, lanes } = input;
    const { output } = place;
    const started = performance.now();
    const reports: PourReport[] = [];
    const onComplete = async (poured: PourResult): Promise<void> => {
      await claimIso(place); // hours may have passed
      const { digest, fetched, copied, reused, written, readBack } = poured;
      const milliseconds = Math.round(performance.now() - started);
      const made: PourReport = {
        digest,
        bytes: { fetched, copied, reused, written, readBack },
        hosts: client.statistics().map((host) => ({ ...host })),
        stages: [...input.times, { stage: 'pour ISO', milliseconds, reused: false }],
      };
      await sealIso(output, digest, { ...input.report, ...made });
      reports.push(made);
    };
    try {
      await pourExtents({
        layout,
        output,
        mode,
        lanes,
        signal,
        onComplete,
        openExtent: createExtentOpener({ ...(base && { base }), blobs, cache, client, digests }),
        onProgress: (bytes) => {
          onProgress(bytes, layout.size);
        },
        onStale: () => {
          warn('partial output is from different inputs; starting over');
        },
      });
      await publishSeal(output);
    } catch (error) {
      await discardSeal(output);
      throw error;
    }
    const [report] = reports;
    if (report === undefined) throw new Error('a pour ended and did not say so');
    return report;
  },
};
