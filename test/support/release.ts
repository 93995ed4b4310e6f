import { makeDefinitions } from '../../demo/definitions.ts';
import { digestOf, type Digest } from '../../src/base/digest.ts';
import { isAtLeast, isSignedVersion } from '../../src/openshift/release/version.ts';
import { MEDIA_TYPE } from '../../src/registry/manifest.ts';
import {
  compress,
  descriptorOf,
  packTar,
  storeManifest,
  type LayerEntry,
  type TestImage,
} from './images.ts';
import type { ImageRegistry } from './image-registry.ts';

export type ReleaseOptions = {
  readonly version?: string;
  /** In Go's words. */
  readonly architecture?: string;
  /** The live ISO in `machine-os-images`; any bytes. */
  readonly iso?: Uint8Array;
  readonly installer?: Uint8Array;
  /** The installers in `installer-artifacts` by Go's name of their machines; default: no such component. */
  readonly foreignInstallers?: Readonly<Record<string, LayerEntry>>;
  /** Besides the usual ones. */
  readonly components?: readonly string[];
  /** What release-metadata says, where it is to be something else. */
  readonly metadataVersion?: string;
  readonly label?: string;
  readonly created?: string | null;
  /** Further release manifests by path, where they are not to be those of the version. */
  readonly definitions?: Readonly<Record<string, string>>;
  /** Packs a layer above that of the release manifests, as no real release has. */
  readonly extraLayer?: boolean;
  /** Default: as its version tells. Nightlies and CI builds are not signed. */
  readonly isSigned?: boolean;
};

export type TestRelease = {
  readonly image: TestImage;
  readonly digest: Digest;
  /** `host/ocp/release@sha256:...` */
  readonly pullspec: string;
  readonly components: Readonly<Record<string, Digest>>;
};

type Files = readonly (readonly [name: string, entry: LayerEntry])[];

const RELEASE = 'ocp/release';
const COMPONENTS = 'ocp/art-dev';

/** An installer that has room to be told its release, between two lines of a script. */
export const TEST_INSTALLER = Buffer.from(
  [
    '#!/bin/sh\nexit 0\n',
    `\0_RELEASE_IMAGE_LOCATION_\0${'X'.repeat(200)}\0`,
    `\0_RELEASE_VERSION_LOCATION_\0${'X'.repeat(60)}\0`,
    `\0_RELEASE_ARCHITECTURE_LOCATION_\0${'X'.repeat(20)}\0`,
    '!_RELEASE_IMAGE_LOCATION_\0XXXX\0\n',
  ].join(''),
  'latin1',
);

/** `docker-registry`: before 4.21 only a server that needs the cluster's API. */
const listRegistryFiles = (version: string): Files => [
  ['config.yml', 'version: 0.1\n'],
  ['usr/bin/dockerregistry', `a registry server inside a cluster, ${version}\n`],
  ...(isAtLeast(version, '4.21.0')
    ? ([
        ['etc/registry/config.yaml', 'version: 0.1\n'],
        ['usr/bin/distribution', `a registry server, ${version}\n`],
        ['usr/bin/openssl', 'openssl\n'],
      ] as const)
    : []),
];

const REGISTRY_CONFIG = {
  Cmd: ['/bin/sh', '-c', '/usr/bin/dockerregistry /config.yml'],
  Labels: { 'name': 'openshift/ose-docker-registry', 'io.openshift.release.operator': 'false' },
};

/**
 * A small release of the real shape of its version: a release image with its manifests in the last layer, and
 * components that share a base layer, one of them with the live ISO, one with the installer.
 */
