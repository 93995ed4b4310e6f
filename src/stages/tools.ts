import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { Digest } from '../base/digest.ts';
import { sweepDirectory } from '../base/disk/aside.ts';
import { createFileDigests, type FileDigests } from '../base/disk/file-digests.ts';
import { readInputFile, writeFileAtomic } from '../base/disk/files.ts';
import { readOwnFile } from '../base/disk/open-file.ts';
import { openWorkDirectory, type WorkDirectory } from '../base/disk/work-directory.ts';
import { kindOfHost } from '../base/http/address.ts';
import { reportRequests } from '../base/http/body.ts';
import { createHttp, type Http } from '../base/http/http.ts';
import type { TlsOptions } from '../base/http/proxy.ts';
import { withoutUndefined } from '../base/lists.ts';
import { readProgramDigest } from '../base/program.ts';
import { createRetries } from '../base/retry.ts';
import { parseS3Address } from '../base/s3/object.ts';
import { createS3, type S3 } from '../base/s3/s3.ts';
import type { BlobSource } from '../base/store/blob-source.ts';
import {
  createSharedCache,
  type SharedCache,
  createBlobCache,
  type BlobCache,
} from '../base/store/store.ts';
import type { ApplianceConfig } from '../config/appliance-config.ts';
import {
  createEngine,
  createStageStore,
  type Engine,
  type EventListener,
} from '../engine/index.ts';
import type { Places } from '../iso/index.ts';
import { openReusable, type Reusable, type ReusableIso } from '../media/seeds.ts';
import { openWorkspace } from '../openshift/workspace/set.ts';
import { createIsoRecords, type IsoRecords, type IsoReuse } from '../outputs/file.ts';
import { readObjectPlaces } from '../outputs/object.ts';
import { isArtifactOutput, isObjectOutput, parseRepositoryAddress } from '../outputs/output.ts';
import {
  createRegistryClient,
  credentialsFromFiles,
  credentialsFromPullSecret,
  listUnusableEntries,
  loadRegistriesConf,
  type RegistriesConfPlaces,
  type RegistryClient,
  type WritingClient,
} from '../registry/index.ts';
import { createRegistryCache, type RegistryCache } from './gone/registry-cache.ts';
import { createDrawnLedger, type DrawnLedger, type DrawnSource } from './resolved/record.ts';
import { createTagLedger, type Pinned, type TagLedger } from './resolved/tags.ts';

export type RegistryAccessOptions = RegistriesConfPlaces & {
  /** Without a pull secret, only credential files of the environment are used. */
  readonly config: {
    readonly pullSecret?: NonNullable<ApplianceConfig['pullSecret']>;
    readonly build: Pick<
      ApplianceConfig['build'],
      'caBundle' | 'registriesConf' | 'insecureRegistries' | 'retryFor'
    >;
  };
  readonly emit: EventListener;
};

/** The way to registries that a configuration and the environment describe. */
export type RegistryAccess = {
  readonly client: WritingClient;
  readonly http: Http;
  /** PEM. */
  readonly caBundle: string | undefined;
  readonly registriesConf: Awaited<ReturnType<typeof loadRegistriesConf>>;
};

/** @throws ConfigError of what the configuration names */
export async function openRegistryAccess(options: RegistryAccessOptions): Promise<RegistryAccess> {
  const { config, env, emit } = options;
  const { build, pullSecret } = config;
  const { retryFor, insecureRegistries } = build;
  const retries = createRetries(withoutUndefined({ onEvent: emit, retryFor }));
  const http = reportRequests(createHttp({ env, retries }), emit);
  const caBundle =
    build.caBundle === undefined
      ? undefined
      : readInputFile(build.caBundle, { domain: 'ca-bundle' }).toString('utf8');
  const registriesConf = await loadRegistriesConf(build.registriesConf, options);
  warnOfPullSecret(options);
  warnOfInsecure(options);
  const client = createRegistryClient({
    http,
    registriesConf,
    ...withoutUndefined({ caBundle }),
    credentials: [
      ...(pullSecret ? [credentialsFromPullSecret(pullSecret.reveal(), 'pullSecret')] : []),
      credentialsFromFiles(env),
    ],
    insecureRegistries,
  });
  return { client, http, caBundle, registriesConf };
}

