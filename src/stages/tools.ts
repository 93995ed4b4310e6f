import { join } from 'node:path';
import type { Digest } from '../base/digest.ts';
import { createFileDigests, type FileDigests } from '../base/disk/file-digests.ts';
import type { LeaseOptions } from '../base/disk/lease.ts';
import { openWorkDirectory, type WorkDirectory } from '../base/disk/work-directory.ts';
import { type Http } from '../base/http/http.ts';
import { type TlsOptions } from '../base/http/tls.ts';
import { withoutUndefined } from '../base/lists.ts';
import { readProgramDigest } from '../base/program.ts';
import { parseS3Address } from '../base/s3/object.ts';
import { createS3, type S3 } from '../base/s3/s3.ts';
import type { BlobSource } from '../base/store/blob-source.ts';
import { createBlobCache, type BlobCache } from '../base/store/blob-cache.ts';
import { createSharedCache, type SharedCache } from '../base/store/shared-cache.ts';
import {
  createEngine,
  createStageStore,
  type Engine,
  type EventListener,
  type StageContext,
} from '../engine/index.ts';
import type { Places } from '../iso/index.ts';
import { placesOf } from '../media/media-index.ts';
import { isOurs, readWholeIndex } from '../media/open.ts';
import { describeLayout } from '../media/push.ts';
import { openReusable, type Reusable, type ReusableIso } from '../media/seeds.ts';
import { openWorkspace } from '../openshift/workspace/set.ts';
import { createIsoRecords, type IsoRecords } from '../outputs/file.ts';
import { openSentObject } from '../outputs/object/sent.ts';
import { openOutput, type OutputTools } from '../outputs/output.ts';
import {
  isHere,
  outputKindOf,
  type IsoPlace,
  type IsoReuse,
  type MediaReader,
  type Output,
} from '../outputs/place.ts';
import type { ExtentOpener } from '../pour/index.ts';
import { type RegistryClient } from '../registry/index.ts';
import { createExtentOpener, type ExtentSources } from './5-pour/open-extents.ts';
import { createDrawnLedger, type DrawnLedger, type DrawnSource } from './resolved/drawn.ts';
import { createTagLedger, type Pinned, type TagLedger } from './resolved/tags.ts';
import { type RegistryAccessOptions, openRegistryAccess } from './registry-access.ts';
import { readSealKey, sweepWorkDir } from './work-directory.ts';

/*
 * The tools of a build: access to registries, the work directory, the cache, seeds and the engine.
 * This file opens them from the settings of a run and closes them after it.
 */

/** Tools that every recipe works with; made from the few settings that concern it. */
export type BuildTools = {
  readonly engine: Engine<StageTools>;
  readonly client: RegistryClient;
  readonly cache: BlobCache;
  /** Path that leads to the work directory as long as the tools are open. */
  readonly workDir: string;
  /** The files with mirrors that were read, in order. */
  readonly registriesConf: readonly string[];
  /** Digests that tags named in this run. */
  readonly tags: TagLedger;
  /** Values drawn at random in this run, or for it before. */
  readonly drawn: DrawnLedger;
  /**
   * Opens the seeds, before anything is fetched; they are not read for an ISO that needs no build.
   *
   * @returns the places of bytes in the ISO that is replaced, if they must stay there
   * @throws what `openReusable` throws
   */
  readonly takeOver: () => Promise<Places | undefined>;
  /** Refuses to replace a foreign object; `claimHere` refuses places on this machine. */
  readonly claimElsewhere: (place: IsoPlace) => Promise<void>;
  /** Key for fingerprints of secrets. */
  readonly sealKey: Uint8Array;
  /** Digest of the running program. */
  readonly program: Digest;
  readonly emit: EventListener;
  /** Warnings about the environment of the program, which reports repeat. */
  readonly environment: readonly string[];
  /** Conditions under which the right to write an output is taken. */
  readonly lease: LeaseOptions;
  readonly close: () => Promise<void>;
};

