import { formatReadableJson } from '../../base/text/json.ts';
import { hexOf } from '../../base/digest.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { RegistryFile } from '../../registry/layout/distribution.ts';
import { formatReference } from '../../registry/reference.ts';
import type { MirrorPlan } from '../../openshift/mirror/plan.ts';
import { digestOfRelease, type Release } from '../../openshift/release/release.ts';
import type { UpgradePath } from '../../openshift/release/upgrade-path.ts';

const LABEL_PREFIX = 'upgrade_';
/** ECMA-119 8.4.6. */
const MAX_LABEL = 32;
/** Hex digits of the release's digest in a label that has no room for the whole version. */
const HASH_SIZE = 8;

/**
 * The volume label by which hosts know an upgrade ISO, `upgrade_<version>`. A version that does not
 * fit, as that of a nightly build, is cut at its first hyphen and followed by a part of the digest.
 */
export function formatUpgradeLabel(release: Pick<Release, 'version' | 'reference'>): string {
  const label = `${LABEL_PREFIX}${release.version}`;
  if (Buffer.byteLength(label) <= MAX_LABEL) return label;
  const hash = hexOf(digestOfRelease(release)).slice(0, HASH_SIZE);
  const [core = ''] = release.version.split(/[-+]/);
  return `${`${LABEL_PREFIX}${core}`.slice(0, MAX_LABEL - HASH_SIZE - 1)}_${hash}`;
}

export const isUpgradeLabel = (label: string): boolean => label.startsWith(LABEL_PREFIX);

/**
 * The small root of an upgrade ISO: `release.env`, which upgrade scripts of any maker read, and
 * `release.json`, which says what the ISO is for.
 */
export function renderUpgradeRoot(medium: {
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
