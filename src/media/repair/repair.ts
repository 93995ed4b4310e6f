import { explaining, explainWriteError } from '../../base/disk/disk-errors.ts';
import { withLease, type LeaseOptions } from '../../base/disk/lease.ts';
import { openInPlace } from '../../base/disk/open-file.ts';
import type { ImageProblem } from '../../base/errors.ts';
import { withoutUndefined, sumSizes } from '../../base/lists.ts';
import type { RandomAccess } from '../../base/random-access.ts';
import type { BlobSource } from '../../base/store/blob-source.ts';
import { overlayAccess, withPristineDigests } from '../areas.ts';
import { refuseHalfCustomised } from '../customize/write.ts';
import { refuseHalfApplied } from '../delta/in-place/marker.ts';
import { judgeAreas, type JudgedArea } from '../judge-areas.ts';
import type { IndexExtent, MediaIndex } from '../media-index.ts';
import { planContents } from '../area-values.ts';
import { type MediumAreas, readAreas } from '../medium.ts';
import { describeDamage, openDamaged, useImage, type IsoSource } from '../open.ts';
import { findGaps, type Verification, type VerifyOptions } from '../verify-contents.ts';
import { verifyExtents, type DamagedExtent } from '../verify-extents.ts';
import { verifyIso } from '../verify.ts';
import {
  copyFromFile,
  writeAt,
  type OpenTarget,
  type Repair,
  type Repaired,
  openBlobRepair,
  repairFromManifests,
  type RemoteOptions,
} from './fetch.ts';
import {
  completeSize,
  repairFromRemote,
  type RemoteIso,
  repairFromSameBuild,
  readTarget,
  type Target,
} from './target.ts';

/** A damaged run of bytes of the ISO, and the file or structure that it belongs to. */
export type RepairedRange = {
  readonly offset: number;
  readonly size: number;
  /** First file that contains it; absent for structures, and for zeros between files. */
  readonly path?: string;
  readonly problem: string;
  /** Source of the new bytes; absent if no source has them. */
  readonly source?: string;
  /** Bytes written. */
  readonly written: number;
};

export type RepairReport = {
  readonly ok: boolean;
  readonly damaged: readonly RepairedRange[];
  /** Ranges that no source has. */
  readonly unrepaired: readonly RepairedRange[];
  /** Problems that `sealift verify` still finds after the repair. */
  readonly problems: readonly ImageProblem[];
  readonly bytes: { readonly damaged: number; readonly read: number; readonly written: number };
};

export type RepairSources = {
  /** Our ISOs among the sources, which may describe the damaged one. */
  readonly isos: readonly IsoSource[];
  /** Sources tried first, for blobs and for every other extent by digest. */
  readonly local: readonly BlobSource[];
  /** Sources tried next. */
  readonly elsewhere: readonly RemoteIso[];
  readonly remote?: Omit<RemoteOptions, 'index' | 'signal' | 'warn'>;
};

export type RepairOptions = VerifyOptions &
  Pick<LeaseOptions, 'wait'> & {
    /** Path of the lock: the lock of builds for a file, or one in the work directory for a device. */
    readonly lock: string;
    /** Called with the reason why a source lacks expected bytes. */
    readonly warn: (message: string) => void;
    /** Called with the size of each range that was repaired. */
    readonly onRepaired?: (bytes: number) => void;
  };

/**
 * Only verified bytes are written, so the repair may be killed at any moment and run again. The whole ISO is
 * verified at the end.
 *
 * @throws DifferenceError `repair.no-index`; DiskError of the ISO; the signal's reason
 */
export async function repairIso(
  path: string,
  sources: RepairSources,
  options: RepairOptions,
): Promise<RepairReport> {
  return withLease(options.lock, options, ({ requireHeld }) =>
    repairLocked({ path, requireHeld }, sources, options),
  );
}

async function repairLocked(
  { path, requireHeld }: Omit<OpenTarget, 'file'>,
  sources: RepairSources,
  options: RepairOptions,
): Promise<RepairReport> {
  await useImage(path, async (image) => {
    await refuseHalfCustomised(image);
    await refuseHalfApplied(image);
  });
  const file = await openInPlace(path).catch((error: unknown) => {
    throw explainWriteError(error, path);
  });
  const target = { path, file, requireHeld };
  try {
    const improve = (all: readonly Repaired[], by: Repair): Promise<Repaired[]> =>
      improveAll(all, by, options);
    const known = await readTarget(path, sources.isos);
    const { index, indexSource } = known;
    const local = [...sources.local, ...(indexSource ? [indexSource] : [])];
    const repair = async (found: Damage): Promise<readonly Repaired[]> => {
      let all = found.damaged.map((damage): Repaired => ({ damage, read: 0, written: 0 }));
      all = await improve(all, repairFromZeros(target, found.gaps));
      all = await improve(all, repairFromLocal(target, local, options.signal));
      all = await improve(all, repairFromRemote(target, sources.elsewhere, options));
      if (!sources.remote || !all.some(isOpen)) return all;
      const remote = { ...sources.remote, index, ...options };
      all = await improve(all, repairFromManifests(target, remote));
      return improve(all, await openBlobRepair(target, remote));
    };
    const stats = await file.stat();
    const size = stats.isFile() ? stats.size : Infinity;
    const stable = await repair(await findDamage(target, known, options));
    // The original contents of mutable areas are made from other files, which are repaired by now.
    const mutable = await repair(await findMutableDamage(target, known, { ...options, size }));
    const isos = [...sources.isos, ...sources.elsewhere.map(({ access }) => access)];
    const same = { index: index.digest, warn: options.warn };
    const all = [...stable, ...(await improve(mutable, repairFromSameBuild(target, isos, same)))];
    await completeSize(target);
    await explaining(path, () => file.sync());
    return describe(all, await verifyIso(path, options));
  } finally {
    await file.close();
  }
}

