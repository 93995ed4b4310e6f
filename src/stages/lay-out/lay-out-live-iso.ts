import type { FileInput } from '../../base/disk/file-input.ts';
import { withoutUndefined } from '../../base/members.ts';
import type { Stage } from '../../engine/stage.ts';
import { encodeInitrd } from '../../ignition/initrd.ts';
import { readCoreosLive } from '../../iso/coreos/coreos.ts';
import { requireArchitecture } from '../../iso/coreos/kernel-architecture.ts';
import type { Layout, TreeFile } from '../../iso/extent.ts';
import { layOutIso } from '../../iso/lay-out.ts';
import type { Places } from '../../iso/places/places.ts';
import { planLiveGraft } from '../../iso/live-graft.ts';
import { openIso } from '../../iso/open-iso.ts';
import { decodeBaseScan, type BaseScan } from '../../iso/live-base/scan-base.ts';
import { BOOTSTRAP_IGNITION_PATH } from '../../openshift/node/bootstrap-ignition.ts';
import { describeMedium } from '../../media/index/describe-medium.ts';
import type { IndexCatalog } from '../../media/index/index-catalogs.ts';
import { formatBundleFile } from '../../media/index/bundle-file.ts';
import { planLiveRegistry } from '../../media/tree/media-registry.ts';
import { BOOTSTRAP_IMAGE_PATH, BUNDLE_PATH, INDEX_PATH } from '../../media/index/media-paths.ts';
import type { MirrorPlan } from '../../openshift/mirror/mirror-plan.ts';
import { type Release, describeRelease } from '../../openshift/release/release-payload.ts';
import type { FileDigests } from '../../openshift/files/file-digests.ts';
import { readUnchanged } from '../../openshift/files/unchanged-file.ts';
import type { BlobCache } from '../../registry/cache/blob-cache.ts';

const OTHER_BASE = 'give a live ISO of the architecture of the release, or none';

/** The recipe of the minimal ISO describes the base image byte by byte: untrue of ours. */
const MINIMAL_RECIPE = '/coreos/miniso.dat';

export type LiveIsoParts = {
  readonly base: FileInput;
  readonly scan: BaseScan;
  readonly release: Release;
  readonly plan: MirrorPlan;
  /** What its index says that the catalogs offer. */
  readonly catalogs: readonly IndexCatalog[];
  /** Ignition configs, as JSON text. */
  readonly bootstrap: string;
  readonly unconfigured: string;
  readonly appendKargs: readonly string[];
  /** Of the ISO that this one replaces. */
  readonly places?: Places;
  /** Seconds since 1970, for everything new on the medium; default: the release's creation. */
  readonly epoch?: number;
};

type LayoutTools = { readonly cache: BlobCache; readonly digests: FileDigests };

/**
 * The whole live ISO, before a byte of it is written: the base, the registry, both configurations and
 * the index. Fetches nothing.
 *
 * @throws ConfigError `base-iso.architecture`; and what {@link planLiveGraft} and {@link layOutIso} throw
 */
export const layOutLiveIso: Stage<LiveIsoParts, Layout, LayoutTools> = {
  name: 'lay out ISO',
  run: (parts, { cache, digests }) =>
    readUnchanged(parts.base, digests, () => layOut(parts, cache)),
};

async function layOut(parts: LiveIsoParts, cache: BlobCache): Promise<Layout> {
  const { plan, release, epoch = Math.floor(Date.parse(release.created) / 1000) } = parts;
  const base = await decodeBaseScan(parts.base.path, parts.scan);
  const iso = await openIso(base.path);
  try {
    await requireArchitecture(iso, release.arch, OTHER_BASE);
    const live = await readCoreosLive(iso);
    const graft = await planLiveGraft(iso, live, {
      initrd: { path: BOOTSTRAP_IMAGE_PATH, bytes: encodeBootstrap(parts.bootstrap) },
      embed: encodeUnconfigured(parts.unconfigured),
      appendKargs: parts.appendKargs,
    });
    return layOutIso({
      base,
      files: [
        ...graft.files,
        describeImages(parts),
        ...(await planLiveRegistry({ plan, release, cache })),
      ],
      remove: [MINIMAL_RECIPE],
      patches: graft.patches,
      epoch,
      ...withoutUndefined({ places: parts.places }),
      index: {
        path: INDEX_PATH,
        render: (extents, areas) =>
          describeMedium({
            product: 'live-iso',
            base,
            plan,
            extents,
            areas,
            releases: [release],
            catalogs: parts.catalogs,
            release: describeRelease(release),
          }),
      },
    });
  } finally {
    await iso.close();
  }
}

const encodeBootstrap = (text: string): Uint8Array =>
  encodeInitrd([{ name: BOOTSTRAP_IGNITION_PATH, mode: 0o100644, data: Buffer.from(text) }]);

const encodeUnconfigured = (text: string): Uint8Array =>
  encodeInitrd([{ name: 'config.ign', mode: 0o100600, data: Buffer.from(text) }]);

const describeImages = (parts: LiveIsoParts): TreeFile => ({
  path: BUNDLE_PATH,
  content: { kind: 'bytes', bytes: formatBundleFile(parts) },
});
