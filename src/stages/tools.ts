import { join } from 'node:path';
import type { Digest } from '../base/digest.ts';
import { sweepDirectory } from '../base/disk/aside.ts';
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
  type MediaReader,
  type Output,
} from '../outputs/place.ts';
import type { ExtentOpener } from '../pour/index.ts';
import { type RegistryClient } from '../registry/index.ts';
import { createExtentOpener, type ExtentSources } from './5-pour/open-extents.ts';
import type { AskedIso } from './resolved/describe-asked.ts';
import { openResolved, type Resolved } from './resolved/resolved.ts';
import { type RegistryAccessOptions, openRegistryAccess } from './registry-access.ts';

/*
 * The tools of a build: access to registries, the work directory, the cache, seeds and the engine.
 * This file opens them from the settings of a run and closes them after it.
 */

export type BuildTools = {
  readonly engine: Engine<StageTools>;
  readonly client: RegistryClient;
  readonly cache: BlobCache;
  /** Path that leads to the work directory as long as the tools are open. */
  readonly workDir: string;
  /** The files with mirrors that were read, in order. */
  readonly registriesConf: readonly string[];
  /** The record of this run: digests of names, drawn values, and what holds it. */
  readonly resolved: Resolved;
  /**
   * Opens the seeds, before anything is fetched; they are not read for an ISO that needs no build.
   *
   * @returns the places of bytes in the lock, or else in the ISO that is replaced, if they must stay there
   * @throws what `openReusable` throws
   */
  readonly takeOver: () => Promise<Places | undefined>;
  /** Refuses to replace a foreign object; `claimHere` refuses places on this machine. */
  readonly claimElsewhere: (place: IsoPlace) => Promise<void>;
  /** Digest of the running program. */
  readonly program: Digest;
  readonly emit: EventListener;
  /** Warnings about the environment of the program, which reports repeat. */
  readonly environment: readonly string[];
  /** Conditions under which the right to write an output is taken. */
  readonly lease: LeaseOptions;
  readonly close: () => Promise<void>;
};

/** No result may depend on these tools: bytes are verified, regardless of their source. */
export type StageTools = {
  readonly http: Http;
  readonly tls: TlsOptions;
  readonly client: RegistryClient;
  readonly cache: BlobCache;
  /** Places that may have blobs, besides the cache; they are the first sources of every image, too. */
  readonly seeds: readonly BlobSource[];
  readonly digests: FileDigests;
  readonly openExtents: (of: Pick<ExtentSources, 'base' | 'files' | 'blobs'>) => ExtentOpener;
  readonly openOutput: (place: IsoPlace, context: Pick<StageContext, 'signal' | 'warn'>) => Output;
  readonly records: IsoRecords;
  /** ISOs among the seeds. */
  readonly isos: readonly ReusableIso[];
  readonly workDir: string;
};

export type ToolsOptions = RegistryAccessOptions & {
  readonly config: AskedIso['access'];
  readonly workDir: string;
  /** The ISO that is asked for, with what it reuses and what it is held to, if there is one. */
  readonly request?: AskedIso;
  /** Digest of the running program; default: the digest it was built with. */
  readonly program?: Digest;
  readonly signal: AbortSignal;
  readonly environment?: readonly string[];
  /** True if another run that writes the same output is waited for. */
  readonly wait?: boolean;
};

/** @throws what `openWorkDirectory` throws; ConfigError for files that the configuration names */
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
  const { request, signal, emit } = options;
  const { path: workDir } = held;
  const { registry, images, http, tls, s3, registriesConf } = await openNetwork(options);
  const trustsRecords = request?.reuses?.trustsRecords ?? true;
  const records = createIsoRecords(workDir, trustsRecords);
  const reusable = createReusable(options, { s3, records });
  const program = options.program ?? (await readProgramDigest());
  const resolved = await openResolved(request, {
    client: plantSeeds(images, reusable),
    store: createStageStore(join(workDir, 'stages'), workDir),
    workDir,
    program,
    emit,
  });
  const { client, store, sealKey } = resolved;
  for (const name of SWEPT) await sweepDirectory(join(workDir, name));
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
  return {
    engine: createEngine({ tools, store, program, sealKey, signal, emit }),
    client,
    cache,
    resolved,
    takeOver: () => reusable.open(resolved.places),
    async claimElsewhere(place) {
      if (!isHere(place)) await tools.openOutput(place, leaseOptionsOf(options)).claim();
    },
    program,
    workDir,
    emit,
    environment: options.environment ?? [],
    lease: leaseOptionsOf(options),
    registriesConf,
    async close() {
      await reusable.close();
      await client.close();
      await http.close();
      await held.close();
    },
  };
}

/** Directories below the work directory in which a build makes files. Blobs have their own partial files. */
const SWEPT = [
  'stages',
  'stages/drawn',
  'cache/base',
  'cache/catalogs',
  'cache/digests',
  'cache/installer',
];

/** Opens the access to registries, or to the workspace that has all images, and to object stores. */
async function openNetwork(options: ToolsOptions) {
  const { config, env } = options;
  const { client: registry, http, caBundle, registriesConf } = await openRegistryAccess(options);
  const tls = caBundle === undefined ? {} : { ca: [caBundle] };
  const network = { registry, http, tls, s3: createS3({ http, tls, env }) };
  return config.mirrorPath === undefined
    ? { ...network, images: registry, registriesConf: registriesConf.files }
    : { ...network, images: openWorkspace(config.mirrorPath), registriesConf: [] };
}

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

type LazyReusable = {
  readonly open: (held: Places | undefined) => ReturnType<BuildTools['takeOver']>;
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
  const { reuses } = options.request ?? {};
  const shared = openShared(options);
  let opened: Omit<Reusable, 'places'> = { seeds: [], isos: [], close: () => Promise.resolve() };
  return {
    seeds: () => [...opened.seeds, ...(shared ? [shared.local] : [])],
    isos: () => opened.isos,
    close: () => opened.close(),
    before: (remote) => [...opened.seeds, ...(shared ? [shared.over(remote)] : [])],
    async open(held) {
      if (!reuses) return undefined;
      const { env, redaction, cwd, signal, emit } = options;
      const host = { env, redaction, cwd, signal, emit };
      const found = await openReusable(reuses, { records, host });
      opened = found;
      const { replaced, keepsPlaces } = reuses;
      if (!keepsPlaces) return undefined;
      const places = held ?? found.places;
      if (places || outputKindOf({ output: replaced }) !== 'object') return places;
      const access = await openSentObject(s3, parseS3Address(replaced), signal);
      const index = access && (await readWholeIndex(access));
      return index && placesOf(index);
    },
  };
}

/** Opens the cache that builds share, which a mirror on this machine does not need. */
function openShared(options: ToolsOptions): SharedCache | undefined {
  const { request, config } = options;
  const directory = request?.reuses?.cache;
  if (directory === undefined || config.mirrorPath !== undefined) return undefined;
  const { signal, warn } = leaseOptionsOf(options);
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
