import { withLease } from '../base/disk/lease.ts';
import { append } from '../base/lists.ts';
import type { Content } from '../base/store/blob-source.ts';
import type { Json } from '../base/text/json.ts';
import type { Layout } from '../iso/index.ts';
import type { IsoPart, LayoutDifference } from '../media/compare-layout.ts';
import { lockPathOf, placeOf } from '../outputs/place.ts';
import type { Space } from './4-lay-out/check-size.ts';
import { type PourIsoInput, type MadeIso, pourAndSeal, compareIso } from './5-pour/pour.ts';
import type { AskedIso } from './resolved/describe-asked.ts';
import { recallBuild, recallPlan } from './resolved/earlier.ts';
import type { Lock } from './resolved/record.ts';
import type { Settled } from './resolved/resolved.ts';
import type { BuildTools } from './tools.ts';

/*
 * The order in which every ISO is built. A product and a request come in; a sealed ISO with its
 * report, its lock and the files next to it leaves. The steps are in the numbered folders, in the
 * order of the build; the products next to this file connect them. This file must not know any
 * product, and this room must not know the command line or the service.
 */

/** Every byte of an ISO, and the contents that it was resolved from. */
export type Decided = Settled & {
  readonly layout: Layout;
  readonly space: Space;
};

/** A kind of medium: which step feeds which, and what is reported about it. */
export type IsoProduct<Request, Prepared, Report, Plan> = {
  readonly name: string;
  /** Decides every byte of the ISO from a request. */
  readonly prepare: (request: Request, tools: BuildTools) => Promise<Prepared>;
  /** The report, as far as it is known before the pour. */
  readonly describe: (request: Request, prepared: Prepared) => Report;
  /** Everything that is known before the first byte of the payload moves. */
  readonly summarize: (request: Request, prepared: Prepared) => Plan;
  /** The blobs of its payload that are fetched unless this machine has them. */
  readonly listBlobs: (request: Request, prepared: Prepared) => readonly Content[];
  readonly pour: (
    request: Request,
    prepared: Prepared,
  ) => Promise<Pick<PourIsoInput, 'base' | 'files' | 'blobs' | 'mode' | 'lanes'>>;
  /** Default: the stage that pours an ISO. */
  readonly pourStage?: typeof pourAndSeal;
  /** Files that are written next to the ISO. */
  readonly beside?: {
    /** Refuses, before anything is poured, to replace files that must not be replaced. */
    readonly claim: (request: Request, prepared: Prepared) => Promise<void>;
    /** Writes the files and returns their paths. */
    readonly write: (
      request: Request,
      prepared: Prepared,
      tools: BuildTools,
    ) => Promise<readonly string[]>;
  };
};

type Announced = Readonly<Record<string, Json | undefined>>;

/** Builds a sealed ISO, its lock and the files next to it. Two builds of one output exclude each other. */
export async function buildIso<
  Request extends AskedIso,
  Prepared extends Decided,
  Report extends Announced,
>(
  {
    prepare,
    describe,
    pour,
    pourStage = pourAndSeal,
    beside,
  }: IsoProduct<Request, Prepared, Report, object>,
  request: Request,
  tools: BuildTools,
): Promise<Report & MadeIso> {
  const { engine, resolved, environment, lease } = tools;
  return withLease(lockPathOf(request), lease, async () => {
    await resolved.claim();
    const earlier = await recallBuild<Report & MadeIso>(request, tools);
    if (earlier.known) return earlier.known;
    const prepared = await prepare(request, tools);
    await beside?.claim(request, prepared);
    const { layout, tags, lock, space } = prepared;
    const report = {
      ...describe(request, prepared),
      ...(environment.length > 0 && { environment }),
    };
    const made = await engine.run(pourStage, {
      ...(await pour(request, prepared)),
      place: placeOf(request),
      checksum: request.checksum ?? false,
      layout,
      toFetch: space.bytesToFetch,
      report,
      stages: [...engine.times()],
    });
    const written = (await beside?.write(request, prepared, tools)) ?? [];
    await resolved.hold({ ...lease, wait: true }, () => resolved.write(lock));
    await earlier.remember({ tags, beside: written });
    return { ...report, ...made };
  });
}

/** Plans an ISO: everything that is known before the first byte of the payload moves. */
export async function planIso<
  Request extends AskedIso,
  Prepared extends Decided,
  Plan extends object,
>(
  { prepare, summarize, listBlobs }: IsoProduct<Request, Prepared, unknown, Plan>,
  request: Request,
  tools: BuildTools,
): Promise<Plan> {
  const earlier = await recallPlan<Plan>(request, tools);
  if (earlier.known) return earlier.known;
  const prepared = await prepare(request, tools);
  const plan = summarize(request, prepared);
  const { layout, tags, space } = prepared;
  const poured = new Set(layout.extents.map(({ digest }) => digest));
  await earlier.remember({
    plan,
    tags,
    blobs: listBlobs(request, prepared).filter(({ digest }) => poured.has(digest)),
    payloadSize: space.bytesToFetch + space.bytesReused,
    isoSize: layout.size,
  });
  return plan;
}

/** The part of a product that decides every byte. */
export type Deciding<Request> = Pick<IsoProduct<Request, Decided, unknown, unknown>, 'prepare'>;

/** Makes a lock from a configuration, without an ISO. Two runs with one lock exclude each other. */
export async function lockIso<Request extends AskedIso>(
  { prepare }: Deciding<Request>,
  request: Request,
  tools: BuildTools,
): Promise<Lock> {
  const { resolved, lease } = tools;
  return resolved.hold(lease, async () => {
    await resolved.claim();
    const { lock } = await prepare(request, tools);
    await resolved.write(lock);
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
  /** Differences that may come from drawn values: rendered files, and directories that have their sizes. */
  readonly notCompared: readonly LayoutDifference[];
};

/** Parts that do not depend on drawn values; directories do: they have the sizes of rendered files. */
const ALWAYS_EQUAL: ReadonlySet<IsoPart> = new Set(['base', 'blobs', 'structures', 'padding']);

/**
 * Decides every byte of the ISO again, from the configuration and the lock, and compares them with the ISO
 * that is the output of the request. No second ISO is written, and no blob is fetched for it.
 */
export async function reproduceIso<Request extends AskedIso>(
  { prepare }: Deciding<Request>,
  request: Request,
  tools: BuildTools,
): Promise<Reproduction> {
  const { output } = request;
  const { layout } = await prepare({ ...request, isThere: true }, tools);
  const { size, differences, files } = await tools.engine.run(compareIso, { layout, output });
  const isDrawn = tools.resolved.drewAgain();
  const isUnknown = ({ part }: LayoutDifference): boolean => isDrawn && !ALWAYS_EQUAL.has(part);
  const notCompared = differences.filter(isUnknown);
  const known = differences.filter((one) => !isUnknown(one));
  if (isDrawn) append(known, files);
  const isDifferent = known.length > 0 || size.found !== size.expected;
  const equal = notCompared.length > 0 ? 'equal-as-compared' : 'equal';
  return { result: isDifferent ? 'different' : equal, size, differences: known, notCompared };
}