/** Of an entry nobody may ever need the build does not stop. */
function warnOfPullSecret({ config, emit }: RegistryAccessOptions): void {
  for (const { key, reason } of listUnusableEntries(config.pullSecret?.reveal() ?? '')) {
    emit({ type: 'warning', message: `pullSecret entry ${key} cannot be used: ${reason}` });
  }
}

/** Loopback traffic never leaves this machine. */
function warnOfInsecure({ config, emit }: RegistryAccessOptions): void {
  for (const host of config.build.insecureRegistries) {
    const { hostname } = URL.canParse(`https://${host}`)
      ? new URL(`https://${host}`)
      : { hostname: host };
    if (kindOfHost(hostname) === 'loopback') continue;
    const message =
      `TLS of ${host} is not verified: passwords are sent to it without encryption, ` +
      'or to whoever answers in its place';
    emit({ type: 'warning', message });
  }
}

/** What every recipe works with; made from the few settings that concern it. */
export type BuildTools = {
  readonly engine: Engine<StageTools>;
  readonly client: RegistryClient;
  readonly cache: BlobCache;
  /** Leads to the work directory as long as the tools are open. */
  readonly workDir: string;
  /** The files with mirrors that were read, in order. */
  readonly registriesConf: readonly string[];
  /** What tags named in this run. */
  readonly tags: TagLedger;
  /** What was drawn at random in this run, or for it before. */
  readonly drawn: DrawnLedger;
  /**
   * Opens the seeds, before anything is fetched; of an ISO that needs no build they are not read.
   *
   * @returns where the ISO that is replaced has its bytes, if they are to stay there
   * @throws what `openReusable` throws
   */
  readonly takeOver: () => Promise<Places | undefined>;
  /** What fingerprints of secrets are keyed with. */
  readonly sealKey: Uint8Array;
  /** Which program this is. */
  readonly program: Digest;
  readonly emit: EventListener;
  readonly close: () => Promise<void>;
};

/** What stages work with. No result may depend on it: bytes are verified, wherever they come from. */
export type StageTools = {
  readonly http: Http;
  readonly tls: TlsOptions;
  readonly client: RegistryClient;
  readonly cache: BlobCache;
  /** Where blobs may be already, besides the cache; they are the first sources of every image as well. */
  readonly seeds: readonly BlobSource[];
  readonly digests: FileDigests;
  /** The repository that jobs share blobs in. */
  readonly common?: RegistryCache;
  readonly s3: S3;
  /** Writes to registries. */
  readonly registry: Pick<WritingClient, 'writerOf' | 'placesOf'>;
  readonly records: IsoRecords;
  /** Those among the seeds. */
  readonly isos: readonly ReusableIso[];
  readonly workDir: string;
};

export type ToolsOptions = RegistryAccessOptions & {
  readonly config: {
    /** The only source of images, where it is given. */
    readonly mirrorPath?: string;
  };
  readonly workDir: string;
  readonly reuses?: IsoReuse;
  /** What tags named when this was planned: they name the same now. */
  readonly pinned?: Pinned;
  /** What was drawn for a lock, with the key of its fingerprints. */
  readonly drawn?: DrawnSource;
  /** Which program this is; default: what it was built as. */
  readonly program?: Digest;
  readonly signal: AbortSignal;
};

/** @throws what `openWorkDirectory` throws; ConfigError of what the configuration names */
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
  const access = await openRegistryAccess(options);
  const { http, caBundle, registriesConf } = access;
  const plainClient =
    config.mirrorPath === undefined ? access.client : openWorkspace(config.mirrorPath);
  const tls = caBundle === undefined ? {} : { ca: [caBundle] };
  const s3 = createS3({ http, tls, env });
  const trustsRecords = options.reuses?.trustsRecords ?? true;
  const records = createIsoRecords(workDir, trustsRecords);
  const reusable = createReusable(options, { s3, records, registry: access.client });
  const tags = createTagLedger(plantSeeds(plainClient, reusable), options.pinned);
  const { client } = tags;
  const sealKey = await readSealKey(workDir, options.drawn);
  const program = options.program ?? (await readProgramDigest());
  await sweepWorkDir(workDir);
  const cache = createBlobCache(join(workDir, 'cache', 'blobs'));
  const { common } = reusable;
  const tools: StageTools = {
    ...(common && { common }),
    http,
    client,
    cache,
    get seeds() {
      return reusable.seeds();
    },
    workDir,
    tls,
    s3,
    registry: access.client,
    digests: createFileDigests(join(workDir, 'cache'), { signal, trustsRecords }),
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
    sealKey,
    program,
    workDir,
    emit,
    registriesConf: config.mirrorPath === undefined ? registriesConf.files : [],
    async close() {
      await reusable.close();
      await client.close();
      await http.close();
      await held.close();
    },
  };
}

