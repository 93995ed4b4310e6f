import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf } from '../../base/digest.ts';
import { sweepDirectory } from '../../base/disk/aside.ts';
import {
  isErrno,
  ConfigError,
  RegistryError,
  SealiftError,
  UsageError,
} from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { Served } from '../../base/http/plan-answer.ts';
import { sleep, untilAborted } from '../../base/wait.ts';
import { parseResolved } from '../../ignition/index.ts';
import type { IsoImage } from '../../iso/index.ts';
import { decodeEmbedded } from '../../media/areas.ts';
import { planCustomisation, renderArchive } from '../../media/customize/plan.ts';
import { ownArchiveOf, readMedium } from '../../media/medium.ts';
import {
  type OverlayPlace,
  type PackedOverlay,
  openStoredOverlay,
  removeStoredOverlay,
  storeOverlay,
} from '../../media/serve/overlay.ts';
import { createVirtualIso, type VirtualIso } from '../../media/serve/virtual.ts';
import { configure, isForAgents } from '../../openshift/agent/configure.ts';
import type { NetworkTool } from '../../nmstate/index.ts';
import type { CustomValues } from '../../openshift/agent/values.ts';
import type { InfraEnv } from '../infra-envs/infra-env.ts';
import { ApiFailure } from '../openapi.ts';
import type { ServiceKey } from '../state/keys.ts';
import type { State } from '../state/state.ts';
import { useRelease, type Release } from '../store/entry.ts';
import type { Releases } from '../store/releases.ts';
import { createRecent } from './recent.ts';
import { readSiteImage, readValues } from './values.ts';

/* Owns the images of InfraEnvs, and their overlays in memory and on the disk. */

export type Prepared = {
  /** Why the ISO cannot carry the values, if a machine that boots from the network can. */
  readonly refusal?: string;
  /** Stores the overlay, once its InfraEnv is stored. */
  readonly keep: () => Promise<unknown>;
};

/** Images of InfraEnvs. Only their overlays are written. */
export type CustomisedImages = {
  /** Makes the overlay of an InfraEnv that is not stored yet, and does not store it. */
  readonly prepare: (infraEnv: InfraEnv, release: Release) => Promise<Prepared>;
  /** @returns JSON text. */
  readonly readIgnition: (infraEnv: InfraEnv, release: Release) => Promise<string>;
  readonly open: (infraEnv: InfraEnv, release: Release) => Promise<VirtualIso>;
  /** Archive to append to the initrd of the ISO when it boots from the network. */
  readonly readArchive: (infraEnv: InfraEnv, release: Release) => Promise<Uint8Array>;
  /** True for media with the agent services of the installer, which read networks and a rendezvous IP. */
  readonly hasAgents: (release: Release) => Promise<boolean>;
  /** Removes the stored overlays of a revision that is no longer served. */
  readonly forget: (infraEnv: Pick<InfraEnv, 'id' | 'revision'>) => Promise<void>;
};

/** Overlays in memory; one has some 60 KiB. */
const MOST = 256;
/** Configs in memory, and packed ones; a config for hundreds of hosts has a few MiB. */
const MOST_TEXTS = 16;

export function createImages(
  service: {
    readonly key: ServiceKey;
    readonly releases: Releases;
    readonly networkTool: NetworkTool | undefined;
  },
  data: string,
): CustomisedImages {
  const directory = overlaysBelow(data);
  const key = service.key.derive('overlays');
  const overlays = createRecent<PackedOverlay>(MOST, isOfValues);
  const ignitions = createRecent<string>(MOST_TEXTS, isOfValues);
  const archives = createRecent<Uint8Array>(MOST_TEXTS, isOfValues);
  const nameOf = ({ id, revision }: Pick<InfraEnv, 'id' | 'revision'>, { base }: Release): string =>
    `${id} ${revision} ${base.digest}`;
  const placeOf = (infraEnv: InfraEnv, release: Release): OverlayPlace => ({
    directory,
    key,
    name: nameOf(infraEnv, release),
    label: labelOverlay(infraEnv),
  });
  const { plan, render, renderConfig, findAgents } = createMakers(service.networkTool);
  const store = async (infraEnv: InfraEnv, release: Release): Promise<PackedOverlay> => {
    const place = placeOf(infraEnv, release);
    return (await openStoredOverlay(place)) ?? storeOverlay(place, await plan(infraEnv, release));
  };
  const overlayOf = (infraEnv: InfraEnv, release: Release): Promise<PackedOverlay> =>
    overlays.get(nameOf(infraEnv, release), () => store(infraEnv, release));
  return {
    async prepare(infraEnv, release) {
      try {
        const parts = await plan(infraEnv, release);
        const store = () => storeOverlay(placeOf(infraEnv, release), parts);
        return { keep: () => overlays.get(nameOf(infraEnv, release), store) };
      } catch (error) {
        if (release.isOwn || !isOfValues(error)) throw error;
        // The areas of the ISO do not limit a machine that boots from the network.
        await render(infraEnv, release).catch(() => Promise.reject(error as ApiFailure));
        return { refusal: (error as ApiFailure).message, keep: () => Promise.resolve() };
      }
    },
    readIgnition: (infraEnv, release) =>
      ignitions.get(nameOf(infraEnv, release), () => renderConfig(infraEnv, release)),
    open: async (infraEnv, release) =>
      createVirtualIso(release.base, await overlayOf(infraEnv, release)),
    readArchive: (infraEnv, release) =>
      archives.get(nameOf(infraEnv, release), () => render(infraEnv, release)),
    hasAgents: findAgents,
    async forget(infraEnv) {
      for (const release of await service.releases.list()) {
        const name = nameOf(infraEnv, release);
        overlays.forget(name);
        ignitions.forget(name);
        archives.forget(name);
        await removeStoredOverlay({ directory, name, label: labelOverlay(infraEnv) });
      }
    },
  };
}

