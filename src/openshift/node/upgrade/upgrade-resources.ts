import type { Digest } from '../../../base/digest.ts';
import type { PlannedMirror } from '../../mirror/plan-mirrors.ts';
import { renderCatalogResources, type ServedCatalog } from '../catalog-sources.ts';
import { renderMirrorSets, renderRegistryMirror } from '../mirror-sets.ts';
import { NODE_REGISTRY_PORT, nodeRegistryDomain, UPGRADE_REGISTRY_PORT } from '../node-registry.ts';
import { renderSignatureConfigMap } from '../signature-config-map.ts';

export type UpgradeResourcesInput = {
  /** Of the release that the cluster ends at; names the objects, so that earlier ones stay. */
  readonly version: string;
  /** All releases on the ISO, intermediate ones included; without signatures where there are none. */
  readonly releases: readonly {
    readonly version: string;
    readonly digest: Digest;
    readonly signatures: readonly Uint8Array[];
  }[];
  readonly mirrors: readonly PlannedMirror[];
  readonly catalogs: readonly ServedCatalog[];
  readonly useDefaultSourceNames: boolean;
};

/**
 * `upgrade-VERSION.yaml`: what a cluster must have before it is upgraded from an upgrade ISO, for
 * `oc apply`. First the signatures of the releases, then the mirrors and catalogs of what the ISO
 * carries. Each mirror names the hosts' own registry and that of the attached ISO, because the copy on
 * the host may come later; so does the mirror of the hosts' own registry, which catalogs are read from.
 *
 * @throws ConfigError `catalog.bad-name`, `catalog.same-name`
 */
export function renderUpgradeResources(input: UpgradeResourcesInput): string {
  const { version, mirrors, catalogs, useDefaultSourceNames } = input;
  const domain = nodeRegistryDomain(false);
  const own = `${domain}:${NODE_REGISTRY_PORT}`;
  const attached = `${domain}:${UPGRADE_REGISTRY_PORT}`;
  const suffix = nameOf(version);
  const manifests = [
    ...input.releases
      .filter(({ signatures }) => signatures.length > 0)
      .map((release) =>
        renderSignatureConfigMap({
          ...release,
          name: `release-signatures-${nameOf(release.version)}`,
        }),
      ),
    ...renderMirrorSets(mirrors, [own, attached], suffix),
    ...(catalogs.length === 0
      ? []
      : [renderRegistryMirror(`idms-catalog-${suffix}`, { source: own, mirror: attached })]),
    ...renderCatalogResources({ catalogs, registry: own, useDefaultSourceNames, pinned: true }),
  ];
  return manifests.map(({ text }) => text).join('---\n');
}

/** RFC 1123 subdomain: no build metadata (`+`), and a letter or digit at both ends of each part. */
const nameOf = (version: string): string =>
  version
    .toLowerCase()
    .replaceAll(/[^a-z0-9.-]/g, '-')
    .slice(0, 200)
    .split('.')
    .map((part) => part.replaceAll(/^-+|-+$/g, ''))
    .filter((part) => part !== '')
    .join('.');
