import { dirname, join } from 'node:path';
import { digestOf, hexOf, type Digest } from '../../base/digest.ts';
import { readStamp } from '../../base/disk/file-digests.ts';
import {
  digestFile,
  hasFile,
  readFileIfPresent,
  readFreeBytes,
  writeFileAtomic,
} from '../../base/disk/files.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { Content } from '../../base/store/blob-source.ts';
import { formatCanonicalJson, formatReadableJson, type Json } from '../../base/text/json.ts';
import type { Stage } from '../../engine/index.ts';
import { recallFinished, type IsoRecords } from '../../outputs/file.ts';
import { namesBeside, outputKindOf, roomOf, type IsoPlace } from '../../outputs/place.ts';
import { decodeJson, ifFaultless } from '../../shape/decode.ts';
import {
  COUNT,
  DIGEST,
  LEFT_OUT,
  list,
  mapping,
  oneOf,
  optional,
  record,
  TEXT,
  tuple,
  type Shape,
  type TypeOf,
} from '../../shape/shape.ts';
import { checkKnownSize } from '../4-lay-out/check-size.ts';
import { describeUntouched, type MadeIso } from '../5-pour/pour.ts';
import type { BuildTools } from '../tools.ts';
import { areSame, listNames, type NameContext, type NameTools } from './ask-names.ts';
import { describeAsked, digestWithLock, type AskedIso } from './describe-asked.ts';
import type { TagDigests } from './tags.ts';

/*
 * Owns the records of the last build and of the last plan of an output. The next run with the same inputs asks for
 * the names alone: to resolve and to lay out costs as much as fetching a catalog and some hundred images' manifests.
 * Tags of signatures are not asked for: their images are the same.
 */

const FINISHED = record(
  {
    format: oneOf(1),
    /** Digest of the request, the files that it names, and the program. */
    asked: DIGEST,
    /** Digests that names had and that may have changed by now. */
    names: mapping(DIGEST),
    /** Digest of the report next to the ISO. */
    report: DIGEST,
    /** Digests of other files that the build wrote next to it, by path. */
    beside: optional(mapping(DIGEST)),
  },
  LEFT_OUT,
);

const PLANNED = record(
  {
    format: oneOf(1),
    /** Digest of the request, the files that it names, the program, and the ISO that is replaced. */
    asked: DIGEST,
    /** Digests that names had and that may have changed by now. */
    names: mapping(DIGEST),
    /** Blobs on the medium that are fetched unless this machine has them: digest and size. */
    blobs: list(tuple(DIGEST, COUNT)),
    payloadSize: COUNT,
    isoSize: COUNT,
    /** The plan as it was reported, in JSON. */
    plan: TEXT,
    digest: DIGEST,
  },
  LEFT_OUT,
);

type Finished = TypeOf<typeof FINISHED>;
type Planned = TypeOf<typeof PLANNED>;

const pathOf = (workDir: string, output: string, suffix: 'json' | 'plan.json'): string =>
  join(workDir, 'finished', `${hexOf(digestOf(output)).slice(0, 32)}.${suffix}`);

/** Reads a record; undefined if it is missing or damaged. */
async function readRecord<Value>(shape: Shape<Value>, path: string): Promise<Value | undefined> {
  const bytes = await readFileIfPresent(path);
  return bytes && ifFaultless(decodeJson(shape, bytes));
}

/** A run with the same inputs as an earlier one, unless a name has another digest by now. */
type SameInputs = Pick<IsoPlace, 'output'> &
  Omit<NameContext, 'report'> & { readonly asked: Digest };

type RecallTools = NameTools & { readonly workDir: string };

type Report = Readonly<Record<string, Json>> & NameContext['report'];

/**
 * Finds the report of the output if an earlier build of this work directory finished it, the
 * request is the same, every name that a person gave still has the same digest, and the file has
 * not been touched since. Otherwise returns undefined, and the ISO is planned.
 */
const findUnchangedIso: Stage<
  SameInputs & {
    /** True if a lock or a plan decides the digest of each name, regardless of its digest now. */
    readonly isPinned: boolean;
    /** True if the digest of the whole must be known. */
    readonly checksum: boolean;
  },
  Report | undefined,
  RecallTools & { readonly records: IsoRecords }
> = {
  name: 'find unchanged ISO',
  async run({ asked, output, isPinned, checksum, ...given }, tools, context) {
    const known = await readRecord(FINISHED, pathOf(tools.workDir, output, 'json'));
    if (known?.asked !== asked) return undefined;
    const finished = await recallFinished(output, tools.records);
    if (!finished || (checksum && finished.digest === undefined)) return undefined;
    const report = await readUntouched(known, output);
    if (!report || isPinned) return report;
    const isSame = await areSame(known.names, { report, ...given }, { ...tools, ...context });
    return isSame ? report : undefined;
  },
};

/** The report of an ISO, if it and the other files next to the ISO are as the build wrote them. */
async function readUntouched(known: Finished, output: string): Promise<Report | undefined> {
  const text = await readFileIfPresent(namesBeside(output).report);
  if (!text || digestOf(text) !== known.report) return undefined;
  for (const [path, digest] of Object.entries(known.beside ?? {})) {
    if (!(await hasFile(path)) || (await digestFile(path)) !== digest) return undefined;
  }
  return JSON.parse(text.toString('utf8')) as Report;
}