/** Makes what an image is made of; the results are remembered elsewhere. */
function createMakers(networkTool: NetworkTool | undefined) {
  const make =
    <Result>(
      what: string,
      act: (iso: IsoImage, values: CustomValues, infraEnv: InfraEnv) => Promise<Result>,
    ) =>
    (infraEnv: InfraEnv, release: Release): Promise<Result> =>
      generating(`failed to generate ${what}`, () =>
        useRelease(release, async (iso) =>
          act(iso, await readAll(iso, infraEnv, networkTool), infraEnv),
        ),
      );
  const agents = createRecent<boolean>(MOST);
  return {
    findAgents: (release: Release): Promise<boolean> =>
      agents.get(release.base.digest, () =>
        useRelease(release, async (iso) => hasAgents(await readPristine(iso))),
      ),
    plan: make('image', (iso, values, infraEnv) =>
      planCustomisation(iso, values, {
        force: true,
        dropBuilt: true,
        ...withoutUndefined({ image: readSiteImage(infraEnv) }),
      }),
    ),
    render: make('initrd', (iso, values, infraEnv) => {
      if (readSiteImage(infraEnv)) throw noImage();
      return renderArchive(iso, values);
    }),
    renderConfig: make('ignition', renderIgnition),
  };
}

const noImage = (): UsageError =>
  new UsageError(
    'customize.no-effect',
    'a machine that boots from the network has no medium for the configuration image',
  );

/** Prefix of an overlay's file name. */
export const labelOverlay = ({ id, revision }: Pick<InfraEnv, 'id' | 'revision'>): string =>
  `${id}.${revision}.`;

const LABEL = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.(\d+)\./;

/**
 * Removes what a directory has of deleted InfraEnvs and of earlier revisions, overlays or digests, which a change through another
 * replica leaves here. Overlays of an ISO that is missing from the store stay, because the ISO may come
 * back.
 */
export async function sweepOverlays(state: Pick<State, 'find'>, directory: string): Promise<void> {
  await sweepDirectory(directory);
  for (const name of await listNames(directory)) {
    const [, id, revision] = LABEL.exec(name) ?? [];
    if (id === undefined) continue;
    const record = await state.find('infra-envs', id);
    if (record && record.revision <= Number(revision)) continue;
    await rm(join(directory, name), { force: true });
  }
}

const PAUSE_MS = 3_600_000;

/** Sweeps at the start and every hour, until the signal is aborted; `warn` gets the reasons of failures. */
export async function keepSwept(
  {
    state,
    directories,
  }: { readonly state: Pick<State, 'find'>; readonly directories: readonly string[] },
  { signal, warn }: { readonly signal: AbortSignal; readonly warn: (message: string) => void },
): Promise<void> {
  while (!signal.aborted) {
    const sweepAll = async (): Promise<void> => {
      for (const directory of directories) await sweepOverlays(state, directory);
    };
    await untilAborted(sweepAll(), signal).catch((error: unknown) => {
      const reason = error instanceof Error ? error.message : String(error);
      if (!signal.aborted)
        warn(`old overlays cannot be removed; sealift tries again in an hour: ${reason}`);
    });
    await sleep(PAUSE_MS, signal).catch(() => undefined);
  }
}

export const overlaysBelow = (data: string): string => join(data, 'overlays');

/** Serves a text, or bytes, from memory. */
export const serveText = (text: string | Uint8Array): Served => {
  const bytes = Buffer.from(text as string);
  return {
    size: bytes.length,
    etag: `"${digestOf(bytes)}"`,
    fill(target, offset) {
      bytes.copy(target, 0, offset, offset + target.length);
      return Promise.resolve();
    },
  };
};

async function listNames(directory: string): Promise<readonly string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return [];
    throw error;
  }
}

/** Reads the config of the ISO without site values. */
async function readPristine(iso: IsoImage): Promise<string | undefined> {
  return (await decodeEmbedded(ownArchiveOf(await readMedium(iso)))).config;
}

async function readAll(
  iso: IsoImage,
  infraEnv: InfraEnv,
  networkTool: NetworkTool | undefined,
): Promise<CustomValues> {
  const forAgents = hasAgents(await readPristine(iso));
  return readValues(infraEnv, { forAgents, networkTool });
}

async function renderIgnition(iso: IsoImage, values: CustomValues): Promise<string> {
  const pristine = await readPristine(iso);
  const { hosts, ...others } = values;
  // On any other ISO, networks are files next to the config.
  return configure(pristine, hasAgents(pristine) && hosts ? values : others);
}

const hasAgents = (pristine: string | undefined): boolean =>
  pristine !== undefined && isForAgents(parseResolved(pristine, 'the Ignition config of the ISO'));

/** Runs a step and reports its foreseen errors to the client, with the name of the step. */
async function generating<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    const isHidden = error instanceof RegistryError; // the message names the place of the store
    if (!(error instanceof SealiftError) || isHidden) throw error;
    throw new ApiFailure(isRefusal(error) ? 400 : 500, `${what}: ${error.message}`, error);
  }
}

/** True if the values of the InfraEnv cause the failure: on the same ISO, they fail every time. */
const isOfValues = (error: unknown): boolean =>
  error instanceof ApiFailure && isRefusal(error.cause);

/** True if an ISO refuses values: of another kind, by rules of their own, or too large for its areas. */
const isRefusal = (error: unknown): boolean =>
  error instanceof ConfigError ||
  error instanceof UsageError ||
  (error instanceof SealiftError && REFUSALS.test(error.code));

const REFUSALS = /^(?:config-image|customize|ignition|kargs)\./;
