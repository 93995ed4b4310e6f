import { digestOf } from '../../base/digest.ts';
import { type FileInput, type FileDigests, readUnchanged } from '../../base/disk/file-digests.ts';
import { IntegrityError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { readVersion } from '../../base/program.ts';
import type { BlobCache } from '../../base/store/blob-cache.ts';
import type { Sealed, Stage } from '../../engine/index.ts';
import { decodeInitrd } from '../../ignition/index.ts';
import {
  type BasePatch,
  type BaseScan,
  decodeBaseScan,
  type EmbedArea,
  type EmbedPlan,
  type Extent,
  findEmbedArea,
  type IsoImage,
  type Layout,
  layOutIso,
  type LiveGraft,
  openIso,
  type Places,
  planEmbed,
  requireArchitecture,
  clampEpoch,
  type TreeFile,
} from '../../iso/index.ts';
import { applyParts, overlayRead, readLiveAreas } from '../../media/areas.ts';
import { encodeInstallation, findBuiltKargs } from '../../media/built.ts';
import { describeAreas } from '../../media/customize/copy.ts';
import { DEPLOYMENT, describeMedium } from '../../media/describe.ts';
import {
  DEPLOYED_DISK_PATH,
  INDEX_PATH,
  type MediaIndex,
  PRISTINE_IGNITION_PATH,
} from '../../media/media-index.ts';
import { planProof, toProofWord } from '../../media/proof.ts';
import { planMediaRegistry, type MediaRegistry } from '../../media/tree.ts';
import type { RpmArchitecture } from '../../openshift/release/bundle.ts';
import { osStreamOf } from '../../openshift/release/os-stream.ts';
import type { Release } from '../../openshift/release/release.ts';

export type InstallationIsoParts = {
  readonly base: FileInput;
  readonly scan: BaseScan;
  /** The architecture in the configuration. */
  readonly architecture: RpmArchitecture;
  /** Ignition config, as JSON text; it holds the pull secret. */
  readonly ignition: Sealed;
  /** Places of the ISO that this one replaces. */
  readonly places?: Places;
  /** Seconds since 1970, for what is new on a grown medium; default: the base's creation. */
  readonly epoch?: number;
  /** Describes what the medium installs, for its index or its proof. */
  readonly release: MediaIndex['release'];
  readonly embedded?: EmbeddedParts;
  /** Disk image of a deployment ISO, whose Ignition config writes it to a disk. */
  readonly disk?: Layout;
};

/** Images that the medium serves by itself. */
export type EmbeddedParts = Pick<MediaRegistry, 'plan'> & {
  /** The payload that images and live ISO come from, if one is named. */
  readonly releases?: readonly Release[];
};

export type InstallationLayout = { readonly layout: Layout; readonly embedArea: EmbedAreaUse };

/** Bytes. */
export type EmbedAreaUse = {
  /** Size of the archive with the Ignition config. */
  readonly used: number;
  /** Size of the area in the base. */
  readonly size: number;
  /** Size of the area that replaced it, if it was too small. */
  readonly grownTo?: number;
  /** Files that the base had in the area and the ISO no longer has. */
  readonly replaced: readonly string[];
};

/**
 * Lays out the base ISO with an Ignition config in its embed area and nothing else changed, unless
 * it carries images. A config that is too large for the area gets a larger one, behind the base.
 */
export const layOutInstallationIso: Stage<
  InstallationIsoParts,
  InstallationLayout,
  { readonly cache: BlobCache; readonly digests: FileDigests }
> = {
  name: 'lay out ISO',
  run: (parts, { cache, digests }, { signal }) =>
    readUnchanged(parts.base, digests, () => layOut(parts, { cache, signal })),
};

type LayoutTools = { readonly cache: BlobCache; readonly signal: AbortSignal };

async function layOut(
  parts: InstallationIsoParts,
  tools: LayoutTools,
): Promise<InstallationLayout> {
  const { base, ignition, embedded } = parts;
  const iso = await openIso(base.path);
  try {
    await requireArchitecture(iso, parts.architecture, OTHER_BASE);
    const { kargs } = await readLiveAreas(iso);
    const archive = encodeInstallation(Buffer.from(ignition.reveal()), findBuiltKargs(kargs));
    const area = await findEmbedArea(iso);
    const plan = { ...(await planEmbed(iso, area, { archive })), archive };
    const replaced = await listEmbedded(iso, area);
    const isGrown = Boolean(embedded ?? parts.disk) || plan.patches.length === 0;
    const layout = isGrown
      ? await layOutGrown(iso, plan, { ...parts, ...tools })
      : await layOutProven(iso, plan, { ...parts, ...tools });
    const { grownTo } = plan;
    const use = { used: archive.length, size: area.size, replaced };
    return { layout, embedArea: { ...use, ...withoutUndefined({ grownTo }) } };
  } finally {
    await iso.close();
  }
}

const OTHER_BASE = 'give another live ISO, or set architecture in the configuration';

/** Lists the files in the area. A wrong description of the area would cause other bytes to be overwritten. */
async function listEmbedded(iso: IsoImage, area: EmbedArea): Promise<readonly string[]> {
  try {
    const files = await decodeInitrd(await iso.readBytes(area.offset, area.size));
    return [...files.keys()];
  } catch (cause) {
    if (!(cause instanceof IntegrityError)) throw cause;
    throw new IntegrityError(
      'iso.no-embed-area',
      `${area.size} bytes at ${area.offset}, in ${area.file}, are not an embed area`,
      { cause, hint: 'use the live ISO as published, or reset its embed area' },
    );
  }
}

/** Recipe of the minimal ISO: it describes the base byte by byte, and a grown ISO has other bytes. */
const MINIMAL_RECIPE = '/coreos/miniso.dat';

type Embedding = EmbedPlan & { readonly archive: Uint8Array };

/** Lays out the ISO with its images, or with a larger area, behind the base, and an index of all. */
async function layOutGrown(
  iso: IsoImage,
  { archive, ...plan }: Embedding,
  { scan, epoch, embedded, disk, release, places, cache }: InstallationIsoParts & LayoutTools,
): Promise<Layout> {
  const { plan: mirror = NO_IMAGES, releases } = embedded ?? {};
  const kargs = await locateArguments(iso);
  const pristine = { kind: 'bytes', bytes: archive } as const;
  return layOutIso({
    base: await decodeBaseScan(iso.path, scan),
    files: [
      ...plan.files,
      { path: PRISTINE_IGNITION_PATH, content: pristine },
      ...(embedded ? await planMediaRegistry({ ...embedded, cache }) : []),
      ...(disk ? [planDiskFile(disk)] : []),
    ],
    remove: [MINIMAL_RECIPE],
    patches: plan.patches,
    epoch: epoch ?? clampEpoch(iso.volume.createdAt ?? new Date(0)),
    ...withoutUndefined({ places }),
    index: {
      path: INDEX_PATH,
      render: (extents, areas) =>
        describeMedium({
          product: disk ? DEPLOYMENT : 'installation-iso',
          base: { ...scan, ...withoutUndefined({ osStream: osStreamOf(iso.volume.volumeId) }) },
          release,
          plan: mirror,
          ...withoutUndefined({ releases }),
          mutable: describeAreas({ embed: plan.place, kargs }, extents, { archive }),
          extents,
          areas,
        }),
    },
  });
}

const NO_IMAGES = { images: [] };

const planDiskFile = (layout: Layout): TreeFile => ({
  path: DEPLOYED_DISK_PATH,
  content: { kind: 'image', layout },
  mode: 0o600,
});

/** The places of the kernel arguments in the base; an image without areas for them has no place. */
async function locateArguments(iso: IsoImage): Promise<LiveGraft['areas']['kargs']> {
  const { kargs } = await readLiveAreas(iso);
  if (!kargs) return { default: '', size: 0, areas: [] };
  const areas = kargs.areas.map(({ offset, pad, end }) => ({ offset, pad, end }));
  return { default: kargs.text, size: kargs.size, areas };
}

/**
 * Lays out a patched base with the proof in its volume descriptor: every extent is from the base, except
 * the extents that a patch touches.
 */
async function layOutProven(
  iso: IsoImage,
  { patches: [patch] }: Embedding,
  { scan, release, signal }: InstallationIsoParts & LayoutTools,
): Promise<Layout> {
  const planned = patch ? [patch] : [];
  const kargs = await locateArguments(iso);
  const areas = [
    ...planned.map(({ offset, bytes }) => ({
      kind: 'ignition' as const,
      offset,
      size: bytes.length,
    })),
    ...kargs.areas.map(({ offset }) => ({
      kind: 'kernel-arguments' as const,
      offset,
      size: kargs.size,
    })),
  ];
  const proof = await planProof(
    { read: overlayRead(iso.readBytes, planned), signal },
    {
      product: 'installation-iso',
      program: readVersion(),
      of: toProofWord(release.version),
      size: scan.size,
      areas: areas.sort((a, b) => a.offset - b.offset),
    },
  );
  const extents: Extent[] = [];
  for (const piece of scan.pieces) {
    const { offset, size } = piece;
    const own = [...planned, proof].filter(
      (part) => part.offset < offset + size && part.offset + part.bytes.length > offset,
    );
    extents.push(
      own.length > 0
        ? await patchPiece(iso, piece, own)
        : { ...piece, source: { kind: 'base' } as const },
    );
  }
  return { size: scan.size, extents };
}

async function patchPiece(
  iso: IsoImage,
  piece: BaseScan['pieces'][number],
  patches: readonly BasePatch[],
): Promise<Extent> {
  const bytes = await iso.readBytes(piece.offset, piece.size);
  const found = digestOf(bytes);
  if (found !== piece.digest) {
    throw new IntegrityError(
      'iso.base-changed',
      `base ISO ${iso.path} has changed since it was scanned`,
      {
        expected: piece.digest,
        found,
        hint: 'run the same command again when nothing writes to the file',
      },
    );
  }
  const patched = Buffer.from(bytes);
  applyParts(patched, piece.offset, patches);
  return {
    offset: piece.offset,
    size: piece.size,
    paths: piece.paths,
    digest: digestOf(patched),
    source: { kind: 'bytes', bytes: patched },
  };
}
