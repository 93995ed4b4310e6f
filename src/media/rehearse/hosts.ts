import { sumSizes, withoutUndefined } from '../../base/lists.ts';
import { checkIgnition, type IgnitionConfig, parseIgnition } from '../../ignition/index.ts';
import { readBootMenus } from '../../iso/index.ts';
import { type HostNeed, listHostNeeds } from '../../openshift/node/host-needs.ts';
import { readCopyPlan, readStartedRegistry } from '../../openshift/node/read-registry.ts';
import { findInternalReleaseImage } from '../../openshift/release/manifests.ts';
import { minorOf } from '../../openshift/release/version.ts';
import { blobsOf, parseManifest } from '../../registry/index.ts';
import { ROOTFS_PATH } from '../media-index.ts';
import { attempt } from '../open.ts';
import { listContents, type PlayedMedium, textOf } from './played-medium.ts';
import type { PlayedRelease } from './release.ts';
import { type RehearsedStep, unlessAny } from './step.ts';
import { rehearseUnits, type UnitJudging } from './units.ts';

const PART = 'hosts';
const INSTALL = '/etc/assisted/install.ign';

/** Plays the first boot from disk: the config that installed hosts get. */
export async function rehearseInstalled(
  { files, index, live }: PlayedMedium,
  judging: UnitJudging,
): Promise<readonly RehearsedStep[]> {
  if (index?.product !== 'live-iso' || live === undefined) return [];
  const { config, problem } = readInstalled({ files });
  const problems = config ? listProblems(config) : [problem ?? ''];
  return [
    ...unlessAny(
      PART,
      'installed hosts take the config that the medium gives them',
      problems.map((reason) => ({ reason, place: INSTALL })),
    ),
    ...(config
      ? await rehearseUnits(
          config,
          { part: PART, name: 'systemd starts the units of installed hosts' },
          judging,
        )
      : []),
  ];
}

/** Installed hosts that have the scripts of the registry start it; others were made without one. */
function listProblems(config: IgnitionConfig): readonly string[] {
  const { domain, unit, missing } = readStartedRegistry(config, listContents(config));
  return [
    ...checkIgnition(config, INSTALL).map(({ path = '$', problem }) => `${path}: ${problem}`),
    ...(domain !== undefined && unit?.isEnabled !== true ? ['no unit starts the registry'] : []),
    ...missing.map((path) => `no config writes ${path}`),
  ];
}

type Files = Pick<PlayedMedium, 'files'>;

function readInstalled(medium: Files): {
  readonly config?: IgnitionConfig;
  readonly problem?: string;
} {
  const text = textOf(medium, INSTALL);
  if (text === '') return { problem: `no config writes ${INSTALL}` };
  try {
    return { config: parseIgnition(text, INSTALL) };
  } catch (error) {
    return { problem: (error as Error).message };
  }
}

/** Lists the needs of each kind of host; empty for media that install no cluster. */
export function listNeeds(
  { files, index, live }: PlayedMedium,
  release: PlayedRelease | undefined,
): readonly HostNeed[] {
  if (index?.product !== 'live-iso' || live === undefined) return [];
  const copied = readCopyPlan(listContents(readInstalled({ files }).config));
  const isInteractive = files.has('/etc/assisted/interactive-ui');
  return listHostNeeds({
    minor: minorOf(index.release.version) ?? '',
    hasInternalRegistry:
      isInteractive && findInternalReleaseImage(release?.definitions ?? []) !== undefined,
    ...withoutUndefined({ copied }),
  });
}

/** Bytes that a host reads of the medium until its registry answers, and the time that they take. Plain JSON. */
export type MediumReading = {
  /** Kernel, initrds and the image of the registry. */
  readonly least: number;
  /** The root file system too, of which a host reads what it runs. */
  readonly most: number;
  readonly seconds: readonly {
    /** Bytes a second. */
    readonly rate: number;
    readonly least: number;
    readonly most: number;
  }[];
};

/** Bytes a second of slow virtual media, of usual ones, and of a stick. */
const RATES = [5_000_000, 20_000_000, 100_000_000];

/** Measures what a management controller must deliver until the registry answers; absent on media that do not boot. */
export async function measureReading({
  iso,
  registry,
}: PlayedMedium): Promise<MediumReading | undefined> {
  const { value: menus = [] } = await attempt(() => readBootMenus(iso));
  const [entry] = menus.flatMap(({ entries }) => entries);
  if (!entry) return undefined;
  const sizeOf = async (path: string): Promise<number> => {
    const node = await iso.find(path);
    return node?.kind === 'file' ? node.size : 0;
  };
  const paths = [...new Set([entry.kernel, ...entry.initrds])];
  const sizes = await Promise.all(paths.filter((path) => path !== ROOTFS_PATH).map(sizeOf));
  const image = await attempt(() => measureImage(registry));
  const least = sumSizes(sizes.map((size) => ({ size }))) + (image.value ?? 0);
  const most = least + (await sizeOf(ROOTFS_PATH));
  const time = (bytes: number, rate: number): number => Math.ceil(bytes / rate);
  return {
    least,
    most,
    seconds: RATES.map((rate) => ({ rate, least: time(least, rate), most: time(most, rate) })),
  };
}

async function measureImage(registry: PlayedMedium['registry']): Promise<number> {
  const bytes = await registry?.tree.read('/images/registry/manifest.json');
  if (!bytes) return 0;
  const manifest = parseManifest(bytes);
  return manifest.kind === 'manifest' ? sumSizes(blobsOf(manifest)) : 0;
}
