import { join } from 'node:path';
import { digestOf, hexOf, type Digest } from '../base/digest.ts';
import type { BlockDevice } from '../base/disk/block-device.ts';
import type { FileStamp } from '../base/disk/file-digests.ts';
import { ConfigError, UsageError } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import type { ByteRange, RandomAccess } from '../base/random-access.ts';
import type { Json } from '../base/text/json.ts';
import type { Layout } from '../iso/index.ts';
import type { EarlierIso, ExtentOpener } from '../pour/index.ts';
import { parseReference, type Reference } from '../registry/index.ts';
import { decodeJson, ifFaultless } from '../shape/decode.ts';
import {
  DIGEST,
  INTEGER,
  LEFT_OUT,
  optional,
  record,
  refine,
  TEXT,
  type TypeOf,
} from '../shape/shape.ts';

/*
 * The words that all outputs share: the place of an ISO that will be written, and the calls that bring it
 * there. A layout comes in with what opens its extents; a named ISO with its checksum and report leaves. This
 * room must not know what is on a medium: its reader is an argument.
 */

/** Files of this machine that a build may reuse. Absolute paths. */
export type IsoReuse = {
  /** Seeds that the user named: an ISO of ours, the root of a registry, an OCI layout. */
  readonly seeds: readonly string[];
  /** The ISO that is replaced: no error if it does not exist or is not a readable ISO of ours. */
  readonly replaced: string;
  /** A folder of blobs that builds share; absent: none. */
  readonly cache?: string;
  readonly takesBlobs: boolean;
  readonly keepsPlaces: boolean;
  /** True if the record that an earlier build made of a file is trusted while its inode is unchanged. */
  readonly trustsRecords: boolean;
};

/** The place of an ISO that will be written. */
export type IsoPlace = {
  /** Absolute path of the ISO, or the address of an object or an artifact. */
  readonly output: string;
  readonly workDir: string;
  /** Every file and directory that the build reads; absolute paths. */
  readonly inputs: readonly string[];
  readonly force: boolean;
  /** True if the digest of the whole ISO is computed even if an earlier ISO is cloned. */
  readonly checksum?: boolean;
  /** Absent: nothing is reused. */
  readonly reuses?: IsoReuse;
  /** The device that takes the bytes; `output` then names its records in the work directory. */
  readonly device?: BlockDevice;
};

const REPORT = record(
  {
    /** The products are in a room above this one. */
    product: refine(TEXT, (name) =>
      /-(?:iso|image)$/.test(name) ? undefined : 'is not a product',
    ),
    isoSize: optional(INTEGER),
    layout: optional(DIGEST),
    digest: optional(DIGEST),
  },
  LEFT_OUT,
);

/** The report next to an ISO, as far as it describes the file. */
export type WrittenReport = TypeOf<typeof REPORT>;

/** Undefined for any other file. */
export const parseReport = (text: Uint8Array | string): WrittenReport | undefined =>
  ifFaultless(decodeJson(REPORT, text));

export const placeOf = ({ output, workDir, inputs, force, device }: IsoPlace): IsoPlace => ({
  output,
  workDir,
  inputs,
  force,
  ...withoutUndefined({ device }),
});

export type OutputKind = 'file' | 'device' | 'object' | 'artifact';

export function outputKindOf({ output, device }: Pick<IsoPlace, 'output' | 'device'>): OutputKind {
  if (device) return 'device';
  if (output.startsWith(SCHEME)) return 'artifact';
  return output.startsWith('s3://') ? 'object' : 'file';
}

/** True for a file or a device. */
export const isHere = (place: Pick<IsoPlace, 'output' | 'device'>): boolean =>
  ['file', 'device'].includes(outputKindOf(place));

/** The record of the upload of an output that is elsewhere. */
export const recordPathOf = ({ output, workDir }: Pick<IsoPlace, 'output' | 'workDir'>): string =>
  join(workDir, 'uploads', hexOf(digestOf(output)).slice(0, 16));

/** The path next to which the files about an output are: for an object, its record. */
const pathOf = (place: IsoPlace): string => (isHere(place) ? place.output : recordPathOf(place));

/** Lock by which builds of one output exclude each other. */
export const lockPathOf = (place: IsoPlace): string => `${pathOf(place)}.lock`;

/** The room that an output takes on this machine: an object takes none besides its record. */
export const roomOf = (
  place: IsoPlace & { readonly isThere?: boolean },
): { readonly output: string; readonly isThere: boolean; readonly device?: BlockDevice } => ({
  output: pathOf(place),
  isThere: place.isThere ?? !isHere(place),
  ...withoutUndefined({ device: place.device }),
});

type SealNames = { readonly checksum: string; readonly report: string };

