import { rm, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { digestOf } from '../../base/digest.ts';
import { setMode } from '../../base/disk/mode.ts';
import { nameAside, sweepAside } from '../../base/disk/aside.ts';
import { cloneFile } from '../../base/disk/copy.ts';
import { explainWriteError } from '../../base/disk/disk-errors.ts';
import { makeDirectory, syncDirectory, writeWhole } from '../../base/disk/files.ts';
import { openOwnFile } from '../../base/disk/open-file.ts';
import { publishFile } from '../../base/disk/publish.ts';
import { ConfigError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { RandomAccess } from '../../base/random-access.ts';
import { parseResolved } from '../../ignition/index.ts';
import {
  editKargs,
  type Extent,
  type IsoImage,
  type Layout,
  type LiveGraft,
} from '../../iso/index.ts';
import { configure } from '../../openshift/agent/configure.ts';
import {
  describeLiveSystem,
  findReleaseImage,
  findReleaseVersion,
} from '../../openshift/agent/live-system.ts';
import type { CustomValues } from '../../openshift/agent/values.ts';
import { compareReleases, type KnownRelease } from '../../openshift/release/version.ts';
import { namesBeside } from '../../outputs/place.ts';
import {
  overlayAccess,
  type OverlayPart,
  encodeEmbedded,
  requireMenu,
  planEmbedPart,
  planKargParts,
  applyParts,
  sortParts,
} from '../areas.ts';
import type { AreaValues } from '../area-values.ts';
import { encodeBuilt } from '../built.ts';
import { CONFIG_AREA_SIZE } from '../config-area.ts';
import { BUILT_PATH, CONFIG_AREA_PATH, type MutableArea, readIndex } from '../media-index.ts';

/* New ISOs with site values: a copy of an ISO, or a layout that is configured before it is poured. */

export type CopyOptions = {
  readonly output: string;
  /** True if the image is a local file, whose blocks a copy may share. */
  readonly isLocal: boolean;
  /** Permission bits. */
  readonly mode: number;
  readonly signal: AbortSignal;
  readonly onProgress: (bytes: number, total?: number) => void;
};

const PIECE = 4 * 2 ** 20;

/**
 * The copy gets its name when it is complete. It shares blocks with the original if the file system can.
 *
 * @throws DiskError of writing; the signal's reason
 */
export async function copyWithParts(
  image: RandomAccess,
  parts: readonly OverlayPart[],
  options: CopyOptions,
): Promise<{ readonly cloned: boolean }> {
  const { output } = options;
  await makeDirectory(dirname(output));
  await sweepAside(output);
  const aside = await nameAside(output);
  try {
    const cloned = options.isLocal && (await cloneFile(image.path, aside));
    const file = await openOwnFile(aside, { mode: options.mode });
    try {
      await fill(file, { image, parts, cloned, ...options });
      await rm(namesBeside(output).checksum, { force: true });
      await rm(namesBeside(output).report, { force: true });
      await publishFile(file, aside, output);
    } finally {
      await file.close();
    }
    await syncDirectory(dirname(output));
    return { cloned };
  } catch (error) {
    await rm(aside, { force: true });
    throw explainWriteError(error, output);
  }
}

type Filling = CopyOptions & {
  readonly image: RandomAccess;
  readonly parts: readonly OverlayPart[];
  readonly cloned: boolean;
};

async function fill(file: FileHandle, filling: Filling): Promise<void> {
  const { image, parts, cloned, mode, signal, onProgress } = filling;
  await setMode(file, mode);
  await file.truncate(image.size);
  if (cloned) for (const { offset, bytes } of parts) await writeWhole(file, bytes, offset);
  const { read, size } = overlayAccess(image, parts);
  for (let at = cloned ? size : 0; at < size; at += PIECE) {
    signal.throwIfAborted();
    const bytes = await read(at, Math.min(PIECE, size - at));
    // Holes in a new file read as zeros.
    if (bytes.some((byte) => byte !== 0)) await writeWhole(file, bytes, at);
    onProgress(at + bytes.length, size);
  }
  await file.sync();
}

type Areas = LiveGraft['areas'];

/** Describes the areas of a medium without site values, for its index. */
export function describeAreas(
  areas: Areas,
  extents: readonly Extent[],
  { archive, builtSize = 0 }: { readonly archive: Uint8Array; readonly builtSize?: number },
): readonly MutableArea[] {
  const { embed, kargs } = locate(areas, extents);
  const ignition = planEmbedPart(embed, archive);
  return [
    describe('ignition', ignition),
    ...describeZeros('built', findExtent(extents, BUILT_PATH), builtSize),
    ...planKargParts(kargs, kargs.default).map((part) => describe('kernel-arguments', part)),
    ...describeZeros('config-image', findExtent(extents, CONFIG_AREA_PATH), CONFIG_AREA_SIZE),
  ];
}

const findExtent = (extents: readonly Extent[], path: string): Extent | undefined =>
  extents.find(({ paths }) => paths.includes(path));

const describeZeros = (
  kind: MutableArea['kind'],
  extent: Extent | undefined,
  size: number,
): readonly MutableArea[] =>
  extent ? [describe(kind, { offset: extent.offset, bytes: new Uint8Array(size) })] : [];

const describe = (kind: MutableArea['kind'], { offset, bytes }: OverlayPart): MutableArea => ({
  kind,
  offset,
  size: bytes.length,
  digest: digestOf(bytes),
});

/** @param pristine JSON text of the Ignition config */
export function renderBuilt(
  { kargs }: Areas,
  { pristine, values }: { readonly pristine: string; readonly values: CustomValues },
): AreaValues {
  const config = configure(pristine, values);
  const { append = [], remove = [] } = values.kargs ?? {};
  requireMenu(kargs, append);
  return {
    archive: encodeEmbedded({ config, keyfiles: [] }),
    kargs: editKargs(kargs.default, { append, remove }),
  };
}

/**
 * Also puts a copy of the areas into its file for `--reset`.
 *
 * @throws the errors of `planEmbedPart` and `planKargParts`
 */
export function configureLayout(layout: Layout, areas: Areas, built: AreaValues): Layout {
  const { embed, kargs } = locate(areas, layout.extents);
  const copy = findExtent(layout.extents, BUILT_PATH);
  const parts = sortParts([
    planEmbedPart(embed, built.archive),
    ...planKargParts(kargs, built.kargs),
    ...(copy ? [{ offset: copy.offset, bytes: encodeBuilt(built) }] : []),
  ]);
  return { ...layout, extents: layout.extents.map((extent) => overlay(extent, parts)) };
}

function overlay(extent: Extent, parts: readonly OverlayPart[]): Extent {
  const { offset, size, source } = extent;
  const own = parts.filter(
    (part) => part.offset < offset + size && part.offset + part.bytes.length > offset,
  );
  if (own.length === 0) return extent;
  if (source.kind !== 'bytes') throw new Error(`extent at ${offset} has no bytes to change`);
  const bytes = Buffer.from(source.bytes);
  applyParts(bytes, offset, own);
  return { ...extent, digest: digestOf(bytes), source: { kind: 'bytes', bytes } };
}

/** Converts the areas to offsets from the start of the image. */
function locate({ embed, kargs }: Areas, extents: readonly Extent[]) {
  const startOf = (path: string | undefined): number =>
    path === undefined ? 0 : (findExtent(extents, path)?.offset ?? 0);
  return {
    embed: { offset: startOf(embed.path) + embed.offset, size: embed.size },
    kargs: {
      ...kargs,
      areas: kargs.areas.map((area) => ({ ...area, offset: startOf(area.path) + area.offset })),
    },
  };
}

/**
 * Refuses a ClusterImageSet of another release, as nodes would after they have booted.
 *
 * @param config JSON text of the Ignition config of the medium
 * @param warn called if neither digests nor tags identify the release
 */
export async function requireRelease(
  iso: IsoImage,
  { config, given }: { readonly config: string | undefined; readonly given: string },
  warn?: (text: string) => void,
): Promise<void> {
  const known = config === undefined ? undefined : await readRelease(iso, config);
  const answer = known ? compareReleases(given, known) : 'same';
  if (!known || answer === 'same') return;
  const found = Object.values(known).join(', ');
  if (answer === 'unknown') {
    warn?.(`the ClusterImageSet names ${given}, which cannot be compared with the ISO's ${found}`);
    return;
  }
  throw new ConfigError(
    'customize.other-release',
    'the ClusterImageSet names a different release than the ISO',
    {
      expected: found,
      found: given,
      hint: 'correct spec.releaseImage, or give the ISO of that release',
    },
  );
}

/** Undefined if the medium has no ClusterImageSet. */
async function readRelease(iso: IsoImage, config: string): Promise<KnownRelease | undefined> {
  const live = describeLiveSystem([parseResolved(config, 'the embedded Ignition config')]);
  const set = live.clusterImageSet;
  const image = set && findReleaseImage(set);
  if (set === undefined || image === undefined) return undefined;
  const { release } = (await readIndex(iso)) ?? {};
  if (release) return { image, version: release.version, architecture: release.architecture };
  return { image, ...withoutUndefined({ version: findReleaseVersion(set) }) };
}
