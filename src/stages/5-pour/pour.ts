import type { Digest } from '../../base/digest.ts';
import type { FileInput } from '../../base/disk/file-digests.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { Json } from '../../base/text/json.ts';
import type { Stage, StageContext, StageTime } from '../../engine/index.ts';
import type { Layout } from '../../iso/index.ts';
import { compareLayout, type LayoutComparison } from '../../media/compare-layout.ts';
import type { ReusableIso } from '../../media/seeds.ts';
import type { PlannedBlob } from '../../openshift/mirror/plan.ts';
import type { FinishedOutput, IsoPlace, PutReport } from '../../outputs/place.ts';
import { digestLayout } from '../../pour/index.ts';
import { parseReference, type Reference } from '../../registry/index.ts';
import type { StageTools } from '../tools.ts';

/*
 * The last step of every ISO: an output that is already finished is recognized; else its bytes are brought
 * into a file, a device, an object or an artifact, verified, and the ISO is sealed with checksum and report.
 */

export type PourIsoInput = {
  readonly place: IsoPlace;
  readonly layout: Layout;
  /** Absent if the layout has no bytes of a base. */
  readonly base?: FileInput;
  /** Further files that have bytes of the layout. */
  readonly files?: readonly FileInput[];
  readonly blobs: readonly PlannedBlob[];
  /** Bytes that come over the network, as far as the plan knows. */
  readonly toFetch: number;
  readonly mode: number;
  /** True if the digest of the whole is computed in any case. */
  readonly checksum: boolean;
  /** Extents poured at a time. */
  readonly lanes: number;
  /** The report, as far as it is known before the pour. */
  readonly report: Readonly<Record<string, Json | undefined>>;
  /** Times of the stages before this one. */
  readonly stages: readonly StageTime[];
};

/** The part of the report that the pour adds. */
export type PourReport = Omit<PutReport, 'isPresent'> & {
  readonly hosts: readonly {
    readonly host: string;
    readonly requests: number;
    readonly retries: number;
    readonly bytes: number;
  }[];
};

/** The part of an ISO's report that describes the run that made it. */
export type MadeIso = PourReport & {
  readonly stages: readonly StageTime[];
  /** Digest that identifies every byte of the ISO. */
  readonly layout: Digest;
  /** True if an earlier build had finished the ISO, and no byte was written. */
  readonly isUpToDate: boolean;
};

type PourIsoTools = Pick<StageTools, 'client' | 'openExtents' | 'isos' | 'openOutput'>;

/** Brings an ISO to its place and seals it; writes no byte if an earlier build has finished it. */
export const pourAndSeal: Stage<PourIsoInput, MadeIso, PourIsoTools> = {
  name: 'pour ISO',
  run: (input, tools, context) => pour(input, tools, { ...context, stage: 'pour ISO' }),
};

/** Brings a disk image to its place and seals it, like an ISO. */
export const pourAndSealDisk: Stage<PourIsoInput, MadeIso, PourIsoTools> = {
  name: 'pour disk image',
  run: (input, tools, context) => pour(input, tools, { ...context, stage: 'pour disk image' }),
};

async function pour(
  { place, report, stages, base, files, blobs, toFetch, ...work }: PourIsoInput,
  tools: PourIsoTools,
  context: StageContext & { readonly stage: string },
): Promise<MadeIso> {
  const started = performance.now();
  const { client, isos, openExtents, openOutput } = tools;
  const { size } = work.layout;
  const layout = digestLayout(work.layout);
  const output = openOutput(place, context);
  const finished = await output.look({ layout, size, checksum: work.checksum });
  const { isPresent = finished !== undefined, ...poured } = finished
    ? describeUntouched(size, finished)
    : await output.put({
        ...work,
        openExtent: openExtents({ base, files, blobs }),
        sourcesOf: listSources(blobs),
        onProgress(bytes, total, fetched) {
          const network = { bytes: fetched, total: Math.max(toFetch, fetched) };
          context.onProgress(bytes, total, { network });
        },
        ...withoutUndefined({ earlier: chooseEarlier(work.layout, isos) }),
      });
  const milliseconds = Math.round(performance.now() - started);
  const made = {
    ...poured,
    hosts: client.statistics(),
    stages: [...stages, { stage: context.stage, milliseconds, reused: false }],
    layout,
    isUpToDate: isPresent,
  };
  const sealed = { layout, report: { ...report, ...made } };
  const { digest } = made;
  if (finished?.isSealed !== true)
    await output.seal({ ...sealed, ...withoutUndefined({ digest }) });
  return made;
}

/** Describes an ISO of this size that an earlier build has finished: no byte of it was moved. */
export const describeUntouched = (
  size: number,
  { digest, noChecksum }: Omit<FinishedOutput, 'isSealed'> = {},
): PutReport => ({
  ...withoutUndefined({ digest, noChecksum }),
  bytes: { fetched: 0, copied: 0, reused: size, written: 0, readBack: 0 },
});

/** Chooses the ISO that has most of the bytes at the same places as this one. */
function chooseEarlier({ extents }: Layout, isos: readonly ReusableIso[]): ReusableIso | undefined {
  const countInPlace = (iso: ReusableIso): number =>
    extents
      .filter(({ digest, offset }) => digest && iso.extents.get(digest)?.offset === offset)
      .reduce((sum, { size }) => sum + size, 0);
  const counted = isos.map((iso) => ({ iso, bytes: countInPlace(iso) }));
  return counted.sort((a, b) => b.bytes - a.bytes)[0]?.iso;
}

function listSources(blobs: readonly PlannedBlob[]): (blob: Digest) => readonly Reference[] {
  const sources = new Map(blobs.map(({ digest, from }) => [digest, from]));
  return (blob) => (sources.get(blob) ?? []).map(parseReference);
}

export type CompareIsoInput = {
  readonly layout: Layout;
  /** Absolute path of the ISO. */
  readonly output: string;
};

export const compareIso: Stage<CompareIsoInput, LayoutComparison, object> = {
  name: 'compare ISO',
  run: ({ layout, output }, _, watched) => compareLayout(output, layout, watched),
};
