import { hexOf } from '../../base/digest.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { BlobCache } from '../../base/store/blob-cache.ts';
import { formatReadableJson } from '../../base/text/json.ts';
import type { Stage } from '../../engine/index.ts';
import { createEmptyImage, type Layout, layOutIso, type Places } from '../../iso/index.ts';
import { describeMedium } from '../../media/describe.ts';
import { describeCatalogs } from '../../media/index-catalogs.ts';
import { INDEX_PATH, UPGRADE_REGISTRY_ROOT } from '../../media/media-index.ts';
import { planMediaRegistry } from '../../media/tree.ts';
import type { SelectedCatalog } from '../../openshift/catalog/selected.ts';
import type { MirrorPlan } from '../../openshift/mirror/plan.ts';
import { UPGRADE_LABEL_PREFIX } from '../../openshift/node/upgrade.ts';
import { digestOfRelease, type Release, describeRelease } from '../../openshift/release/release.ts';
import type { UpgradePath } from '../../openshift/release/upgrade-path.ts';
import { formatReference, type RegistryFile } from '../../registry/index.ts';

export type UpgradeIsoParts = {
  readonly release: Release;
  readonly passed?: readonly Release[];
  readonly path: UpgradePath;
  readonly plan: MirrorPlan;
  readonly catalogs: readonly SelectedCatalog[];
  /** Places of the ISO that this one replaces. */
  readonly places?: Places;
  /** Seconds since 1970, for everything on the medium; default: the release's creation. */
  readonly epoch?: number;
};

/** Lays out a small root, the registry and the index. The ISO does not boot. Fetches nothing. */
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
            catalogs: describeCatalogs(parts.catalogs),
            release: describeRelease(release),
          }),
      },
    });
  },
};

/**
 * The volume label by which hosts recognize an upgrade ISO, `upgrade_<version>`. A version that does not fit,
 * such as the version of a nightly build, is cut at its first hyphen and followed by a part of the digest.
 */
export function formatUpgradeLabel(release: Pick<Release, 'version' | 'reference'>): string {
  const label = `${UPGRADE_LABEL_PREFIX}${release.version}`;
  if (Buffer.byteLength(label) <= MAX_LABEL) return label;
  const hash = hexOf(digestOfRelease(release)).slice(0, HASH_SIZE);
  const [core = ''] = release.version.split(/[-+]/);
  return `${`${UPGRADE_LABEL_PREFIX}${core}`.slice(0, MAX_LABEL - HASH_SIZE - 1)}_${hash}`;
}

export const isUpgradeLabel = (label: string): boolean => label.startsWith(UPGRADE_LABEL_PREFIX);

/** Characters; ECMA-119 8.4.6. */
const MAX_LABEL = 32;
/** Hex digits of the release's digest in a label that has no room for the whole version. */
const HASH_SIZE = 8;

/** `release.env`, which upgrade scripts of any maker read, and `release.json` with the purpose of the ISO. */
function renderUpgradeRoot(medium: {
  readonly release: Release;
  readonly path: UpgradePath;
  readonly plan: MirrorPlan;
}): readonly (RegistryFile & { readonly mode?: number })[] {
  const { release, path, plan } = medium;
  const image = formatReference(release.reference);
  const environment = `RELEASE_IMAGE=${image}\nRELEASE_VERSION=${release.version}\n`;
  const { from } = path;
  const description = formatReadableJson({
    format: 1,
    version: release.version,
    architecture: release.arch,
    image,
    created: release.created,
    payloadSize: plan.blobSize + plan.manifestSize,
    previous: release.metadata.previous,
    ...withoutUndefined({ from }),
    path: path.hops.map(({ version, image }) => ({ version, image })),
  });
  return [
    { path: '/release.env', mode: 0o600, content: toContent(environment) },
    { path: '/release.json', content: toContent(description) },
  ];
}

const toContent = (text: string): RegistryFile['content'] => ({
  kind: 'bytes',
  bytes: Buffer.from(text),
});
