import { digestOf } from '../../base/digest.ts';
import { type FileInput, type FileDigests, readUnchanged } from '../../base/disk/file-digests.ts';
import { IntegrityError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { BlobCache } from '../../base/store/store.ts';
import type { Sealed, Stage } from '../../engine/index.ts';
import { decodeInitrd, encodeInitrd } from '../../ignition/index.ts';
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
  openIso,
  type Places,
  planEmbed,
  requireArchitecture,
} from '../../iso/index.ts';
import { describeMedium } from '../../media/describe.ts';
import { type MediaIndex, INDEX_PATH } from '../../media/media-index.ts';
import { planMediaRegistry, type MediaRegistry } from '../../media/tree.ts';
import type { RpmArchitecture } from '../../openshift/release/bundle.ts';
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
  readonly embedded?: EmbeddedParts;
};

/** Images that the medium serves by itself. */
export type EmbeddedParts = Pick<MediaRegistry, 'plan'> & {
  /** Describes what the medium installs, for its index. */
  readonly release: MediaIndex['release'];
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
 *
 * @throws IntegrityError `base-iso.fixed-embed-area`, `iso.no-embed-area`, `iso.base-changed`;
 * ConfigError `base-iso.architecture`
 */
export const layOutInstallationIso: Stage<
  InstallationIsoParts,
  InstallationLayout,
  { readonly cache: BlobCache; readonly digests: FileDigests }
> = {
  name: 'lay out ISO',
  run: (parts, { cache, digests }) =>
    readUnchanged(parts.base, digests, () => layOut(parts, cache)),
};

async function layOut(parts: InstallationIsoParts, cache: BlobCache): Promise<InstallationLayout> {
  const { base, scan, ignition, embedded } = parts;
  const archive = encodeInitrd([
    { name: 'config.ign', mode: 0o100644, data: Buffer.from(ignition.reveal()) },
  ]);
  const iso = await openIso(base.path);
  try {
    await requireArchitecture(iso, parts.architecture, OTHER_BASE);
    const area = await findEmbedArea(iso);
    const plan = await planEmbed(iso, area, { archive });
    const replaced = await listEmbedded(iso, area);
    const [patch] = plan.patches;
    const layout =
      patch && !embedded
        ? await layOutPatched(iso, scan, patch)
        : await layOutGrown(iso, plan, { ...parts, cache });
    const { grownTo } = plan;
    const use = { used: archive.length, size: area.size, replaced };
    return { layout, embedArea: { ...use, ...withoutUndefined({ grownTo }) } };
  } finally {
    await iso.close();
  }
}

const OTHER_BASE = 'give another live ISO, or set architecture in the configuration';

/**
 * Lists the files in the area. A wrong description of the area would cause other bytes to be
 * overwritten.
 */
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

async function layOutGrown(
  iso: IsoImage,
  plan: EmbedPlan,
  { scan, epoch, embedded, places, cache }: InstallationIsoParts & { readonly cache: BlobCache },
): Promise<Layout> {
  return layOutIso({
    base: await decodeBaseScan(iso.path, scan),
    files: [...plan.files, ...(embedded ? await planMediaRegistry({ ...embedded, cache }) : [])],
    remove: [MINIMAL_RECIPE],
    patches: plan.patches,
    epoch: epoch ?? Math.floor((iso.volume.createdAt?.getTime() ?? 0) / 1000),
    ...withoutUndefined({ places }),
    ...(embedded && {
      index: {
        path: INDEX_PATH,
        render: (extents, areas) =>
          describeMedium({ product: 'installation-iso', base: scan, ...embedded, extents, areas }),
      },
    }),
  });
}

/**
 * The recipe of the minimal ISO. It describes the base image byte by byte, which is not true of a
 * grown one.
 */
const MINIMAL_RECIPE = '/coreos/miniso.dat';

/**
 * Lays out a patched base: every extent is from the base, except the extents that the patch
 * touches.
 */
async function layOutPatched(iso: IsoImage, scan: BaseScan, patch: BasePatch): Promise<Layout> {
  const extents: Extent[] = [];
  for (const piece of scan.pieces) {
    const { offset, size } = piece;
    const isTouched = patch.offset < offset + size && patch.offset + patch.bytes.length > offset;
    extents.push(
      isTouched
        ? await patchPiece(iso, piece, patch)
        : { ...piece, source: { kind: 'base' } as const },
    );
  }
  return { size: scan.size, extents };
}

async function patchPiece(
  iso: IsoImage,
  piece: BaseScan['pieces'][number],
  patch: BasePatch,
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
  const from = Math.max(piece.offset, patch.offset);
  const patched = Buffer.from(bytes);
  patched.set(
    patch.bytes.subarray(from - patch.offset, piece.offset + piece.size - patch.offset),
    from - piece.offset,
  );
  return {
    offset: piece.offset,
    size: piece.size,
    paths: piece.paths,
    digest: digestOf(patched),
    source: { kind: 'bytes', bytes: patched },
  };
}