export async function addRelease(
  registry: ImageRegistry,
  options: ReleaseOptions = {},
): Promise<TestRelease> {
  const { version = '4.21.3', architecture = 'amd64' } = options;
  const base: Files = [['etc/os-release', 'NAME=test\n']];
  const rpm = { amd64: 'x86_64', arm64: 'aarch64' }[architecture] ?? architecture;
  const isoName = isAtLeast(version, '5.0.0') ? 'coreos10' : 'coreos';
  const iso = options.iso ?? Buffer.from('a live ISO\n');
  const installer = options.installer ?? TEST_INSTALLER;
  const contents: Record<string, Files> = {
    'baremetal-installer': [['usr/bin/openshift-install', Buffer.concat([installer, iso])]],
    'cluster-version-operator': [],
    'docker-registry': listRegistryFiles(version),
    'etcd': [['usr/bin/etcd', 'etcd\n']],
    'installer': [['usr/bin/openshift-install', installer]],
    ...(options.foreignInstallers && {
      'installer-artifacts': Object.entries(options.foreignInstallers).map(
        ([machine, bytes]) =>
          [`usr/share/openshift/linux_${machine}/openshift-install`, bytes] as const,
      ),
    }),
    'machine-os-images': [[`coreos/${isoName}-${rpm}.iso`, iso]],
    ...Object.fromEntries(
      (options.components ?? []).map((name) => [name, [[`usr/bin/${name}`, name]] as Files]),
    ),
  };
  const components: Record<string, Digest> = {};
  for (const [name, files] of Object.entries(contents).sort()) {
    const image = await buildLayeredImage(files.length > 0 ? [base, files] : [base], {
      architecture,
      ...(name === 'docker-registry' && { config: REGISTRY_CONFIG }),
    });
    registry.add(COMPONENTS, image);
    components[name] = topDigest(image);
  }
  const image = await buildReleaseImage(registry, {
    base,
    version,
    architecture,
    components,
    options,
  });
  registry.add(RELEASE, image, `${version}-${rpm}`);
  const digest = topDigest(image);
  if (options.isSigned ?? isSignedVersion(version)) {
    registry.signer.sign(digest, `quay.io/${RELEASE}:${version}-${rpm}`);
  }
  return { image, digest, components, pullspec: `${registry.host}/${RELEASE}@${digest}` };
}

/** An image of these layers, bottom to top. */
export async function buildLayeredImage(
  layers: readonly Files[],
  config: Readonly<Record<string, unknown>> = {},
): Promise<TestImage> {
  const tars = await Promise.all(layers.map((files) => packTar(files)));
  const packed = tars.map((tar) => compress(tar, 'gzip'));
  const configBytes = Buffer.from(
    JSON.stringify({
      architecture: 'amd64',
      os: 'linux',
      config: {},
      ...config,
      rootfs: { type: 'layers', diff_ids: tars.map((tar) => digestOf(tar)) },
    }),
  );
  const manifest = storeManifest({
    schemaVersion: 2,
    mediaType: MEDIA_TYPE.dockerManifest,
    config: descriptorOf(configBytes, 'application/vnd.docker.container.image.v1+json'),
    layers: packed.map((bytes) =>
      descriptorOf(bytes, 'application/vnd.docker.image.rootfs.diff.tar.gzip'),
    ),
  });
  return {
    manifests: [manifest],
    blobs: new Map([configBytes, ...packed].map((bytes) => [digestOf(bytes), bytes])),
  };
}

function buildReleaseImage(
  registry: ImageRegistry,
  release: {
    readonly base: Files;
    readonly version: string;
    readonly architecture: string;
    readonly components: Readonly<Record<string, Digest>>;
    readonly options: ReleaseOptions;
  },
): Promise<TestImage> {
  const { base, version, architecture, components, options } = release;
  const created = options.created === undefined ? '2025-10-01T12:00:00Z' : options.created;
  const references = {
    kind: 'ImageStream',
    apiVersion: 'image.openshift.io/v1',
    metadata: { name: version, ...(created !== null && { creationTimestamp: created }) },
    spec: {
      tags: Object.entries(components).map(([name, digest]) => ({
        name,
        from: { kind: 'DockerImage', name: `${registry.host}/${COMPONENTS}@${digest}` },
      })),
    },
  };
  const metadata = {
    kind: 'cincinnati-metadata-v0',
    version: options.metadataVersion ?? version,
    previous: ['4.21.2'],
    metadata: { url: 'https://access.redhat.com/errata/RHSA-2025:0000' },
  };
  const manifests: Files = [
    ['release-manifests/image-references', JSON.stringify(references)],
    ['release-manifests/release-metadata', JSON.stringify(metadata)],
    ...Object.entries(options.definitions ?? makeDefinitions(version)),
  ];
  const above: readonly Files[] = options.extraLayer === true ? [[['etc/motd', 'hello\n']]] : [];
  return buildLayeredImage([base, manifests, ...above], {
    architecture,
    config: { Labels: { 'io.openshift.release': options.label ?? version } },
  });
}

function topDigest({ manifests: [top] }: TestImage): Digest {
  if (top === undefined) throw new Error('an image has a manifest');
  return top.descriptor.digest;
}