type LazyReusable = {
  readonly open: BuildTools['takeOver'];
  /** What is on this machine: none before it is open, but the cache that builds share. */
  readonly seeds: () => readonly BlobSource[];
  readonly isos: () => readonly ReusableIso[];
  readonly close: () => Promise<void>;
  readonly common: RegistryCache | undefined;
  /** What comes before the registries and mirrors of an image. */
  readonly before: (remote: readonly BlobSource[]) => readonly BlobSource[];
};

function createReusable(
  options: ToolsOptions,
  {
    s3,
    records,
    registry,
  }: Pick<StageTools, 's3' | 'records'> & { readonly registry: WritingClient },
): LazyReusable {
  const { reuses } = options;
  const common = openCommon(options, registry);
  const shared = common ?? openShared(options);
  let opened: Omit<Reusable, 'places'> = { seeds: [], isos: [], close: () => Promise.resolve() };
  return {
    seeds: () => [...opened.seeds, ...(shared ? [shared.local] : [])],
    isos: () => opened.isos,
    close: () => opened.close(),
    common,
    before: (remote) => [...opened.seeds, ...(shared ? [shared.over(remote)] : [])],
    async open() {
      if (!reuses) return undefined;
      const { env, cwd, signal, emit } = options;
      const host = { env, cwd, signal, emit };
      const found = await openReusable(reuses, { records, host });
      opened = found;
      const { replaced, keepsPlaces } = reuses;
      if (!keepsPlaces || !isObjectOutput(replaced) || isArtifactOutput(replaced)) {
        return found.places;
      }
      return readObjectPlaces(s3, parseS3Address(replaced), signal);
    },
  };
}

function openCommon(
  { reuses, config, signal, emit }: ToolsOptions,
  client: WritingClient,
): RegistryCache | undefined {
  const address = reuses?.cache;
  if (address === undefined || !isArtifactOutput(address) || config.mirrorPath !== undefined) {
    return undefined;
  }
  const warn = (message: string): void => {
    emit({ type: 'warning', message });
  };
  return createRegistryCache({ client, repository: parseRepositoryAddress(address), signal, warn });
}

/** A mirror on this machine needs none. */
function openShared({ reuses, config, signal, emit }: ToolsOptions): SharedCache | undefined {
  const directory = reuses?.cache;
  if (directory === undefined || config.mirrorPath !== undefined) return undefined;
  const warn = (message: string): void => {
    emit({ type: 'warning', message });
  };
  return createSharedCache({ directory, signal, warn });
}

/** Seeds are asked before the network, whatever image a blob is of, and the cache that builds share for the rest. */
const plantSeeds = (client: RegistryClient, { before }: LazyReusable): RegistryClient => ({
  ...client,
  sourcesOf(reference) {
    const remote = client.sourcesOf(reference);
    return [...before(remote), ...remote];
  },
});

/** What was drawn elsewhere is known by the key that it was drawn under. */
async function readSealKey(workDir: string, drawn?: DrawnSource): Promise<Uint8Array> {
  const secrets = drawn?.secrets;
  if (secrets) return Buffer.from(secrets.key, 'base64');
  const path = join(workDir, 'seal.key');
  const known = await readOwnFile(path);
  if (known?.length === 32) return known;
  const key = randomBytes(32);
  await writeFileAtomic(path, key, 0o600);
  return key;
}

/** Where a build makes what it keeps, below its work directory. Blobs have partial files of their own. */
const SWEPT = [
  'stages',
  'stages/drawn',
  'cache/base',
  'cache/catalogs',
  'cache/digests',
  'cache/installer',
];

async function sweepWorkDir(workDir: string): Promise<void> {
  for (const name of SWEPT) await sweepDirectory(join(workDir, name));
}
