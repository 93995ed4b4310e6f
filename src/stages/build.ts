import { withLease } from '../base/disk/lease.ts';
import { append } from '../base/lists.ts';
import type { Json } from '../base/text/json.ts';
import type { Layout } from '../iso/index.ts';
import type { IsoPart, LayoutDifference } from '../media/compare-layout.ts';
import { lockPathOf, placeOf, type IsoPlace } from '../outputs/place.ts';
import type { Space } from './4-lay-out/check-size.ts';
import { type PourIsoInput, type MadeIso, pourAndSeal, compareIso } from './5-pour/pour.ts';
import { findUnchanged, rememberFinished } from './resolved/finished.ts';
import { describeAsked } from './resolved/describe-asked.ts';
import type { Lock } from './resolved/record.ts';
import type { TagDigests } from './resolved/tags.ts';
import { claimLock, holdLock, writeLock, type LockUse } from './resolved/use.ts';
import { type SavedPlan } from './resolved/saved-plan.ts';
import type { BuildTools } from './tools.ts';

/*
 * The order in which every ISO is built. A request and the recipe of a product come in; a sealed
 * ISO with its report, its lock and the files next to it leaves. The steps are in the numbered
 * folders, in the order of the build; the products next to this file connect them. This file must
 * not know any product, and this room must not know the command line or the service.
 */

/** Settings that every ISO is requested with. */
export type IsoRequest = IsoPlace & {
  /** Path of the configuration: the digests of its tags are stored under it. */
  readonly configuration: string;
  /** Plan whose images are taken, even if tags have moved. */
  readonly saved?: SavedPlan;
  readonly lock?: LockUse;
  /** UPDATE_URL_OVERRIDE. */
  readonly graphUrl?: string;
  /** Address of the CoreOS stream that names the live ISO. */
  readonly streamUrl?: string;
  /** Paths that the configuration names and that belong to another machine. */
  readonly elsewhere?: readonly string[];
  /** True if the output is only compared: it needs no room. */
  readonly isThere?: boolean;
};

/** Every byte of an ISO, and the contents that it was resolved from. */
type Decided = {
  readonly layout: Layout;
  readonly space: Pick<Space, 'bytesToFetch'>;
  readonly tags: TagDigests;
  readonly lock: Lock;
};

/** Decides every byte of an ISO from a configuration. */
export type PrepareIso<Request, Prepared = Decided> = (
  request: Request,
  tools: BuildTools,
) => Promise<Prepared>;

/** A product: how its bytes are decided, and what is reported about it before it is poured. */
export type IsoRecipe<Request, Prepared, Report> = {
  readonly prepare: PrepareIso<Request, Prepared>;
  readonly describe: (request: Request, prepared: Prepared) => Report;
  readonly pour: (
    request: Request,
    prepared: Prepared,
  ) => Promise<Pick<PourIsoInput, 'base' | 'blobs' | 'mode' | 'lanes'>>;
  /** Files that are written next to the ISO. */
  readonly beside?: {
    /** Refuses, before anything is poured, to replace files that must not be replaced. */
    readonly claim: (request: Request, prepared: Prepared) => Promise<void>;
    /** Writes the files and returns their paths. */
    readonly write: (request: Request, prepared: Prepared) => Promise<readonly string[]>;
  };
};

/**
 * Builds a sealed ISO, its lock and the files next to it from a configuration. Two builds of one
 * output exclude each other.
 */
export async function buildIso<
  Request extends IsoRequest,
  Prepared extends Decided,
  Report extends Readonly<Record<string, Json | undefined>>,
>(
  request: Request,
  tools: BuildTools,
  { prepare, describe, pour, beside }: IsoRecipe<Request, Prepared, Report>,
): Promise<Report & MadeIso> {
  return withLease(lockPathOf(request), tools.lease, async () => {
    await claimLock(request);
    const asked = await describeAsked(request, tools);
    const unchanged = await findUnchanged<Report & MadeIso>({ asked, request }, tools);
    if (unchanged) return unchanged;
    const prepared = await prepare(request, tools);
    await beside?.claim(request, prepared);
    const { layout, tags, lock, space } = prepared;
    const { environment } = tools;
    const report = {
      ...describe(request, prepared),
      ...(environment.length > 0 && { environment }),
    };
    const made = await tools.engine.run(pourAndSeal, {
      ...(await pour(request, prepared)),
      place: placeOf(request),
      checksum: request.checksum ?? false,
      layout,
      toFetch: space.bytesToFetch,
      report,
      stages: [...tools.engine.times()],
    });
    const written = (await beside?.write(request, prepared)) ?? [];
    await holdLock(request, { ...tools.lease, wait: true }, () => writeLock(request, lock, tools));
    await rememberFinished({ asked, request, tags, beside: written }, tools);
    return { ...report, ...made };
  });
}

/** Makes a lock from a configuration, without an ISO. Two runs with one lock exclude each other. */
export async function lockIso<Request extends IsoRequest>(
  request: Request,
  tools: BuildTools,
  prepare: PrepareIso<Request>,
): Promise<Lock> {
  return holdLock(request, tools.lease, async () => {
    await claimLock(request);
    const { lock } = await prepare(request, tools);
    await writeLock(request, lock, tools);
    return lock;
  });
}

export type Reproduction = {
  /**
   * `equal`: each byte is what a build makes now. `equal-as-compared`: each byte is equal, except
   * rendered parts that have values drawn at random, which are not known here.
   */
  readonly result: 'equal' | 'equal-as-compared' | 'different';
  readonly size: { readonly found: number; readonly expected: number };
  readonly differences: readonly LayoutDifference[];
  /**
   * Differences that may depend on randomly drawn values: rendered files, and directories that
   * have their sizes.
   */
  readonly notCompared: readonly LayoutDifference[];
};

/**
 * Parts that do not depend on values drawn at random; directories have the sizes of files that
 * depend on them.
 */
const ALWAYS_EQUAL: ReadonlySet<IsoPart> = new Set(['base', 'blobs', 'structures', 'padding']);

/**
 * Decides every byte of the ISO again, from the configuration and the lock, and compares them with
 * the ISO that is the output of the request. No second ISO is written, and no blob is fetched for
 * it.
 */
export async function reproduceIso<Request extends IsoRequest>(
  request: Request,
  tools: BuildTools,
  prepare: PrepareIso<Request>,
): Promise<Reproduction> {
  const { output } = request;
  const { layout } = await prepare({ ...request, isThere: true }, tools);
  const { size, differences, files } = await tools.engine.run(compareIso, { layout, output });
  const isDrawn = drewAgain(request, tools);
  const isUnknown = ({ part }: LayoutDifference): boolean => isDrawn && !ALWAYS_EQUAL.has(part);
  const notCompared = differences.filter(isUnknown);
  const known = differences.filter((one) => !isUnknown(one));
  if (isDrawn) append(known, files);
  const isDifferent = known.length > 0 || size.found !== size.expected;
  const equal = notCompared.length > 0 ? 'equal-as-compared' : 'equal';
  return { result: isDifferent ? 'different' : equal, size, differences: known, notCompared };
}

/** True if a value was drawn that is not the value drawn for the ISO, as far as the lock shows. */
const drewAgain = ({ lock }: IsoRequest, { drawn }: BuildTools): boolean =>
  (lock?.isLocked !== true || lock.drawsAgain === true) && Object.keys(drawn.list()).length > 0;