const findPlannedIso: Stage<SameInputs, Planned | undefined, RecallTools> = {
  name: 'find unchanged plan',
  async run({ asked, output, ...given }, tools, context) {
    const known = await readRecord(PLANNED, pathOf(tools.workDir, output, 'plan.json'));
    if (known?.asked !== asked || digestOf(known.plan) !== known.digest) return undefined;
    const about = { report: JSON.parse(known.plan) as NameContext['report'], ...given };
    return (await areSame(known.names, about, { ...tools, ...context })) ? known : undefined;
  },
};

/** The result of an earlier run, if this run has the same, and the call that records the result of this one. */
type Recalled<Result, Made> = {
  readonly known?: Result;
  readonly remember: (made: Made) => Promise<void>;
};

const NOTHING = { remember: () => Promise.resolve() } as const;

type FinishedBuild = {
  readonly tags: TagDigests;
  readonly beside: readonly string[];
};

/** Finds the report of the output if it needs no build; see `findUnchangedIso`. */
export async function recallBuild<Report extends MadeIso>(
  request: AskedIso,
  tools: BuildTools,
): Promise<Recalled<Report, FinishedBuild>> {
  const asked = await describeAsked(request, tools);
  if (asked === undefined) return NOTHING;
  const { output, graphUrl, streamUrl, held, checksum = false } = request;
  const report = await tools.engine.run(findUnchangedIso, {
    asked: await digestWithLock(asked, request),
    output,
    isPinned: held.saved !== undefined,
    checksum,
    ...withoutUndefined({ graphUrl, streamUrl }),
  });
  // Written by a build of this product.
  if (report)
    return { ...NOTHING, known: await renew(report as unknown as Report, request, tools) };
  return {
    async remember({ tags, beside }) {
      const text = await readFileIfPresent(namesBeside(output).report);
      if (!text) return;
      const finished: Finished = {
        format: 1,
        asked: await digestWithLock(asked, request),
        names: listNames(tags),
        report: digestOf(text),
        beside: Object.fromEntries(
          await Promise.all(beside.map(async (path) => [path, await digestFile(path)] as const)),
        ),
      };
      const path = pathOf(tools.workDir, output, 'json');
      await writeFileAtomic(path, formatReadableJson({ output, ...finished }));
    },
  };
}

/** Renews the part of a report that describes the run and the disk. */
async function renew<Report extends MadeIso>(
  report: Report,
  { output }: AskedIso,
  { engine, client }: BuildTools,
): Promise<Report> {
  const { isoSize, payloadSize } = report as Readonly<Record<string, unknown>>;
  const space = {
    bytesToFetch: 0,
    bytesReused: payloadSize,
    neededBytes: 0,
    freeBytes: await readFreeBytes(dirname(output)),
  };
  return {
    ...report,
    ...('bytesToFetch' in report ? space : {}),
    ...describeUntouched(Number(isoSize)),
    hosts: client.statistics(),
    stages: [...engine.times()],
    isUpToDate: true,
  };
}

type ReportedPlan = {
  readonly plan: object;
  readonly tags: TagDigests;
  readonly blobs: readonly Content[];
  readonly payloadSize: number;
  readonly isoSize: number;
};

/** Finds the plan of an earlier run with the same inputs, with the space as it is now. */
export async function recallPlan<Plan>(
  request: AskedIso,
  tools: BuildTools,
): Promise<Recalled<Plan, ReportedPlan>> {
  const asked = await describePlan(request, tools);
  if (asked === undefined) return NOTHING;
  const { engine, workDir } = tools;
  const { output, graphUrl, streamUrl } = request;
  const given = withoutUndefined({ graphUrl, streamUrl });
  const found = await engine.run(findPlannedIso, { asked, output, ...given });
  if (found) {
    await tools.takeOver(); // seeds have blobs, too
    const { payloadSize, isoSize } = found;
    const blobs = found.blobs.map(([digest, size]): Content => ({ digest, size }));
    const sizes = { blobs, payloadSize, isoSize, ...roomOf(request) };
    const space = await engine.run(checkKnownSize, sizes);
    return { ...NOTHING, known: { ...(JSON.parse(found.plan) as Plan), ...space } };
  }
  return {
    async remember({ plan, tags, blobs, ...sizes }) {
      const text = JSON.stringify(plan);
      const planned: Planned = {
        format: 1,
        asked,
        names: listNames(tags),
        blobs: blobs.map(({ digest, size }) => [digest, size] as const),
        ...sizes,
        plan: text,
        digest: digestOf(text),
      };
      await writeFileAtomic(pathOf(workDir, output, 'plan.json'), JSON.stringify(planned));
    },
  };
}

/**
 * Computes the digest of all that decides a plan. Undefined if it depends on more: a lock or an earlier plan that
 * is compared, an interrupted output that is continued, an output that is not a file, records that are not trusted.
 */
async function describePlan(request: AskedIso, tools: BuildTools): Promise<Digest | undefined> {
  const { output, held, reuses } = request;
  if (held.lock !== undefined || held.saved !== undefined) return undefined;
  if (reuses?.trustsRecords === false) return undefined;
  if (outputKindOf(request) !== 'file' || (await hasFile(`${output}.partial`))) return undefined;
  const asked = await describeAsked(request, tools);
  // A layout keeps the places of the ISO that it will replace.
  const stamp = (await readStamp(output)) ?? null;
  return asked && digestOf(formatCanonicalJson([asked, stamp]));
}
