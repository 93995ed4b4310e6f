import { ConfigError, IntegrityError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { openRandomAccess, type RandomAccess } from '../../base/random-access.ts';
import { formatSize } from '../../base/text/words.ts';
import { openIso, type IsoImage } from '../../iso/index.ts';
import { refuseQcow2 } from '../disk-image.ts';
import { readIndex } from '../media-index.ts';
import { isDelta, readDeltaHead } from './file.ts';
import { refuseHalfApplied } from './in-place/marker.ts';
import { formatIsoName, nameIso, type IsoName } from './name.ts';
import { PARITY, readPartHead } from './part.ts';

/* Descriptions of deltas for people, from which ISO to which, and of files that were mixed up. */

/** One of the two ISOs of a delta; only its digest is known of deltas of earlier versions. */
export type DeltaEnd = Partial<IsoName> & {
  /** Identifies all bytes of the ISO that the delta applies to, or is that of the index file of the one it makes. */
  readonly digest: string;
};

/** Description of a delta or of a part of one, from its head. Sizes are bytes. */
export type DeltaDescription =
  | {
      readonly kind: 'delta';
      readonly size: number;
      readonly from: DeltaEnd;
      readonly to: DeltaEnd & { readonly size: number };
      readonly patches: number;
    }
  | {
      readonly kind: 'delta-part';
      readonly size: number;
      /** Absent: the parity. */
      readonly number?: number;
      /** Number of the parts, without the parity. */
      readonly parts: number;
      readonly deltaSize: number;
    };

/** Undefined for any other file. @throws IntegrityError `delta.malformed` */
export async function describeDelta(file: RandomAccess): Promise<DeltaDescription | undefined> {
  if (!(await isDelta(file))) return undefined;
  const part = await readPartHead(file);
  if (part) {
    const { number, list } = part;
    return {
      kind: 'delta-part',
      size: file.size,
      ...(number !== PARITY && { number }),
      parts: list.parts.length,
      deltaSize: list.size,
    };
  }
  const { from, index, names, size, patches } = await readDeltaHead(file);
  return {
    kind: 'delta',
    size: file.size,
    from: { ...names?.from, digest: from },
    to: { ...names?.to, digest: index.digest, size },
    patches: patches.size,
  };
}

/** Formats `a delta from live-iso 4.21.2 x86_64 to live-iso 4.21.3 x86_64`. */
export function formatDeltaName(delta: DeltaDescription): string {
  if (delta.kind === 'delta') {
    return `a delta from ${formatEnd(delta.from)} to ${formatEnd(delta.to)}`;
  }
  const { number, parts, deltaSize } = delta;
  const which = number === undefined ? 'the parity' : `part ${number} of ${parts}`;
  return `${which} of a delta of ${formatSize(deltaSize)}`;
}

/** By digest if the name is not known. */
export function formatEnd({ product, version, architecture, day, digest }: DeltaEnd): string {
  if (product === undefined || version === undefined || architecture === undefined) return digest;
  return formatIsoName({ product, version, architecture, ...withoutUndefined({ day }) });
}

async function refuseDelta(file: RandomAccess): Promise<void> {
  const delta = await nameGiven(file);
  if (delta === undefined) return;
  throw new IntegrityError('iso.not-iso9660', `${file.path} is ${delta}, not an ISO`, {
    expected: 'an ISO',
    found: 'a delta',
    hint: 'apply it with "sealift apply OLD.iso DELTA --output NEW.iso", and name the new ISO',
  });
}

/** @throws IntegrityError `delta.half-applied`, `disk-image.qcow2`; the errors of `openIso` and `refuseDelta` */
export async function openGivenIso(image: RandomAccess): Promise<IsoImage> {
  try {
    return await openIso(image);
  } catch (error) {
    if (error instanceof IntegrityError) {
      await refuseDelta(image);
      await refuseHalfApplied(image);
      await refuseQcow2(image);
    }
    throw error;
  }
}

/**
 * Refuses files in another order, or of another kind. One that cannot be read is accepted: a part of a delta
 * may be lost.
 *
 * @throws IntegrityError `iso.not-iso9660`, `delta.malformed`
 */
export async function requireApplicable(old: string, deltas: readonly string[]): Promise<void> {
  const oldDelta = await useReadable(old, nameGiven);
  const isos: { readonly path: string; readonly name: string }[] = [];
  for (const path of deltas) {
    const name = await useReadable(path, nameGivenIso);
    if (name !== undefined) isos.push({ path, name });
  }
  const [iso] = isos;
  if (oldDelta !== undefined && iso) {
    throw new IntegrityError(
      'iso.not-iso9660',
      `the arguments are swapped: ${old} is ${oldDelta}, and ${iso.path} is ${iso.name}`,
      { expected: 'the ISO, then the delta', found: 'the delta first', hint: 'name the ISO first' },
    );
  }
  if (!iso) return;
  throw new IntegrityError('delta.malformed', `${iso.path} is ${iso.name}, not a delta`, {
    expected: 'a delta',
    found: 'an ISO',
    hint: 'name the file that "sealift delta OLD.iso NEW.iso --output DELTA" wrote',
  });
}

async function nameGiven(file: RandomAccess): Promise<string | undefined> {
  try {
    const delta = await describeDelta(file);
    return delta && formatDeltaName(delta);
  } catch (error) {
    if (error instanceof IntegrityError) return 'a delta that is not complete';
    throw error;
  }
}

/** Names an ISO; undefined for any other file, and for one that is damaged. */
async function nameGivenIso(file: RandomAccess): Promise<string | undefined> {
  try {
    const iso = await openIso(file);
    const index = await readIndex(iso);
    return index
      ? `the ISO ${formatIsoName(await nameIso(index, iso))}`
      : `an ISO with the volume name "${iso.volume.volumeId}"`;
  } catch (error) {
    if (error instanceof IntegrityError) return undefined;
    throw error;
  }
}

async function useReadable<Result>(
  path: string,
  work: (file: RandomAccess) => Promise<Result>,
): Promise<Result | undefined> {
  let file: RandomAccess;
  try {
    file = await openRandomAccess(path);
  } catch (error) {
    if (error instanceof ConfigError) return undefined;
    throw error;
  }
  try {
    return await work(file);
  } finally {
    await file.close();
  }
}
