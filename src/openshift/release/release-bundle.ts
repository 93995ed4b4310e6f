import { crc32 } from 'node:zlib';
import { formatCanonicalJson } from '../../base/canonical-json.ts';
import { digestOf, type Digest } from '../../base/digest.ts';
import type { Descriptor } from '../../registry/descriptor.ts';
import { MEDIA_TYPE } from '../../registry/manifest.ts';
import { isSignedVersion } from './version.ts';

/** The architectures that appliances are built for, as RPM names them. */
export type RpmArchitecture = 'x86_64' | 'aarch64' | 'ppc64le';

/** Where release bundles stand in the node's registry. */
const RELEASE_BUNDLE_REPOSITORY = 'openshift/release-bundles';

const MAX_TAG_SIZE = 64;

/**
 * The tag of the release bundle and, letter for letter, the name of the release in the
 * InternalReleaseImage: the machine config operator compares the two. Releases carry their
 * architecture, CI and nightly builds do not.
 */
export function formatReleaseBundleTag(version: string, architecture: RpmArchitecture): string {
  const suffix = isSignedVersion(version) ? `-${architecture}` : '';
  return `ocp-release-bundle-${version}${suffix}`.slice(0, MAX_TAG_SIZE);
}

type BundleBlob = { readonly descriptor: Descriptor; readonly bytes: Uint8Array };

export type ReleaseBundle = {
  readonly repository: string;
  readonly tag: string;
  readonly manifest: BundleBlob;
  readonly config: BundleBlob;
  readonly layer: BundleBlob;
};

const OCI_ARCHITECTURE = { x86_64: 'amd64', aarch64: 'arm64', ppc64le: 'ppc64le' } as const;

/**
 * An image without files whose only message is its tag. It has one empty layer, because some clients
 * refuse images without any; annotations say which release it stands for.
 */
export function encodeReleaseBundle(release: {
  readonly version: string;
  readonly arch: RpmArchitecture;
  readonly digestReference: string;
}): ReleaseBundle {
  const emptyTar = new Uint8Array(1024);
  const layer = toBlob(`${MEDIA_TYPE.ociLayer}+gzip`, encodeStoredGzip(emptyTar));
  const config = toBlob(
    MEDIA_TYPE.ociConfig,
    formatCanonicalJson({
      architecture: OCI_ARCHITECTURE[release.arch],
      os: 'linux',
      config: {},
      rootfs: { type: 'layers', diff_ids: [digestOf(emptyTar)] },
    }),
  );
  const manifest = toBlob(
    MEDIA_TYPE.ociManifest,
    formatCanonicalJson({
      schemaVersion: 2,
      mediaType: MEDIA_TYPE.ociManifest,
      config: toMember(config),
      layers: [toMember(layer)],
      annotations: {
        'org.opencontainers.image.version': release.version,
        'org.opencontainers.image.base.name': release.digestReference,
      },
    }),
  );
  const tag = formatReleaseBundleTag(release.version, release.arch);
  return { repository: RELEASE_BUNDLE_REPOSITORY, tag, manifest, config, layer };
}

function toBlob(mediaType: string, content: string | Uint8Array): BundleBlob {
  const bytes = Buffer.from(content);
  return { descriptor: { mediaType, digest: digestOf(bytes), size: bytes.length }, bytes };
}

const toMember = ({
  descriptor,
}: BundleBlob): { mediaType: string; digest: Digest; size: number } => ({
  mediaType: descriptor.mediaType,
  digest: descriptor.digest,
  size: descriptor.size,
});

/** RFC 1952 around one stored block of RFC 1951: the same bytes whatever zlib this node has. */
function encodeStoredGzip(bytes: Uint8Array): Uint8Array {
  const header = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
  const block = Buffer.alloc(5);
  block[0] = 1;
  block.writeUInt16LE(bytes.length, 1);
  block.writeUInt16LE(bytes.length ^ 0xffff, 3);
  const trailer = Buffer.alloc(8);
  trailer.writeUInt32LE(crc32(bytes), 0);
  trailer.writeUInt32LE(bytes.length, 4);
  return Buffer.concat([header, block, bytes, trailer]);
}