/**
 * Tools that stages work with. No result may depend on them: bytes are verified, regardless of
 * their source.
 */
export type StageTools = {
  readonly http: Http;
  readonly tls: TlsOptions;
  readonly client: RegistryClient;
  readonly cache: BlobCache;
  /**
   * Places that may already have blobs, besides the cache; they are also the first sources of
   * every image.
   */
  readonly seeds: readonly BlobSource[];
  readonly digests: FileDigests;
  /** Opens the extents of a layout, out of its base and its blobs. */
  readonly openExtents: (of: Pick<ExtentSources, 'base' | 'blobs'>) => ExtentOpener;
  /** Opens the place that an ISO is written to. */
  readonly openOutput: (place: IsoPlace, context: Pick<StageContext, 'signal' | 'warn'>) => Output;
  readonly records: IsoRecords;
  /** ISOs among the seeds. */
  readonly isos: readonly ReusableIso[];
  readonly workDir: string;
};

export type ToolsOptions = RegistryAccessOptions & {
  readonly config: {
    /** The only source of images, if it is given. */
    readonly mirrorPath?: string;
  };
  readonly workDir: string;
  readonly reuses?: IsoReuse;
  /** Digests that tags had when this was planned: they keep them now. */
  readonly pinned?: Pinned;
  /** Values that were drawn for a lock, with the key of its fingerprints. */
  readonly drawn?: DrawnSource;
  /** Digest of the running program; default: the digest it was built with. */
  readonly program?: Digest;
  readonly signal: AbortSignal;
  /** Warnings about the environment of the program. */
  readonly environment?: readonly string[];
  /** True if another run that writes the same output is waited for. */
  readonly wait?: boolean;
};

/**
 * Opens the tools of a build.
 * @throws what `openWorkDirectory` throws; ConfigError for files that the configuration names
 */
export async function openBuildTools(options: ToolsOptions): Promise<BuildTools> {
  const held = await openWorkDirectory(options.workDir, (message) => {
    options.emit({ type: 'warning', message });
  });
  try {
    return await openTools(options, held);
  } catch (error) {
    await held.close();
    throw error;
  }
}

async function openTools(options: ToolsOptions, held: WorkDirectory): Promise<BuildTools> {
  const { config, env, signal, emit } = options;
  const { path: workDir } = held;
  const { client: registry, http, caBundle, registriesConf } = await openRegistryAccess(options);
  const plainClient = config.mirrorPath === undefined ? registry : openWorkspace(config.mirrorPath);
  const tls = caBundle === undefined ? {} : { ca: [caBundle] };
  const s3 = createS3({ http, tls, env });
  const trustsRecords = options.reuses?.trustsRecords ?? true;
  const records = createIsoRecords(workDir, trustsRecords);
  const reusable = createReusable(options, { s3, records });
  const tags = createTagLedger(plantSeeds(plainClient, reusable), options.pinned);
  const { client } = tags;
  const sealKey = await readSealKey(workDir, options.drawn);
  const program = options.program ?? (await readProgramDigest());
  await sweepWorkDir(workDir);
  const cache = createBlobCache(join(workDir, 'cache', 'blobs'));
  const digests = createFileDigests(join(workDir, 'cache'), { signal, trustsRecords });
  const tools: StageTools = {
    http,
    client,
    cache,
    get seeds() {
      return reusable.seeds();
    },
    workDir,
    tls,
    openOutput: createOutputs({ s3, registry, digests, records, workDir }),
    digests,
    openExtents: (of) => createExtentOpener({ ...of, cache, client, digests }),
    records,
    get isos() {
      return reusable.isos();
    },
  };
  const stored = createStageStore(join(workDir, 'stages'), workDir);
  const drawn = createDrawnLedger(stored, options.drawn);
  return {
    engine: createEngine({ tools, store: drawn.store, program, sealKey, signal, emit }),
    client,
    cache,
    tags,
    drawn,
    takeOver: reusable.open,
    claimElsewhere: createClaim(tools, options),
    sealKey,
    program,
    workDir,
    emit,
    environment: options.environment ?? [],
    lease: leaseOptionsOf(options),
    registriesConf: config.mirrorPath === undefined ? registriesConf.files : [],
    async close() {
      await reusable.close();
      await client.close();
      await http.close();
      await held.close();
    },
  };
}

