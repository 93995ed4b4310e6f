import { join } from 'node:path';
import { digestOf } from '../../base/digest.ts';
import { ConfigError, RegistryError, SealiftError } from '../../base/errors.ts';
import { parseIgnition } from '../../ignition/config.ts';
import { planCustomisation, renderArchive } from '../../media/customize/plan.ts';
import type { IsoImage } from '../../iso/read/open.ts';
import { decodeEmbedded, readLiveAreas } from '../../media/areas.ts';
import { readPristineArchive } from '../../media/areas.ts';
import type { PackedOverlay } from '../../media/serve/overlay.ts';
import type { Served } from '../../base/http/serve-bytes.ts';
import { openStoredOverlay, removeStoredOverlay, storeOverlay } from '../../media/serve/overlay.ts';
import { createVirtualIso } from '../../media/serve/virtual.ts';
import { configure, isForAgents } from '../../openshift/agent/configure.ts';
import type { CustomValues } from '../../openshift/agent/values.ts';
import { ApiFailure } from '../api-failure.ts';
import type { InfraEnv } from '../infra-envs/infra-env.ts';
import { createRecent } from '../recent.ts';
import { useRelease, type Release } from '../store/release.ts';
import type { Releases } from '../store/releases.ts';
import type { ServiceKey } from '../service-key.ts';
import { readValues } from './infra-env-values.ts';
import { labelOverlay } from './sweep-overlays.ts';

/** The images of InfraEnvs. Nothing of them is written but their overlays. */
export type CustomisedImages = {
  /** JSON text. @throws ApiFailure 500 */
  readonly readIgnition: (infraEnv: InfraEnv, release: Release) => Promise<string>;
  /** @throws ApiFailure 500 */
  readonly open: (infraEnv: InfraEnv, release: Release) => Promise<Served>;
  /** What is behind the initrd of the ISO where that boots from the network. @throws ApiFailure 500 */
  readonly readArchive: (infraEnv: InfraEnv, release: Release) => Promise<Uint8Array>;
  /** Removes what is stored of a revision that is not served any more. */
  readonly forget: (infraEnv: InfraEnv) => Promise<void>;
};

/** Overlays in memory; one is some 60 KiB. */
const MOST = 256;
/** Configs in memory, and packed ones; one of hundreds of hosts has a few MiB. */
const MOST_TEXTS = 16;

export const overlaysBelow = (data: string): string => join(data, 'overlays');

export function createImages(
  service: { readonly key: ServiceKey; readonly releases: Releases },
  data: string,
): CustomisedImages {
  const directory = overlaysBelow(data);
  const key = service.key.derive('overlays');
  const overlays = createRecent<PackedOverlay>(MOST, isOfValues);
  const ignitions = createRecent<string>(MOST_TEXTS, isOfValues);
  const archives = createRecent<Uint8Array>(MOST_TEXTS, isOfValues);
  const nameOf = ({ id, revision }: InfraEnv, { base }: Release): string =>
    `${id} ${revision} ${base.digest}`;
  const store = async (infraEnv: InfraEnv, release: Release): Promise<PackedOverlay> => {
    const name = nameOf(infraEnv, release);
    const place = { directory, key, name, label: labelOverlay(infraEnv) };
    const stored = await openStoredOverlay(place);
    if (stored) return stored;
    const parts = await generating('failed to generate image', () =>
      useRelease(release, async (iso) =>
        planCustomisation(iso, await readAll(iso, infraEnv), { force: true }),
      ),
    );
    return storeOverlay(place, parts);
  };
  const overlayOf = (infraEnv: InfraEnv, release: Release): Promise<PackedOverlay> =>
    overlays.get(nameOf(infraEnv, release), () => store(infraEnv, release));
  return {
    readIgnition: (infraEnv, release) =>
      ignitions.get(nameOf(infraEnv, release), () =>
        generating('failed to generate ignition', () =>
          useRelease(release, async (iso) => {
            const pristine = await readPristine(iso);
            const forAgents = hasAgents(pristine);
            const { hosts = [], ...others } = readValues(infraEnv, { forAgents });
            // On any other ISO, networks are files beside the config.
            return configure(pristine, forAgents ? { ...others, hosts } : others);
          }),
        ),
      ),
    open: async (infraEnv, release) =>
      createVirtualIso(release.base, await overlayOf(infraEnv, release)),
    readArchive: (infraEnv, release) =>
      archives.get(nameOf(infraEnv, release), () =>
        generating('failed to generate initrd', () =>
          useRelease(release, async (iso) => renderArchive(iso, await readAll(iso, infraEnv))),
        ),
      ),
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

/** The config that the ISO has without anybody's values. */
async function readPristine(iso: IsoImage): Promise<string | undefined> {
  const archive = await readPristineArchive(iso);
  return (await decodeEmbedded(archive ?? (await readLiveAreas(iso)).embed.bytes)).config;
}

async function readAll(iso: IsoImage, infraEnv: InfraEnv): Promise<CustomValues> {
  return readValues(infraEnv, { forAgents: hasAgents(await readPristine(iso)) });
}

const hasAgents = (pristine: string | undefined): boolean =>
  pristine !== undefined && isForAgents(parseIgnition(pristine, 'the Ignition config of the ISO'));

/** What is foreseen is said to the client, behind what we were doing. */
async function generating<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    const isHidden = error instanceof RegistryError; // it names where the store is
    if (!(error instanceof SealiftError) || isHidden) throw error;
    throw new ApiFailure(500, `${what}: ${error.message}`, error);
  }
}

/** The same values fail on the same ISO for ever. */
const isOfValues = (error: unknown): boolean =>
  error instanceof ApiFailure && error.cause instanceof ConfigError;

/** A text as it is served. */
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
