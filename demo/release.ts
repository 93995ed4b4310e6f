import { pack } from 'tar-stream';
import { gzipSync } from 'node:zlib';
import { digestOf, type Digest } from '../src/base/digest.ts';
import type { Descriptor } from '../src/registry/manifest.ts';
import { MEDIA_TYPE, parseManifest, type StoredManifest } from '../src/registry/manifest.ts';
import { makeDefinitions } from './definitions.ts';
import { blobOf, type Blob } from './payload.ts';
import type { SourceImage, SourceRegistry } from './source-registry.ts';

const CONFIG_TYPE = 'application/vnd.docker.container.image.v1+json';
const LAYER_TYPE = 'application/vnd.docker.image.rootfs.diff.tar.gzip';
const CREATED = '2026-01-12T18:29:52Z';

/** A layer with these files, as any image builder packs it, but with fixed times. */
export async function packLayer(
  files: Readonly<Record<string, string | Uint8Array>>,
): Promise<Blob> {
  const tar = pack();
  for (const [name, content] of Object.entries(files)) {
    const mode = name.includes('/bin/') ? 0o755 : 0o644;
    tar.entry({ name, mode, mtime: new Date(0) }, Buffer.from(content));
  }
  tar.finalize();
  const pieces: Uint8Array[] = [];
  for await (const piece of tar) pieces.push(piece as Uint8Array);
  return blobOf(gzipSync(Buffer.concat(pieces), { level: 1 }));
}

/** A Docker schema 2 image of these layers, bottom to top. */
export function buildImage(
  layers: readonly Blob[],
  labels: Record<string, string> = {},
): SourceImage {
  const config = blobOf(
    Buffer.from(
      JSON.stringify({
        architecture: 'amd64',
        os: 'linux',
        created: CREATED,
        config: { Labels: labels },
        rootfs: { type: 'layers', diff_ids: layers.map(({ digest }) => digest) },
      }),
    ),
  );
  const bytes = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: MEDIA_TYPE.dockerManifest,
      config: describe(config, CONFIG_TYPE),
      layers: layers.map((layer) => describe(layer, LAYER_TYPE)),
    }),
  );
  return { manifests: [store(bytes)], blobs: [config, ...layers] };
}

const describe = ({ digest, size }: Blob, mediaType: string): Descriptor => ({
  mediaType,
  size,
  digest,
});

function store(bytes: Uint8Array): StoredManifest {
  const manifest = parseManifest(bytes);
  const { mediaType } = manifest;
  return {
    descriptor: { mediaType, digest: digestOf(bytes), size: bytes.length },
    bytes,
    manifest,
  };
}

export const RELEASE_REPOSITORY = 'openshift-release-dev/ocp-release';
export const COMPONENT_REPOSITORY = 'openshift-release-dev/ocp-v4.0-art-dev';

/**
 * Publishes components and the release image that lists them; returns the release's pullspec.
 *
 * @param release `host` is the registry's name in all references; default: where it listens
 */
export async function publishRelease(
  registry: SourceRegistry,
  release: {
    readonly version: string;
    readonly components: ReadonlyMap<string, SourceImage>;
    readonly host?: string;
  },
): Promise<string> {
  const { version, components, host = registry.host } = release;
  const digests = new Map<string, Digest>();
  for (const [name, image] of components) {
    registry.add(COMPONENT_REPOSITORY, image);
    digests.set(name, topOf(image).descriptor.digest);
  }
  const references = {
    kind: 'ImageStream',
    apiVersion: 'image.openshift.io/v1',
    metadata: { name: version, creationTimestamp: CREATED },
    spec: {
      lookupPolicy: { local: false },
      tags: [...digests].sort().map(([name, digest]) => ({
        name,
        from: { kind: 'DockerImage', name: `${host}/${COMPONENT_REPOSITORY}@${digest}` },
      })),
    },
  };
  const metadata = { kind: 'cincinnati-metadata-v0', version, previous: [], metadata: {} };
  const layer = await packLayer({
    'release-manifests/image-references': JSON.stringify(references),
    'release-manifests/release-metadata': JSON.stringify(metadata),
    ...makeDefinitions(version),
  });
  const image = buildImage([layer], { 'io.openshift.release': version });
  registry.add(RELEASE_REPOSITORY, image, `${version}-x86_64`);
  const { digest } = topOf(image).descriptor;
  registry.signer.sign(digest, `quay.io/${RELEASE_REPOSITORY}:${version}-x86_64`);
  return `${host}/${RELEASE_REPOSITORY}@${digest}`;
}

export function topOf({ manifests: [top] }: SourceImage): StoredManifest {
  if (!top) throw new Error('an image has a manifest');
  return top;
}

const INSTALLER = [
  '#!/bin/sh',
  '# Stand-in for openshift-install: takes the same arguments and writes the same file.',
  'while [ $# -gt 0 ]; do [ "$1" = --dir ] && dir=$2; shift; done',
  'test -f "$dir/cluster-manifests/infraenv.yaml" || { echo "no infraenv.yaml" >&2; exit 3; }',
  'test -f "$dir/cluster-manifests/pull-secret.yaml" || { echo "no pull-secret.yaml" >&2; exit 3; }',
  `printf '%s' '{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/etc/assisted/agent-installer.env","mode":384,"overwrite":true,"user":{"name":"root"},"contents":{"source":"data:,DEMO%3Dyes%0A"}}]}}' > "$dir/unconfigured-agent.ign"`,
  'exit 0',
  '',
].join('\n');

const marker = (name: string, room: number): string =>
  `\0_RELEASE_${name}_LOCATION_\0${'X'.repeat(room)}\0`;

/** An installer with the places where a release is written into it. */
const makeInstaller = (): Buffer =>
  Buffer.from(
    `${INSTALLER}${marker('IMAGE', 240)}${marker('VERSION', 80)}${marker('ARCHITECTURE', 20)}`,
    'latin1',
  );

/** The components that a live ISO cannot do without. */
export async function makeCoreComponents(
  baseIso: Uint8Array,
  shared: readonly Blob[],
): Promise<Map<string, SourceImage>> {
  const installer = makeInstaller();
  return new Map([
    [
      'machine-os-images',
      buildImage([...shared, await packLayer({ 'coreos/coreos-x86_64.iso': baseIso })]),
    ],
    [
      'installer',
      buildImage([...shared, await packLayer({ 'usr/bin/openshift-install': installer })]),
    ],
    [
      'docker-registry',
      buildImage([...shared, await packLayer({ 'usr/bin/distribution': 'stand-in' })]),
    ],
  ]);
}