/** The files that describe an ISO, and their names until the ISO has its name. */
export const namesBeside = (output: string): SealNames & { readonly aside: SealNames } => ({
  checksum: `${output}.sha256`,
  report: `${output}.report.json`,
  aside: { checksum: `${output}.partial.sha256`, report: `${output}.partial.report.json` },
});

/** The place of a written ISO, for its report. */
export type DescribedOutput = {
  readonly output: string;
  readonly device?: {
    readonly serial: string;
    /** Bytes. */
    readonly size: number;
    readonly report: string;
  };
};

export const describeOutput = ({ output, device }: IsoPlace): DescribedOutput => {
  if (!device) return { output };
  const { path, serial, size } = device;
  return { output: path, device: { serial, size, report: namesBeside(output).report } };
};

/** A place that an ISO is written to: the same four calls for a file, a device, an object, an artifact. */
export type Output = {
  /** Refuses, before anything is fetched, to replace what must not be replaced. */
  readonly claim: () => Promise<void>;
  /** Finds the ISO if an earlier build has finished it and it is unchanged; reads no payload. */
  readonly look: (wanted: WantedIso) => Promise<FinishedOutput | undefined>;
  /** Brings every extent to its place, verified; continues what was interrupted. */
  readonly put: (work: PutWork) => Promise<PutReport>;
  /**
   * Gives the ISO its name, checksum and report; last of all. A build killed before finds all bytes in place.
   */
  readonly seal: (made: SealedIso) => Promise<void>;
};

export type WantedIso = {
  /** Digest that identifies every byte of what will be built. */
  readonly layout: Digest;
  /** Bytes. */
  readonly size: number;
  /** True if the digest of the whole must be known. */
  readonly checksum: boolean;
};

/** The digest of the whole ISO; absent if no process has seen every byte, for the reason in `noChecksum`. */
type WholeDigest = { readonly digest?: Digest; readonly noChecksum?: string };

export type FinishedOutput = WholeDigest & {
  /** True if its report is next to it: a build that is killed at its end leaves no report. */
  readonly isSealed: boolean;
};

export type PutWork = {
  readonly layout: Layout;
  /** Permission bits of the output. */
  readonly mode: number;
  /** Extents poured at a time. */
  readonly lanes: number;
  /** True if the digest of the whole is computed in any case. */
  readonly checksum: boolean;
  readonly openExtent: ExtentOpener;
  /** Original repositories of the images that contain a blob. */
  readonly sourcesOf: (blob: Digest) => readonly Reference[];
  /** An ISO on this machine that shares many bytes with this one at the same offsets. */
  readonly earlier?: EarlierIso & { readonly stamp: FileStamp };
  /** Bytes of the output, out of all, and those that came over the network. */
  readonly onProgress: (bytes: number, total: number, fetched: number) => void;
};

export type PutReport = WholeDigest & {
  /** Digest of the artifact's manifest, if the ISO was pushed. */
  readonly manifest?: Digest;
  /** True if no byte had to be written because an earlier build had brought all of them. */
  readonly isPresent?: boolean;
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
};

export type SealedIso = {
  readonly layout: Digest;
  /** Absent if it is not known. */
  readonly digest?: Digest;
  /** Names hosts and times, which the ISO itself never does; it has no secret. */
  readonly report: Readonly<Record<string, Json | undefined>>;
};

/** Readers of media, which are in a room above this one. */
export type MediaReader = {
  /** True for the contents of a medium of ours, or of a delta. */
  readonly recognize: (access: RandomAccess) => Promise<boolean>;
  /** The extents that the index of a medium lists; undefined if there is no whole medium. */
  readonly readExtents: (
    access: RandomAccess,
  ) => Promise<readonly (ByteRange & { readonly digest?: Digest })[] | undefined>;
  /** The digest of the index of a layout, and the version that the medium carries. */
  readonly describe: (layout: Layout) => { readonly index: string; readonly version?: string };
};

const SCHEME = 'oci://';

/** @throws UsageError `usage.artifact` */
export function parseArtifactAddress(text: string): Reference {
  if (!text.startsWith(SCHEME)) throw malformed(text, `it does not begin with ${SCHEME}`);
  try {
    return parseReference(text.slice(SCHEME.length));
  } catch (cause) {
    if (cause instanceof ConfigError) throw malformed(text, cause.message);
    throw cause;
  }
}

/** A push address must have a name that stays: a tag. */
export function parseTaggedAddress(text: string): Reference & { readonly tag: string } {
  const reference = parseArtifactAddress(text);
  const { tag, digest } = reference;
  if (tag !== undefined && digest === undefined) return { ...reference, tag };
  throw malformed(text, 'a push needs a tag, and takes no digest');
}

const malformed = (text: string, reason: string): UsageError =>
  new UsageError('usage.artifact', `"${text}" is not the address of an artifact: ${reason}`, {
    expected: 'oci://REGISTRY/REPOSITORY:TAG',
    found: text,
  });
