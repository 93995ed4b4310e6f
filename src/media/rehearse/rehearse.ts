import { withoutUndefined } from '../../base/lists.ts';
import type { IsoImage } from '../../iso/index.ts';
import type { RpmArchitecture } from '../../openshift/release/bundle.ts';
import { minorOf } from '../../openshift/release/version.ts';
import type { HostNeed } from '../../openshift/node/host-needs.ts';
import type { ConfigImageCheck } from '../config-image.ts';
import { checkHeldImage } from '../held-image.ts';
import { archOf } from '../named-images.ts';
import { type IsoSource, useMedium } from '../open.ts';
import { rehearseAttached } from './attached.ts';
import { type LeftRelease, rehearseGates } from './gates.ts';
import { rehearseBoot } from './boot.ts';
import { listNeeds, measureReading, type MediumReading, rehearseInstalled } from './hosts.ts';
import { rehearseIgnition } from './ignition.ts';
import { rehearseInstaller } from './installer.ts';
import { rehearseOperators } from './operators.ts';
import { type PlayedMedium, readCarried, readPlayed } from './played-medium.ts';
import { rehearsePulls } from './pulls.ts';
import { rehearseRegistry } from './registry.ts';
import { type PlayedRelease, readPassed, readPlayedRelease } from './release.ts';
import {
  listConfigured,
  type PlannedHosts,
  type PlannedNeed,
  planNeeds,
  rehearseSite,
} from './site.ts';
import { type RehearsedStep, unless } from './step.ts';
import type { UnitJudging } from './units.ts';

/** The steps of hosts with a medium. Plain JSON. */
export type Rehearsal = {
  /** True if nothing that hosts do will fail; something may still not be known. */
  readonly ok: boolean;
  readonly product: string;
  /** Day on which operators should be supported. */
  readonly date: string;
  readonly release?: { readonly version: string; readonly architecture: string };
  readonly steps: readonly RehearsedStep[];
  /** Empty for media that install no cluster. */
  readonly needs: readonly PlannedNeed[];
  /** Absent on media that do not boot. */
  readonly reading?: MediumReading;
};

export type RehearseOptions = UnitJudging & {
  /** Day on which operators should be supported, `YYYY-MM-DD`. */
  readonly date: string;
  /** Finds out what the release asks for that a cluster leaves; absent if that release is not known. */
  readonly askLeft?: ((arch: RpmArchitecture) => Promise<LeftRelease>) | undefined;
  /** The hosts of a site; absent: those of the configuration image, if there is one. */
  readonly site?: readonly PlannedHosts[] | undefined;
  /** The verdict on a configuration image for this medium; absent: on the one inside it, if there is one. */
  readonly configImage?: ConfigImageCheck | undefined;
};

/**
 * Plays what hosts will do with a medium, from its own bytes: reads no large blobs and no network.
 *
 * @throws ConfigError `iso.unreadable`; IntegrityError if not even directories and index can be read
 */
export const rehearse = (medium: IsoSource, options: RehearseOptions): Promise<Rehearsal> =>
  useMedium(medium, async (iso) => {
    const configImage = options.configImage ?? (await checkHeldImage(iso));
    return play(iso, { ...options, configImage });
  });

async function play(iso: IsoImage, options: RehearseOptions): Promise<Rehearsal> {
  const medium = await readPlayed(iso);
  const { index } = medium;
  const isBooted = iso.bootEntries.length > 0 || index?.product === 'live-iso';
  const { value: release, problem } = await readPlayedRelease(medium, options.signal);
  const hosts = meetSite(listNeeds(medium, release), options);
  const steps = [
    ...(isBooted ? await rehearseBoot(medium) : []),
    ...(await rehearseIgnition(medium, options)),
    ...(await rehearseRegistry(medium)),
    ...(release === undefined && problem === undefined
      ? []
      : [unless('pulls', 'the payload of the release can be read', { reason: problem })]),
    ...(await rehearseContents(medium, release, options)),
    ...hosts.steps,
  ];
  const reading = isBooted ? await measureReading(medium) : undefined;
  return {
    ok: steps.every(({ outcome }) => outcome !== 'will-not'),
    product: index?.product ?? 'other',
    date: options.date,
    steps,
    needs: hosts.needs,
    ...withoutUndefined({
      reading,
      release: index && {
        version: index.release.version,
        architecture: index.release.architecture,
      },
    }),
  };
}

const meetSite = (
  needs: readonly HostNeed[],
  { configImage, site = listConfigured(configImage) }: RehearseOptions,
): Pick<Rehearsal, 'steps' | 'needs'> => ({
  steps: rehearseSite(needs, site),
  needs: planNeeds(needs, site),
});

async function rehearseContents(
  medium: PlayedMedium,
  release: PlayedRelease | undefined,
  options: RehearseOptions,
): Promise<readonly RehearsedStep[]> {
  const { signal, date, configImage, askLeft } = options;
  const { index } = medium;
  const carried = await readCarried(medium, signal);
  const passed = await readPassed(medium, carried?.releases ?? [], signal);
  const catalogs = carried?.catalogs ?? [];
  const minor = index && minorOf(index.release.version);
  return [
    ...(await rehearsePulls(medium, release, carried)),
    ...rehearseInstaller(medium, configImage),
    ...(await rehearseInstalled(medium, options)),
    ...(await rehearseAttached(medium)),
    ...rehearseOperators(catalogs, { date, ...withoutUndefined({ minor }) }),
    ...rehearseGates(medium, {
      left: await askLeft?.(archOf(index)),
      releases: [...passed, ...(release ? [release] : [])],
      catalogs,
    }),
  ];
}