const isOpen = ({ source }: Repaired): boolean => source === undefined;

async function improveAll(
  all: readonly Repaired[],
  repair: Repair,
  { onRepaired }: Pick<RepairOptions, 'onRepaired'>,
): Promise<Repaired[]> {
  const improved: Repaired[] = [];
  for (const each of all) {
    const done = isOpen(each) ? await repair(each.damage) : undefined;
    if (done) onRepaired?.(each.damage.extent.size);
    improved.push(done ? { ...each, ...done } : each);
  }
  return improved;
}

type Damage = {
  readonly damaged: readonly DamagedExtent[];
  readonly gaps: ReadonlySet<IndexExtent>;
};

/** Every immutable extent and every gap; sectors that a worn disk cannot read are damage too. */
async function findDamage(
  { path }: OpenTarget,
  { extents }: Target,
  { signal, onProgress }: VerifyOptions,
): Promise<Damage> {
  const gaps = new Set(findGaps(extents));
  const checked = [...extents.filter(({ digest }) => digest !== undefined), ...gaps];
  const total = sumSizes(checked);
  const damaged = await useImage(path, (image) =>
    verifyExtents(image, checked, {
      signal,
      onProgress: (done) => {
        onProgress(done, total);
      },
    }),
  );
  return { damaged, gaps };
}

/**
 * In the rest of the areas' extents, configs that cannot be read, and areas beyond the former end of the
 * file. Empty if the contents without values cannot be made.
 *
 * @param size bytes that the ISO had before it was repaired
 */
async function findMutableDamage(
  { path }: OpenTarget,
  { extents, index }: Target,
  { signal, size }: Pick<VerifyOptions, 'signal'> & { readonly size: number },
): Promise<Damage> {
  const checked = withPristineDigests({
    extents: extents.filter(({ pristine }) => pristine !== undefined),
  });
  const damaged = await useImage(path, async (image) => {
    const areas = await readKnownAreas(image, index);
    if (!areas?.bare) return [];
    const parts = planContents(areas, areas.bare, 'bare');
    const options = { signal, onProgress: () => undefined };
    const found = await verifyExtents(overlayAccess(image, parts), checked, options);
    const others = [
      ...listLost(checked, size),
      ...listUnreadable(checked, await judgeAreas(areas)),
    ];
    return [...new Map([...found, ...others].map((one) => [one.extent, one])).values()];
  });
  return { damaged, gaps: new Set() };
}

/** Lists areas that were lost with the end of the file: zeros there say nothing. */
const listLost = (extents: readonly IndexExtent[], size: number): readonly DamagedExtent[] =>
  extents
    .filter((extent) => extent.offset + extent.size > size)
    .map((extent) => ({ extent, unreadable: `was lost: the file ended at byte ${size}` }));

const listUnreadable = (
  extents: readonly IndexExtent[],
  areas: readonly JudgedArea[],
): readonly DamagedExtent[] =>
  areas.flatMap(({ state, offset, problem = 'cannot be read' }) => {
    const extent = extents.find(
      (each) => each.offset <= offset && offset < each.offset + each.size,
    );
    const isLost = state === 'damaged' || state === 'removed';
    return extent && isLost ? [{ extent, unreadable: problem }] : [];
  });

async function readKnownAreas(
  image: RandomAccess,
  index: MediaIndex,
): Promise<MediumAreas | undefined> {
  if (!index.mutable?.length) return undefined;
  try {
    return await readAreas(await openDamaged(image), { index });
  } catch (error) {
    if (describeDamage(error) === undefined) throw error;
    return undefined;
  }
}

/** Repairs the zeros between files. */
const repairFromZeros =
  (target: OpenTarget, gaps: ReadonlySet<IndexExtent>): Repair =>
  async ({ extent }) => {
    if (!gaps.has(extent)) return undefined;
    await writeAt(target, new Uint8Array(extent.size), extent.offset);
    return { source: 'zeros', read: 0, written: extent.size };
  };

const repairFromLocal =
  (target: OpenTarget, sources: readonly BlobSource[], signal: AbortSignal): Repair =>
  async ({ extent: { offset, size, digest } }) => {
    if (digest === undefined) return undefined;
    for (const source of sources) {
      const from = await source.fileOf?.({ digest, size });
      const copied =
        from && (await copyFromFile(target, { offset, size, digest }, { from, signal }));
      if (copied) return { source: source.name, ...copied };
    }
    return undefined;
  };

function describe(
  all: readonly Repaired[],
  { ok, problems }: Pick<Verification, 'ok' | 'problems'>,
): RepairReport {
  const damaged = all.map(describeRange);
  const sum = (key: 'read' | 'written'): number =>
    all.reduce((bytes, each) => bytes + each[key], 0);
  return {
    ok,
    damaged,
    unrepaired: damaged.filter(({ source }) => source === undefined),
    problems,
    bytes: { damaged: sumSizes(damaged), read: sum('read'), written: sum('written') },
  };
}

const describeRange = ({ damage, source, written }: Repaired): RepairedRange => {
  const { extent, unreadable = 'does not match its digest in the index' } = damage;
  const { offset, size, paths } = extent;
  return {
    offset,
    size,
    written,
    problem: unreadable,
    ...withoutUndefined({ path: paths[0], source }),
  };
};
