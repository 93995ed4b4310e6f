import { digestOf, type Digest } from '../../base/digest.ts';
import { ConfigError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { formatCanonicalJson } from '../../base/text/json.ts';
import {
  type Descriptor,
  formatReference,
  MEDIA_TYPE,
  packFiles,
  type Platform,
  type Reference,
} from '../../registry/index.ts';
import { isSignedVersion } from './version.ts';

/** The architectures that appliances are built for, in RPM's names. */
export type RpmArchitecture = 'x86_64' | 'aarch64' | 'ppc64le';

const RPM_NAMES: Readonly<Record<string, string>> = { amd64: 'x86_64', arm64: 'aarch64' };

/** The name that RPM has for an architecture, of which manifests may have Go's name. */
export const toRpmName = (architecture: string): string => RPM_NAMES[architecture] ?? architecture;

/** Repository of release bundles in the node's registry. */
export const RELEASE_BUNDLE_REPOSITORY = 'openshift/release-bundles';

/**
 * The digest of a bundle's release, by which the machine config daemon will find it (openshift/appliance pull
 * request 685).
 */
export const RELEASE_DIGEST_ANNOTATION = 'com.openshift.release-image-digest';

/** The list of images in the layer of a bundle (openshift/enhancements pull request 1821). */
const LIST_PATH = 'bundle.json';

const MAX_TAG_SIZE = 64;

/**
 * Also, letter for letter, the name of the release in the InternalReleaseImage: the machine config operator
 * compares the two. Releases carry their architecture, CI and nightly builds do not.
 */
export function formatReleaseBundleTag(version: string, architecture: RpmArchitecture): string {
  const suffix = isSignedVersion(version) ? `-${architecture}` : '';
  // A tag cannot contain build metadata, and neither can the name in the InternalReleaseImage.
  return `ocp-release-bundle-${version.replaceAll('+', '_')}${suffix}`.slice(0, MAX_TAG_SIZE);
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

/** An image of one file: the list of the images next to it. Plain tar, so that no compressor matters. */
export async function encodeReleaseBundle(
  release: { readonly version: string; readonly arch: RpmArchitecture; readonly image: Reference },
  list: Uint8Array,
): Promise<ReleaseBundle> {
  const { version, arch, image } = release;
  const tar = await packFiles(new Map(), new Map([[LIST_PATH, [Buffer.from(list)]]]));
  const layer = toBlob(MEDIA_TYPE.ociLayer, tar);
  const config = toBlob(
    MEDIA_TYPE.ociConfig,
    formatCanonicalJson({
      architecture: OCI_ARCHITECTURE[arch],
      os: 'linux',
      config: {},
      rootfs: { type: 'layers', diff_ids: [layer.descriptor.digest] },
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
        'org.opencontainers.image.version': version,
        'org.opencontainers.image.base.name': formatReference(image),
        ...withoutUndefined({ [RELEASE_DIGEST_ANNOTATION]: image.digest }),
      },
    }),
  );
  const tag = formatReleaseBundleTag(version, arch);
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

const GO_NAMES = { x86_64: 'amd64', aarch64: 'arm64', ppc64le: 'ppc64le' } as const;

type GoArchitecture = (typeof GO_NAMES)[RpmArchitecture];

/** RPM's in configurations and file names, Go's in update graphs and image platforms. */
export const archNames = {
  toGo: (arch: RpmArchitecture): GoArchitecture => GO_NAMES[arch],

  toRpm(name: string): RpmArchitecture {
    for (const [rpm, go] of Object.entries(GO_NAMES)) {
      if (go === name) return rpm as RpmArchitecture;
    }
    const known = Object.values(GO_NAMES).join(', ');
    throw new ConfigError('release.arch-unknown', `architecture "${name}" is not one of ${known}`, {
      expected: known,
      found: name,
      hint: 'name a release for one of these',
    });
  },
} as const;

/** The platform of an image that runs on nodes of this architecture. */
export const platformOf = (arch: RpmArchitecture): Platform => ({
  os: 'linux',
  architecture: archNames.toGo(arch),
});
