import type { Digest } from '../../base/digest.ts';
import {
  type FileInput,
  type FileDigests,
  isSameStamp,
  readStamp,
} from '../../base/disk/file-digests.ts';
import { IntegrityError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { parseS3Address, type S3Address } from '../../base/s3/object.ts';
import type { S3 } from '../../base/s3/s3.ts';
import type { Json } from '../../base/text/json.ts';
import type { Stage, StageContext, StageTime } from '../../engine/index.ts';
import type { Layout } from '../../iso/index.ts';
import { compareLayout, type LayoutComparison } from '../../media/compare-layout.ts';
import { isOurs, readWholeIndex } from '../../media/open.ts';
import { createMountsOf, describeLayout } from '../../media/push.ts';
import type { ReusableIso } from '../../media/seeds.ts';
import type { PlannedBlob } from '../../openshift/mirror/plan.ts';
import { MOST_LAYERS, pushArtifact } from '../../outputs/artifact.ts';
import { openLayout } from '../../outputs/artifact/layout.ts';
import {
  recallFinished,
  type KnownIso,
  type IsoRecords,
  claimIso,
  type IsoPlace,
  publishIso,
  type PublishedIso,
  placeOf,
} from '../../outputs/file.ts';
import {
  claimObject as claim,
  findFinished,
  type FinishedObject,
  sealObject as seal,
  nameExtents,
  OBJECT_KEYS,
  openEarlierObject,
  isAsSent,
  removeChecksum,
  type EarlierObject,
} from '../../outputs/object.ts';
import { sendIso as send } from '../../outputs/object/send.ts';
import { openStoredObject, type FoundObject } from '../../outputs/object/stored.ts';
import { readUploadRecord, removeUploadRecord } from '../../outputs/object/upload.ts';
import {
  recordPathOf,
  parseTaggedAddress,
  isArtifactOutput,
  isObjectOutput,
} from '../../outputs/output.ts';
import { digestLayout, type PouredDevice, pourIso as pourExtents } from '../../pour/index.ts';
import { parseReference, type WritingClient } from '../../registry/index.ts';
import type { BuildTools, StageTools } from '../tools.ts';

/*
 * The last steps of every ISO: its bytes are brought into a file, a device, an object or an
 * artifact, verified, and then the ISO is sealed with checksum and report. An output that is
 * already finished is recognized here.
 */

export type PourIsoInput = {
  readonly layout: Layout;
  /** Absent if the layout has no bytes of a base. */
  readonly base?: FileInput;
  readonly blobs: readonly PlannedBlob[];
  /** Absolute path of the ISO. */
  readonly output: string;
  /** The block device that takes the ISO's bytes; its files are next to `output`. */
  readonly device?: PouredDevice;
  /** Permission bits of the output. */
  readonly mode: number;
  /** True if the digest of the whole is computed in any case. */
  readonly checksum?: boolean;
  /** Extents poured at a time. */
  readonly lanes: number;
};

/** The part of the report that the pour adds. */
export type PourReport = {
  /**
   * Digest of the whole ISO; absent if no stage has seen every byte, for the reason in
   * `noChecksum`.
   */
  readonly digest?: Digest;
  readonly noChecksum?: string;
  /** Digest of the artifact's manifest, if the ISO was pushed. */
  readonly manifest?: Digest;
  readonly bytes: {
    /** Bytes that came over the network while pouring. */
    readonly fetched: number;
    /** Bytes from the cache and the base ISO. */
    readonly copied: number;
    /** Bytes that were in the interrupted output already. */
    readonly reused: number;
    readonly written: number;
    /** Bytes that were read again from the output for its digest. */
    readonly readBack: number;
    /** Bytes that an object store copied from the previous object. */
    readonly copiedByServer?: number;
  };
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

/** Tools of the stages that bring bytes to their place. */
type PourIsoTools = Pick<StageTools, 'client' | 'openExtents' | 'isos'>;

/**
 * Runs the last stages of every ISO; only the first of them if the ISO already exists.
 *
 * @param pour its `report` has what is known of the ISO before it is poured
 */
export async function pourAndSeal<Report extends Readonly<Record<string, Json | undefined>>>(
  request: IsoPlace,
  tools: BuildTools,
  { report, ...pour }: Omit<PourIsoInput, 'output'> & { readonly report: Report },
): Promise<Report & MadeIso> {
  const place = placeOf(request);
  const { output } = place;
  const layout = digestLayout(pour.layout);
  if (isArtifactOutput(output)) return pushBuilt(layout, tools, { ...pour, output, report });
  if (isObjectOutput(output)) return sendAndSeal(layout, tools, { ...pour, output, report });
  const { engine } = tools;
  const { checksum = false } = request;
  const finished = await engine.run(findFinishedIso, { layout, output, checksum });
  if (finished !== undefined) {
    const untouched = describeUntouched(pour.layout.size, tools);
    const stages = [...engine.times()];
    return { ...report, ...finished, ...untouched, stages, isUpToDate: true };
  }
  const { device } = place;
  const poured = await engine.run(pourIso, {
    ...pour,
    output,
    checksum,
    ...withoutUndefined({ device }),
  });
  const made = {
    ...report,
    ...poured,
    stages: [...engine.times()],
    layout,
    isUpToDate: false,
  };
  const { digest } = poured;
  await engine.run(sealIso, { place, layout, report: made, ...withoutUndefined({ digest }) });
  return made;
}

/** Reports an existing ISO of this size: no byte of it was moved. */
export const describeUntouched = (
  size: number,
  { client }: Pick<BuildTools, 'client'>,
): Pick<PourReport, 'bytes' | 'hosts'> => ({
  bytes: { fetched: 0, copied: 0, reused: size, written: 0, readBack: 0 },
  hosts: client.statistics(),
});

/**
 * Runs the last stage of an ISO that becomes an artifact: the registry is asked for every layer,
 * so no other state is kept.
 */
async function pushBuilt<Report extends Readonly<Record<string, Json | undefined>>>(
  layout: Digest,
  { engine }: BuildTools,
  { report, ...input }: PourIsoInput & { readonly report: Report },
): Promise<Report & MadeIso> {
  const pushed = await engine.run(pushIso, input);
  const isUpToDate = pushed.bytes.written === 0;
  return { ...report, ...pushed, stages: [...engine.times()], layout, isUpToDate };
}

/**
 * Runs the last stages of an ISO that becomes an object; only the first of them if the object
 * already exists.
 */
async function sendAndSeal<Report extends Readonly<Record<string, Json | undefined>>>(
  layout: Digest,
  { engine, client }: BuildTools,
  { report, ...input }: SendIsoInput & { readonly report: Report },
): Promise<Report & MadeIso> {
  const { output } = input;
  const { size } = input.layout;
  const finished = await engine.run(findFinishedObject, { layout, size, output });
  const sent = finished ? undefined : await engine.run(sendIso, input);
  const made = {
    ...report,
    ...(sent ?? {
      ...describeUntouched(size, { client }),
      ...(finished?.digest === undefined
        ? { noChecksum: 'an earlier run sent it' }
        : { digest: finished.digest }),
    }),
    stages: [...engine.times()],
    layout,
    isUpToDate: sent === undefined,
  };
  if (finished?.isSealed === true) return made;
  const known = withoutUndefined({ digest: made.digest, etag: finished?.etag });
  await engine.run(sealObject, { output, layout, report: made, ...known });
  return made;
}

/** Refuses a place that must not be written; files are refused before the tools are open. */
export async function claimOutputObject(
  { output, force }: Pick<IsoPlace, 'output' | 'force'>,
  { engine }: BuildTools,
): Promise<void> {
  if (isObjectOutput(output) && !isArtifactOutput(output))
    await engine.run(claimObject, { output, force });
}

export type ClaimObjectInput = { readonly output: string; readonly force: boolean };

/** Refuses an object that no build sent, before anything is fetched. */
const claimObject: Stage<ClaimObjectInput, undefined, { readonly s3: S3 }> = {
  name: 'claim object',
  async run({ output, force }, { s3 }, { signal }) {
    const open = (address: Parameters<typeof openStoredObject>[1]) =>
      openStoredObject(s3, address, signal);
    await claim(parseS3Address(output), { open, force });
    return undefined;
  },
};

export type FinishedIsoInput = {
  /** Digest that identifies every byte of what will be built. */
  readonly layout: Digest;
  /** Absolute path of the ISO. */
  readonly output: string;
  /** True if the digest of the whole must be known. */
  readonly checksum?: boolean;
};

/**
 * Finds the output if an earlier build has finished it and it has not been touched since,
 * according to its inode; else undefined. Reads no byte of it.
 */
const findFinishedIso: Stage<
  FinishedIsoInput,
  KnownIso | undefined,
  { readonly records: IsoRecords }
> = {
  name: 'find finished ISO',
  async run({ layout, output, checksum = false }, { records }) {
    const known = await recallFinished(output, records);
    if (checksum && known?.digest === undefined) return undefined;
    return known?.layout === layout ? known : undefined;
  },
};

/**
 * Brings every byte to its place in the partial output, verified and synced. `sealIso` names it.
 */
const pourIso: Stage<PourIsoInput, PourReport, PourIsoTools> = {
  name: 'pour ISO',
  async run(
    { layout, base, blobs, output, device, mode, lanes, checksum = false },
    { client, openExtents, isos },
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
      openExtent: openExtents({ base, blobs }),
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

/** Chooses the ISO that has most of the bytes at the same places as this one. */
function chooseEarlier({ extents }: Layout, isos: readonly ReusableIso[]): ReusableIso | undefined {
  const countInPlace = (iso: ReusableIso): number =>
    extents
      .filter(({ digest, offset }) => digest && iso.extents.get(digest)?.offset === offset)
      .reduce((sum, { size }) => sum + size, 0);
  const counted = isos.map((iso) => ({ iso, bytes: countInPlace(iso) }));
  return counted.sort((a, b) => b.bytes - a.bytes)[0]?.iso;
}

/**
 * Checks that each ISO whose bytes were taken by their record is still the same file.
 *
 * @throws IntegrityError `seed.changed`
 */
async function requireSame(isos: readonly ReusableIso[]): Promise<void> {
  for (const { path, stamp, isRecorded } of isos) {
    const now = isRecorded ? await readStamp(path) : stamp;
    if (now && isSameStamp(now, stamp)) continue;
    throw new IntegrityError('seed.changed', `"${path}" changed while its bytes were reused`, {
      hint: 'run the same command again with --rehash',
    });
  }
}

export type SealIsoInput = {
  readonly place: IsoPlace;
  /** Absent if it is not known. */
  readonly digest?: NonNullable<PublishedIso['digest']>;
  readonly layout: Digest;
  /** Names hosts and times, which the ISO itself never does; it has no secret. */
  readonly report: NonNullable<PublishedIso['report']>;
};

/**
 * Gives a poured ISO its name, checksum and report. If the build is killed before that, the next
 * pour finds all of the ISO in place and this stage runs again.
 */
export const sealIso: Stage<
  SealIsoInput,
  undefined,
  { readonly digests: FileDigests; readonly records: IsoRecords }
> = {
  name: 'seal ISO',
  async run({ place, digest, layout, report }, { digests, records }) {
    const isDevice = place.device !== undefined;
    // The pour may have taken hours. A device is written by now, and a desktop may have mounted it.
    if (!isDevice) await claimIso(place, isOurs);
    await publishIso(place.output, { report, isDevice, ...withoutUndefined({ digest }) });
    if (isDevice) return undefined;
    await records.remember(place.output, layout);
    if (digest !== undefined) await digests.remember(place.output, digest);
    return undefined;
  },
};

type PushIsoTools = PourIsoTools & {
  readonly registry: Pick<WritingClient, 'writerOf' | 'placesOf'>;
};

/** Brings every layer that the registry does not have into it, verified, then the manifest and the tag. */
const pushIso: Stage<PourIsoInput, PourReport, PushIsoTools> = {
  name: 'push ISO',
  async run({ layout, base, blobs, output, lanes, mode }, tools, { signal, onProgress }) {
    const { client, registry, openExtents } = tools;
    const reference = parseTaggedAddress(output);
    const sources = new Map(blobs.map(({ digest, from }) => [digest, from]));
    const { artifact, open, counters } = await openLayout({
      layout,
      about: {
        title: `${reference.repository.split('/').at(-1) ?? ''}-${reference.tag}.iso`,
        ...describeLayout(layout),
        isPrivate: (mode & 0o004) === 0,
      },
      openExtent: openExtents({ base, blobs }),
      lanes,
      signal,
    });
    const sourcesOf = (digest: (typeof blobs)[number]['digest']) =>
      (sources.get(digest) ?? []).map(parseReference);
    const { digest, sent, mounted, present } = await pushArtifact(artifact, {
      client: registry,
      reference,
      mountsOf: createMountsOf(
        { sourcesOf },
        { client: registry, registry: reference.registry, mountFrom: [] },
      ),
      open,
      mostLayers: MOST_LAYERS,
      signal,
      onProgress,
    });
    return {
      noChecksum: 'no process had all of its bytes; a pull computes it',
      manifest: digest,
      bytes: { ...counters, reused: mounted + present, written: sent, readBack: 0 },
      hosts: client.statistics(),
    };
  },
};

export type FinishedObjectInput = {
  /** Digest that identifies every byte of what will be built. */
  readonly layout: Digest;
  /** Size of the ISO in bytes. */
  readonly size: number;
  readonly output: string;
};

/** Describes the object if it has these bytes already; else undefined. */
const findFinishedObject: Stage<
  FinishedObjectInput,
  FinishedObject | undefined,
  { readonly s3: S3; readonly workDir: string }
> = {
  name: 'find finished object',
  async run({ layout, size, output }, { s3, workDir }, { signal }) {
    const record = await readUploadRecord(recordPathOf({ output, workDir }));
    const found = await findFinished(parseS3Address(output), {
      layout,
      size,
      noted: record?.etag,
      open: (address) => openStoredObject(s3, address, signal),
    });
    if (found?.isSealed !== false) return found;
    const digest = record?.layout === layout ? record.digest : undefined;
    return { ...found, ...withoutUndefined({ digest }) };
  },
};

export type SendIsoInput = Omit<PourIsoInput, 'mode'>;

export type SendIsoTools = PourIsoTools & { readonly s3: S3; readonly workDir: string };

/** Brings every byte into the object, verified. `sealObject` writes its report. */
const sendIso: Stage<SendIsoInput, PourReport, SendIsoTools> = {
  name: 'send ISO',
  async run({ layout, base, blobs, output, lanes }, tools, { signal, onProgress, warn }) {
    const { s3, client, workDir, openExtents } = tools;
    const address = parseS3Address(output);
    const open = (signal: AbortSignal) => openStoredObject(s3, address, signal);
    const found = await open(signal).look();
    const earlier = found && (await openEarlier({ output, ...found }, tools, { signal, warn }));
    const digest = digestLayout(layout);
    const {
      digest: sha256,
      noChecksum,
      ...bytes
    } = await send({
      layout,
      digest,
      metadata: { [OBJECT_KEYS.layout]: digest, [OBJECT_KEYS.extents]: nameExtents(layout) },
      endpoint: s3.endpoint ?? '',
      record: recordPathOf({ output, workDir }),
      open,
      ...withoutUndefined({ replaces: found?.etag, earlier }),
      openExtent: openExtents({ base, blobs }),
      lanes,
      signal,
      onProgress: (bytes) => {
        onProgress(bytes, layout.size);
      },
      warn,
      beforeComplete: () =>
        removeChecksum(address, (address) => openStoredObject(s3, address, signal)),
    });
    return {
      ...withoutUndefined({ digest: sha256, noChecksum }),
      bytes: { ...bytes, readBack: 0 },
      hosts: client.statistics(),
    };
  },
};

/** Opens the object that is replaced, if its bytes may be copied. */
async function openEarlier(
  found: FoundObject & { readonly output: string },
  { s3, workDir }: SendIsoTools,
  { signal, warn }: Pick<StageContext, 'signal' | 'warn'>,
): Promise<EarlierObject | undefined> {
  const { output, etag } = found;
  const address = parseS3Address(output);
  const noted = (await readUploadRecord(recordPathOf({ output, workDir })))?.etag;
  const open = (address: S3Address) => openStoredObject(s3, address, signal);
  if (await isAsSent({ address, etag }, noted, open)) {
    return openEarlierObject(
      s3,
      { ...found, address },
      {
        readExtents: async (access) => (await readWholeIndex(access))?.extents,
        signal,
      },
    );
  }
  if (found.metadata[OBJECT_KEYS.layout] !== undefined) {
    warn(`nothing shows that ${output} is as a build left it: every byte is sent again`);
  }
  return undefined;
}

export type SealObjectInput = {
  readonly output: string;
  readonly layout: Digest;
  /** Etag of the object, if an earlier run sent it. */
  readonly etag?: string;
  /** Absent if no stage has seen every byte. */
  readonly digest?: Digest;
  readonly report: Readonly<Record<string, Json | undefined>>;
};

/**
 * Writes checksum and report next to a finished object. If the build is killed before that, the
 * next build does it.
 */
const sealObject: Stage<SealObjectInput, undefined, { readonly s3: S3; readonly workDir: string }> =
  {
    name: 'seal object',
    async run({ output, ...made }, { s3, workDir }, { signal }) {
      const record = recordPathOf({ output, workDir });
      const etag = made.etag ?? (await readUploadRecord(record))?.etag;
      await seal(parseS3Address(output), {
        ...made,
        ...withoutUndefined({ etag }),
        open: (address) => openStoredObject(s3, address, signal),
      });
      await removeUploadRecord(record);
      return undefined;
    },
  };

export type CompareIsoInput = {
  readonly layout: Layout;
  /** Absolute path of the ISO. */
  readonly output: string;
};

/** Compares an existing ISO with what would be poured. */
export const compareIso: Stage<CompareIsoInput, LayoutComparison, object> = {
  name: 'compare ISO',
  run: ({ layout, output }, _, watched) => compareLayout(output, layout, watched),
};