/** The conditions under which a build takes the right to write its output. */
export const leaseOptionsOf = ({
  signal,
  emit,
  wait = false,
}: Pick<ToolsOptions, 'signal' | 'emit' | 'wait'>): LeaseOptions => ({
  signal,
  wait,
  warn(message) {
    emit({ type: 'warning', message });
  },
});

/** Creates the tool that opens outputs, with the readers of media that they take. */
const createOutputs =
  (tools: Omit<OutputTools, keyof MediaReader | 'signal' | 'warn'>): StageTools['openOutput'] =>
  (place, { signal, warn }) =>
    openOutput(place, {
      ...tools,
      signal,
      warn,
      recognize: isOurs,
      readExtents: async (access) => (await readWholeIndex(access))?.extents,
      describe: describeLayout,
    });

const createClaim =
  ({ openOutput }: StageTools, options: ToolsOptions): BuildTools['claimElsewhere'] =>
  async (place) => {
    if (!isHere(place)) await openOutput(place, leaseOptionsOf(options)).claim();
  };

type LazyReusable = {
  readonly open: BuildTools['takeOver'];
  /** Sources on this machine: before it is open, only the cache that builds share. */
  readonly seeds: () => readonly BlobSource[];
  readonly isos: () => readonly ReusableIso[];
  readonly close: () => Promise<void>;
  /** Sources that come before the registries and mirrors of an image. */
  readonly before: (remote: readonly BlobSource[]) => readonly BlobSource[];
};

function createReusable(
  options: ToolsOptions,
  { s3, records }: { readonly s3: S3; readonly records: IsoRecords },
): LazyReusable {
  const { reuses } = options;
  const shared = openShared(options);
  let opened: Omit<Reusable, 'places'> = { seeds: [], isos: [], close: () => Promise.resolve() };
  return {
    seeds: () => [...opened.seeds, ...(shared ? [shared.local] : [])],
    isos: () => opened.isos,
    close: () => opened.close(),
    before: (remote) => [...opened.seeds, ...(shared ? [shared.over(remote)] : [])],
    async open() {
      if (!reuses) return undefined;
      const { env, cwd, signal, emit } = options;
      const host = { env, cwd, signal, emit };
      const found = await openReusable(reuses, { records, host });
      opened = found;
      const { replaced, keepsPlaces } = reuses;
      if (!keepsPlaces || outputKindOf({ output: replaced }) !== 'object') return found.places;
      const access = await openSentObject(s3, parseS3Address(replaced), signal);
      const index = access && (await readWholeIndex(access));
      return index && placesOf(index);
    },
  };
}

/** Opens the cache that builds share, which a mirror on this machine does not need. */
function openShared({ reuses, config, signal, emit }: ToolsOptions): SharedCache | undefined {
  const directory = reuses?.cache;
  if (directory === undefined || config.mirrorPath !== undefined) return undefined;
  const warn = (message: string): void => {
    emit({ type: 'warning', message });
  };
  const { retryFor } = config.build;
  return createSharedCache({ directory, signal, warn, ...withoutUndefined({ retryFor }) });
}

/**
 * Adds seeds as sources: they are asked before the network, for blobs of any image, and the cache
 * that builds share for the rest.
 */
const plantSeeds = (client: RegistryClient, { before }: LazyReusable): RegistryClient => ({
  ...client,
  sourcesOf(reference) {
    const remote = client.sourcesOf(reference);
    return [...before(remote), ...remote];
  },
});
