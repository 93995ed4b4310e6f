import { digestOf, hexOf, type Digest } from '../../base/digest.ts';
import type { RegistryFile } from '../../registry/layout/distribution-layout.ts';
import { parseManifest, type StoredManifest } from '../../registry/manifest.ts';
import { encodeReleaseBundle, type ReleaseBundle } from '../../openshift/release/release-bundle.ts';
import type { Release } from '../../openshift/release/release-payload.ts';
import { formatBundleFile } from '../index/bundle-file.ts';
import { REGISTRY_ROOT } from '../index/media-paths.ts';
import { planMediaRegistry, type MediaRegistry } from './media-registry.ts';

/** What the registry of a live ISO is made of. */
export type LiveRegistry = Pick<MediaRegistry, 'plan' | 'readManifest'> & {
  readonly release: Release;
};

/** The registry of a live ISO, with the release bundle, which is made here. */
export async function planLiveRegistry(registry: LiveRegistry): Promise<RegistryFile[]> {
  const { plan, release, readManifest } = registry;
  const { version, arch, reference: image } = release;
  const list = formatBundleFile({ release, plan });
  const bundle = await encodeReleaseBundle({ version, arch, image }, list);
  const made = {
    repository: bundle.repository,
    tags: [bundle.tag],
    manifests: [toStored(bundle)],
  };
  const rendered = new Map(
    [bundle.config, bundle.layer].map(({ descriptor, bytes }) => [descriptor.digest, bytes]),
  );
  const files = await planMediaRegistry({ plan, readManifest, made: [made] });
  return files.map((file) => toRendered(file, rendered));
}

const toStored = ({ manifest: { descriptor, bytes } }: ReleaseBundle): StoredManifest => ({
  descriptor,
  bytes,
  manifest: parseManifest(bytes, descriptor.mediaType),
});

function toRendered(
  { path, content }: RegistryFile,
  rendered: ReadonlyMap<Digest, Uint8Array>,
): RegistryFile {
  const bytes = content.kind === 'blob' ? rendered.get(content.digest) : undefined;
  return { path, content: bytes ? { kind: 'bytes', bytes } : content };
}

/**
 * One digest for all names and bytes of a registry's tree: SHA-256 of what sha256sum(1) prints for
 * every file by its path below {@link REGISTRY_ROOT}, sorted by line.
 */
export function digestRegistryTree(files: readonly RegistryFile[]): Digest {
  const lines = files.map(({ path, content }) => {
    const digest = content.kind === 'blob' ? content.digest : digestOf(content.bytes);
    return `${hexOf(digest)}  ${path.slice(REGISTRY_ROOT.length + 1)}\n`;
  });
  return digestOf(lines.sort().join(''));
}
