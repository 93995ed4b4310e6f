import { IntegrityError, type FileProblem } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import { parseResolved } from '../ignition/index.ts';
import type { IsoFile, IsoImage } from '../iso/index.ts';
import {
  readConfiguredCluster,
  findCautions,
  type ConfiguredCluster,
} from '../openshift/agent/cluster.ts';
import {
  CONFIG_ARCHIVE_PATH,
  decodeConfigArchive,
  MAX_ARCHIVE_SIZE,
  type ConfigArchive,
  describeLiveSystem,
  findReleaseImage,
  type LiveSystem,
} from '../openshift/agent/live-system.ts';
import {
  findArchiveObstacles,
  findLabelObstacle,
  findMediumObstacles,
  type Obstacle,
} from '../openshift/agent/obstacles.ts';
import { osStreamOf } from '../openshift/release/os-stream.ts';
import { readIndex } from './media-index.ts';
import {
  type ConfigFiles,
  describeDamage,
  useMedium,
  readBootstrapIgnition,
  readEmbeddedIgnition,
} from './open.ts';

type NamedFile = {
  readonly path: string;
  /** Name that the user gave, for messages. */
  readonly shownAs: string;
};

/** Verdict on a configuration image, with the cluster that it configures. */
export type ConfigImageCheck = {
  readonly fits: boolean;
  /** Reasons why the medium refuses the image; empty if it accepts the image. */
  readonly obstacles: readonly FileProblem[];
  /** Contents that the medium accepts, but that may stop the installation. */
  readonly cautions: readonly string[];
  /** Release that the medium installs; absent if its Ignition config names no release. */
  readonly releaseImage?: string;
  /** Absent if the image has no readable archive. */
  readonly cluster?: ConfiguredCluster;
};

/**
 * Checks an image of `openshift-install agent create config-image` against a live ISO, with the rules of its
 * loader (installer: `load-config-iso.sh`). Reads at most 16 MiB of the image, which unpack to 32 MiB at
 * most.
 *
 * @throws ConfigError `iso.unreadable`; IntegrityError if either is not an ISO, or if the medium is not a
 * live ISO
 */
export async function checkConfigImage(
  image: NamedFile,
  medium: NamedFile,
): Promise<ConfigImageCheck> {
  const live = await useMedium(medium.path, readLiveMedium);
  return useMedium(image.path, (iso) =>
    judgeConfigImage(iso, live, { image: image.shownAs, medium: medium.shownAs }),
  );
}

/** @param names of both, for messages */
export async function judgeConfigImage(
  iso: IsoImage,
  { system, ...told }: LiveMedium,
  names: { readonly image: string; readonly medium: string },
): Promise<ConfigImageCheck> {
  const { archive, problem } = await readArchive(iso);
  const cluster = archive && readConfiguredCluster(archive);
  const releaseImage = system.clusterImageSet && findReleaseImage(system.clusterImageSet);
  const ofImage = [
    ...findLabelObstacle(iso.volume.volumeId),
    ...(problem ? [problem] : []),
    ...(archive ? findArchiveObstacles(system, archive) : []),
  ];
  const obstacles = [
    ...findMediumObstacles(system).map((obstacle) => describeObstacle(obstacle, names.medium)),
    ...ofImage.map((obstacle) => describeObstacle(obstacle, names.image)),
  ];
  return {
    fits: obstacles.length === 0,
    obstacles,
    cautions: archive && cluster ? findCautions(system, archive, { cluster, ...told }) : [],
    ...withoutUndefined({ releaseImage, cluster }),
  };
}

const describeObstacle = (obstacle: Obstacle, file: string): FileProblem => ({
  severity: 'error',
  file,
  ...obstacle,
});

/** The live system that reads a configuration image, and what the medium is made for. */
export type LiveMedium = {
  readonly system: LiveSystem;
  readonly architecture?: string;
  readonly osStream?: string;
};

/** @throws IntegrityError if the medium is not a live ISO, or if its configs cannot be read */
export async function readLiveMedium(iso: IsoImage): Promise<LiveMedium> {
  const system = await readLiveSystem(iso);
  const architecture = (await readIndex(iso))?.release.architecture;
  return {
    system,
    ...withoutUndefined({ architecture, osStream: osStreamOf(iso.volume.volumeId) }),
  };
}

export async function readLiveSystem(iso: ConfigFiles): Promise<LiveSystem> {
  const bootstrap = await readBootstrapIgnition(iso);
  const embedded = await readEmbeddedIgnition(iso);
  return describeLiveSystem([
    ...(bootstrap === undefined ? [] : [parseResolved(bootstrap, 'bootstrap Ignition config')]),
    ...(embedded === undefined ? [] : [parseResolved(embedded, 'embedded Ignition config')]),
  ]);
}

/** A configuration image as it was read. */
type ReadArchive = {
  readonly archive?: ConfigArchive;
  /** Reason why there is no archive. */
  readonly problem?: Obstacle;
};

/**
 * Reads a configuration image, with its volume id and its size in bytes.
 *
 * @throws ConfigError `iso.unreadable`; IntegrityError if it is not an ISO
 */
export const openConfigImage = (
  path: string,
): Promise<ReadArchive & { readonly label: string; readonly size: number }> =>
  useMedium(path, async (iso) => {
    const { volumeId: label } = iso.volume;
    return { label, size: iso.fileSize, ...(await readArchive(iso)) };
  });

/** The file, or what is in its place. A mounted ISO with Rock Ridge has names as they are written. */
async function findArchive(iso: IsoImage): Promise<IsoFile | string> {
  const node = await iso.find(CONFIG_ARCHIVE_PATH);
  if (node?.kind !== 'file') return node === undefined ? 'no such file' : `a ${node.kind}`;
  const isNamed = !iso.hasRockRidge || `/${node.name}` === CONFIG_ARCHIVE_PATH;
  return isNamed ? node : 'a file whose name differs in case';
}

/** Damage in the image is a reason to refuse it, as in the loader. */
async function readArchive(iso: IsoImage): Promise<ReadArchive> {
  try {
    const node = await findArchive(iso);
    if (typeof node === 'string') return { problem: describeAbsent(node) };
    return { archive: await decodeConfigArchive(await iso.readFile(node, MAX_ARCHIVE_SIZE)) };
  } catch (error) {
    const problem = describeDamage(error);
    if (problem === undefined) throw error;
    const code = error instanceof IntegrityError ? error.code : undefined;
    const isLarge = code === 'iso.file-too-large';
    const hint = isLarge ? 'leave out large manifests' : 'make the image again, or copy it again';
    return { problem: { code: 'image.archive', problem, hint } };
  }
}

const describeAbsent = (found: string): Obstacle => ({
  code: 'image.no-archive',
  problem: `the ISO has no ${CONFIG_ARCHIVE_PATH}`,
  expected: 'a file',
  found,
  hint: 'give the agentconfig.noarch.iso of "openshift-install agent create config-image"',
});
