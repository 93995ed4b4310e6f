import { withoutUndefined } from '../../base/lists.ts';
import type { Stage } from '../../engine/stage.ts';
import { createEmptyImage } from '../../iso/lay-out/empty-image.ts';
import type { Layout } from '../../iso/extent.ts';
import { layOutIso } from '../../iso/lay-out/lay-out.ts';
import type { Places } from '../../iso/extent.ts';
import { describeMedium } from '../../media/describe.ts';
import type { IndexCatalog } from '../../media/media-index.ts';
import { INDEX_PATH, UPGRADE_REGISTRY_ROOT } from '../../media/media-index.ts';
import { planMediaRegistry } from '../../media/tree.ts';
import { formatUpgradeLabel, renderUpgradeRoot } from '../../media/tree/upgrade-medium.ts';
import type { MirrorPlan } from '../../openshift/mirror/plan.ts';
import { type Release, describeRelease } from '../../openshift/release/release.ts';
import type { UpgradePath } from '../../openshift/release/upgrade-path.ts';
import type { BlobCache } from '../../base/store/store.ts';

export type UpgradeIsoParts = {
  readonly release: Release;
  /** Those that are passed on the way. */
  readonly passed?: readonly Release[];
  readonly path: UpgradePath;
  readonly plan: MirrorPlan;
  /** What its index says that the catalogs offer. */
  readonly catalogs: readonly IndexCatalog[];
  /** Of the ISO that this one replaces. */
  readonly places?: Places;
  /** Seconds since 1970, for everything on the medium; default: the release's creation. */
  readonly epoch?: number;
};

/**
 * The whole upgrade ISO, before a byte of it is written: a small root, the registry and the index. It
 * does not boot. Fetches nothing.
 */
export const layOutUpgradeIso: Stage<UpgradeIsoParts, Layout, { readonly cache: BlobCache }> = {
  name: 'lay out ISO',
  async run(parts, { cache }) {
    const { release, plan, epoch = Math.floor(Date.parse(release.created) / 1000) } = parts;
    const registry = await planMediaRegistry({
      plan,
      root: UPGRADE_REGISTRY_ROOT,
      cache,
    });
    const volumeId = formatUpgradeLabel(release);
    return layOutIso({
      base: createEmptyImage({ volumeId, directories: [], epoch }),
      files: [...renderUpgradeRoot(parts), ...registry],
      remove: [],
      patches: [],
      epoch,
      ...withoutUndefined({ places: parts.places }),
      index: {
        path: INDEX_PATH,
        render: (extents, areas) =>
          describeMedium({
            product: 'upgrade-iso',
            plan,
            extents,
            areas,
            releases: [...(parts.passed ?? []), release],
            catalogs: parts.catalogs,
            release: describeRelease(release),
          }),
      },
    });
  },
};
