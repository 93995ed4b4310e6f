import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { sweepDirectory } from '../base/disk/aside.ts';
import type { Digest } from '../base/digest.ts';
import { createHttp, type Http, type TlsOptions } from '../base/http/http.ts';
import { readInputFile, writeFileAtomic } from '../base/disk/files.ts';
import { readOwnFile } from '../base/disk/open-file.ts';
import { createRetries } from '../base/retry.ts';
import { openWorkDirectory, type WorkDirectory } from '../base/disk/work-directory.ts';
import { kindOfHost } from '../base/http/address.ts';
import { withoutUndefined } from '../base/members.ts';
import type { ApplianceConfig } from '../config/appliance-config.ts';
import { createEngine, type Engine } from '../engine/engine.ts';
import type { EventListener } from '../engine/events.ts';
import { createStageStore } from '../engine/stage-store.ts';
import { createFileDigests, type FileDigests } from '../openshift/files/file-digests.ts';
import { createBlobCache, type BlobCache } from '../registry/cache/blob-cache.ts';
import { openWorkspace } from '../openshift/workspace/mirror-names.ts';
import { createRegistryClient, type RegistryClient } from '../registry/client.ts';
import {
  credentialsFromFiles,
  credentialsFromPullSecret,
  listUnusableEntries,
} from '../registry/client/auth/credentials.ts';
import {
  loadRegistriesConf,
  type RegistriesConfPlaces,
} from '../registry/client/registries-conf-files.ts';
import { createTagLedger, type TagDigests, type TagLedger } from '../registry/tag-ledger.ts';
import { readProgramDigest } from './program-digest.ts';

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
  readonly emit: EventListener;
  readonly close: () => Promise<void>;
};

/** What stages work with. No result may depend on it: bytes are verified, wherever they come from. */
export type StageTools = {
  readonly http: Http;
  readonly tls: TlsOptions;
  readonly client: RegistryClient;
  readonly cache: BlobCache;
  readonly digests: FileDigests;
  readonly workDir: string;
};

export type ToolsOptions = RegistriesConfPlaces & {
  /** Without a pull secret, only credential files of the environment are used. */
  readonly config: {
    readonly pullSecret?: NonNullable<ApplianceConfig['pullSecret']>;
    /** The only source of images, where it is given. */
    readonly mirrorPath?: string;
    readonly build: Pick<
      ApplianceConfig['build'],
      'caBundle' | 'registriesConf' | 'insecureRegistries' | 'retryFor'
    >;
  };
  readonly workDir: string;
  /** What tags named when this was planned: they name the same now. */
  readonly pinned?: TagDigests;
  /** Which program this is; default: what it was built as. */
  readonly program?: Digest;
  readonly signal: AbortSignal;
  readonly emit: EventListener;
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
  const { build } = config;
  const { retryFor } = build;
  const retries = createRetries(withoutUndefined({ onEvent: emit, retryFor }));
  const http = createHttp({ env, retries });
  const caBundle =
    build.caBundle === undefined
      ? undefined
      : readInputFile(build.caBundle, { domain: 'ca-bundle' }).toString('utf8');
  const registriesConf = await loadRegistriesConf(build.registriesConf, options);
  warnOfPullSecret(options);
  warnOfInsecure(options);
  const plainClient =
    config.mirrorPath === undefined
      ? createRegistryClient({
          http,
          credentials: [
            ...(config.pullSecret
              ? [credentialsFromPullSecret(config.pullSecret.reveal(), 'pullSecret')]
              : []),
            credentialsFromFiles(env),
          ],
          insecureRegistries: build.insecureRegistries,
          registriesConf,
          ...withoutUndefined({ caBundle }),
        })
      : openWorkspace(config.mirrorPath);
  const tags = createTagLedger(plainClient, options.pinned);
  const { client } = tags;
  const sealKey = await readSealKey(workDir);
  const program = options.program ?? (await readProgramDigest());
  await sweepWorkDir(workDir);
  const cache = createBlobCache(join(workDir, 'cache', 'blobs'));
  const tools: StageTools = {
    http,
    client,
    cache,
    workDir,
    tls: caBundle === undefined ? {} : { ca: [caBundle] },
    digests: createFileDigests(join(workDir, 'cache'), signal),
  };
  const store = createStageStore(join(workDir, 'stages'), workDir);
  return {
    engine: createEngine({ tools, store, program, sealKey, signal, emit }),
    client,
    cache,
    tags,
    workDir,
    emit,
    registriesConf: config.mirrorPath === undefined ? registriesConf.files : [],
    async close() {
      await client.close();
      await http.close();
      await held.close();
    },
  };
}

/** Of an entry nobody may ever need the build does not stop. */
function warnOfPullSecret({ config, emit }: ToolsOptions): void {
  for (const { key, reason } of listUnusableEntries(config.pullSecret?.reveal() ?? '')) {
    emit({ type: 'warning', message: `pullSecret entry ${key} cannot be used: ${reason}` });
  }
}

/** Loopback traffic never leaves this machine. */
function warnOfInsecure({ config, emit }: ToolsOptions): void {
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

async function readSealKey(workDir: string): Promise<Uint8Array> {
  const path = join(workDir, 'seal.key');
  const known = await readOwnFile(path);
  if (known?.length === 32) return known;
  const key = randomBytes(32);
  await writeFileAtomic(path, key, 0o600);
  return key;
}

/** Where a build makes what it keeps, below its work directory. Blobs have partial files of their own. */
const SWEPT = [
  ...['stages', 'stages/drawn'],
  ...['cache/base', 'cache/catalogs', 'cache/digests', 'cache/installer'],
];

async function sweepWorkDir(workDir: string): Promise<void> {
  for (const name of SWEPT) await sweepDirectory(join(workDir, name));
}
