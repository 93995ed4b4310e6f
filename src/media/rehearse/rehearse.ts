import { withoutUndefined } from '../../base/lists.ts';
import type { IsoImage } from '../../iso/index.ts';
import type { HostNeed } from '../../openshift/node/host-needs.ts';
import type { ConfigImageCheck } from '../config-image.ts';
import { type IsoSource, useMedium } from '../open.ts';
import { rehearseBoot } from './boot.ts';
import { listNeeds, measureReading, type MediumReading, rehearseInstalled } from './hosts.ts';
import { rehearseIgnition } from './ignition.ts';
import { rehearseInstaller } from './installer.ts';
import { readPlayed } from './played-medium.ts';
import { rehearsePulls } from './pulls.ts';
import { rehearseRegistry } from './registry.ts';
import { readPlayedRelease } from './release.ts';
import { type Step, unless } from './step.ts';

/** The steps of hosts with a medium. Plain JSON. */
export type Rehearsal = {
  /** True if nothing that hosts do will fail; something may still not be known. */
  readonly ok: boolean;
  readonly product: string;
  readonly release?: { readonly version: string; readonly architecture: string };
  readonly steps: readonly Step[];
  /** Empty for media that install no cluster. */
  readonly needs: readonly HostNeed[];
  /** Absent on media that do not boot. */
  readonly reading?: MediumReading;
};

export type RehearseOptions = {
  readonly signal: AbortSignal;
  /** The verdict on a configuration image for this medium. */
  readonly configImage?: ConfigImageCheck | undefined;
};

/**
 * Plays on paper what hosts will do with a medium, from its own bytes: large blobs are not read, and nothing is
 * asked of a network.
 *
 * @throws ConfigError `iso.unreadable`; IntegrityError if not even directories and index can be read
 */
export const rehearse = (medium: IsoSource, options: RehearseOptions): Promise<Rehearsal> =>
  useMedium(medium, (iso) => play(iso, options));

async function play(iso: IsoImage, { signal, configImage }: RehearseOptions): Promise<Rehearsal> {
  const medium = await readPlayed(iso);
  const { index } = medium;
  const isBooted = iso.bootEntries.length > 0 || index?.product === 'live-iso';
  const { value: release, problem } = await readPlayedRelease(medium, signal);
  const steps = [
    ...(isBooted ? await rehearseBoot(medium) : []),
    ...rehearseIgnition(medium),
    ...(await rehearseRegistry(medium)),
    ...(release === undefined && problem === undefined
      ? []
      : [unless('pulls', 'the payload of the release can be read', { reason: problem })]),
    ...(await rehearsePulls(medium, release, signal)),
    ...rehearseInstaller(medium, configImage),
    ...rehearseInstalled(medium),
  ];
  const reading = isBooted ? await measureReading(medium) : undefined;
  return {
    ok: steps.every(({ outcome }) => outcome !== 'will-not'),
    product: index?.product ?? 'other',
    steps,
    needs: listNeeds(medium, release),
    ...withoutUndefined({
      reading,
      release: index && {
        version: index.release.version,
        architecture: index.release.architecture,
      },
    }),
  };
}
