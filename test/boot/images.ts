import {
  chmod,
  copyFile,
  mkdir,
  mkdtemp,
  readFile,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { digestOf, hexOf, type Digest } from '../../src/base/digest.ts';
import { runProcess } from '../../src/base/process.ts';

/** What goes into one layer: a file's bytes, a file of this machine with its libraries, or a link. */
export type LayerEntry =
  | { readonly path: string; readonly text: string }
  | { readonly path: string; readonly copyOf: string }
  | { readonly path: string; readonly linkTo: string };

export type ImageRecipe = {
  /** First to last, each a layer of its own; equal ones are shared between images. */
  readonly layers: readonly (readonly LayerEntry[])[];
  /** The `config` object of the image configuration. */
  readonly config?: object;
};

const BUSYBOX: readonly LayerEntry[] = [
  { path: 'bin/busybox', copyOf: '/bin/busybox' },
  { path: 'bin/sh', linkTo: 'busybox' },
  { path: 'etc/passwd', text: 'root:x:0:0:root:/root:/bin/sh\n' },
  { path: 'etc/group', text: 'root:x:0:\n' },
];

/** Filesystem root as the nodes mount it; what changes comes through REGISTRY_ variables. */
const REGISTRY_CONFIG = `version: 0.1
storage:
  filesystem:
    rootdirectory: /var/lib/registry
http:
  addr: :5000
`;

/**
 * Stands in for the payload's `docker-registry` component: Debian's registry under the name the
 * nodes start it by, `/usr/bin/distribution serve /etc/registry/config.yaml`, and the openssl that
 * makes the certificate inside this image.
 */
export const REGISTRY_IMAGE: ImageRecipe = {
  layers: [
    BUSYBOX,
    [
      { path: 'usr/bin/distribution', copyOf: '/usr/bin/docker-registry' },
      { path: 'usr/bin/openssl', copyOf: '/usr/bin/openssl' },
      { path: 'etc/ssl/openssl.cnf', copyOf: '/etc/ssl/openssl.cnf' },
      { path: 'usr/lib/ssl/openssl.cnf', linkTo: '/etc/ssl/openssl.cnf' },
      { path: 'etc/registry/config.yaml', text: REGISTRY_CONFIG },
      { path: 'var/lib/registry/.keep', text: '' },
      { path: 'certs/.keep', text: '' },
      { path: 'tmp/.keep', text: '' },
    ],
  ],
  config: {
    User: '1001',
    Entrypoint: ['/usr/bin/distribution'],
    Cmd: ['serve', '/etc/registry/config.yaml'],
    Env: ['PATH=/usr/sbin:/usr/bin:/sbin:/bin', 'OTEL_TRACES_EXPORTER=none'],
  },
};

/** Stands in for a component of the release, or for an additional image: busybox and a name. */
export function nameImage(name: string): ImageRecipe {
  return {
    layers: [BUSYBOX, [{ path: 'etc/image-name', text: `${name}\n` }]],
    config: { Cmd: ['/bin/busybox', 'cat', '/etc/image-name'], Env: ['PATH=/bin'] },
  };
}

/**
 * Writes an OCI image layout with one image. Same recipe and machine, same bytes: times are 0, owners
 * root, names sorted.
 *
 * @returns the digest of the manifest.
 */
export async function writeOciLayout(directory: string, recipe: ImageRecipe): Promise<Digest> {
  const layout: Layout = { directory, blobs: join(directory, 'blobs/sha256') };
  await mkdir(layout.blobs, { recursive: true });
  const diffIds: Digest[] = [];
  const layers: Descriptor[] = [];
  for (const entries of recipe.layers) {
    const tar = await packLayer(entries);
    diffIds.push(digestOf(tar));
    layers.push(
      await writeBlob(layout, gzipSync(tar), 'application/vnd.oci.image.layer.v1.tar+gzip'),
    );
  }
  const config = await writeJson(layout, 'application/vnd.oci.image.config.v1+json', {
    created: '1970-01-01T00:00:00Z',
    architecture: 'amd64',
    os: 'linux',
    config: recipe.config ?? {},
    rootfs: { type: 'layers', diff_ids: diffIds },
  });
  const mediaType = 'application/vnd.oci.image.manifest.v1+json';
  const manifest = await writeJson(layout, mediaType, {
    schemaVersion: 2,
    mediaType,
    config,
    layers,
  });
  await writeFile(join(directory, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}');
  const index = { schemaVersion: 2, manifests: [manifest] };
  await writeFile(join(directory, 'index.json'), JSON.stringify(index));
  return manifest.digest;
}

type Layout = { readonly directory: string; readonly blobs: string };
type Descriptor = { readonly mediaType: string; readonly digest: Digest; readonly size: number };

async function packLayer(entries: readonly LayerEntry[]): Promise<Buffer> {
  const work = await mkdtemp(join(tmpdir(), 'layer-'));
  try {
    const root = join(work, 'root');
    await mkdir(root);
    for (const entry of entries) await addEntry(root, entry);
    const tar = join(work, 'layer.tar');
    const same = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner'];
    await runProcess('tar', ['-C', root, ...same, '-cf', tar, '.']);
    return await readFile(tar);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

async function addEntry(root: string, entry: LayerEntry): Promise<void> {
  const path = join(root, entry.path);
  await mkdir(dirname(path), { recursive: true });
  if ('text' in entry) {
    await writeFile(path, entry.text);
  } else if ('linkTo' in entry) {
    await symlink(entry.linkTo, path);
  } else {
    await copyFile(entry.copyOf, path);
    if (/\/s?bin\//.test(entry.copyOf)) await copyLibraries(root, entry.copyOf);
  }
  if (!('linkTo' in entry)) await chmod(path, /(^|\/)bin\//.test(entry.path) ? 0o755 : 0o644);
}

async function copyLibraries(root: string, program: string): Promise<void> {
  const { stdout } = await runProcess('sh', ['-c', 'ldd "$1" || true', 'sh', program]);
  for (const [library] of stdout.matchAll(/\/\S+(?= \(0x)/g)) {
    await mkdir(join(root, dirname(library)), { recursive: true });
    await copyFile(library, join(root, library));
    await chmod(join(root, library), 0o755);
  }
}

async function writeBlob(layout: Layout, bytes: Buffer, mediaType: string): Promise<Descriptor> {
  const digest = digestOf(bytes);
  await writeFile(join(layout.blobs, hexOf(digest)), bytes);
  return { mediaType, digest, size: bytes.length };
}

async function writeJson(layout: Layout, mediaType: string, value: object): Promise<Descriptor> {
  return await writeBlob(layout, Buffer.from(JSON.stringify(value)), mediaType);
}
