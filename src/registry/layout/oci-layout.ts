import type { Content } from '../../base/store/blob-source.ts';
import { stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { digestOf, type Digest } from '../../base/digest.ts';
import { digestFile, readFileIfPresent } from '../../base/disk/files.ts';
import { ConfigError, IntegrityError, isErrno } from '../../base/errors.ts';
import { createBlobCache, type BlobCache } from '../../base/store/blob-cache.ts';
import { decodeJson, GO_RULES, requireDecoded } from '../../shape/decode.ts';
import { FREE, LEFT_OUT, list, partial, record, TEXT, type Shape } from '../../shape/shape.ts';
import { describeFinding } from '../../shape/words.ts';
import type { RegistryClient } from '../client.ts';
import {
  type Descriptor,
  MAX_MANIFEST_SIZE,
  parseManifest,
  parseStored,
  type StoredManifest,
} from '../manifest.ts';
import type { Reference } from '../reference.ts';

/** An OCI image layout on this machine, read as if it were a registry with one repository. */
export type OciLayout = {
  readonly client: Pick<RegistryClient, 'fetchManifest' | 'resolveTag' | 'sourcesOf'>;
  /** Gives the layout's own files, verified; nothing is ever written. */
  readonly cache: Pick<BlobCache, 'read' | 'ensure' | 'put'>;
  /** The requested image, by digest; `registry/repository` is the path, for errors. */
  readonly reference: Reference;
};

/** image-spec annotations.md: the name of an image within a layout. */
const REF_NAME = 'org.opencontainers.image.ref.name';

const VERSION = '1.0.0';

/**
 * Opens an OCI image layout (image-spec image-layout.md) at the image of this name, or at its only one
 * when no name is given. Every manifest and blob is verified when it is read.
 *
 * @throws ConfigError `oci-layout.missing`, `oci-layout.no-image`, `oci-layout.ambiguous`;
 * IntegrityError `oci-layout.malformed`, `oci-layout.version`, and what `parseManifest` throws
 */
export async function openOciLayout(path: string, tag?: string): Promise<OciLayout> {
  await checkVersion(path);
  const images = await readIndex(path);
  const chosen = chooseImage(images, { path, tag });
  const reference: Reference = {
    registry: `oci:${dirname(path)}`.replace(/\/$/, ''),
    repository: basename(path),
    digest: chosen.digest,
  };
  const { source } = createBlobCache(join(path, 'blobs'));
  const verified = new Map<Digest, Promise<string>>();
  return {
    reference,
    client: {
      fetchManifest(wanted) {
        const digest = findDigest(images, wanted);
        if (digest !== undefined) return readStored(path, digest);
        const { tag: name } = wanted;
        return Promise.reject(noImage(path, images, name));
      },
      async resolveTag(wanted) {
        const digest = findDigest(images, wanted);
        return digest && (await readStored(path, digest)).descriptor;
      },
      sourcesOf: () => [{ ...source, name: `oci:${path}` }],
    },
    cache: {
      read: () => Promise.resolve(undefined), // so that manifests always come from the client
      async ensure(blob, _sources, { signal, onProgress }) {
        signal.throwIfAborted();
        const known = verified.get(blob.digest) ?? verify(path, blob);
        verified.set(blob.digest, known);
        const file = await known;
        onProgress?.(blob.size);
        return file;
      },
      put: (bytes) => Promise.resolve(digestOf(bytes)),
    },
  };
}

async function checkVersion(path: string): Promise<void> {
  const bytes = await readFileIfPresent(join(path, 'oci-layout'));
  if (bytes === undefined) {
    throw new ConfigError('oci-layout.missing', `directory ${path} has no file "oci-layout"`, {
      hint: 'name the directory of an OCI image layout, as "skopeo copy ... oci:DIRECTORY" makes it',
    });
  }
  const read = readDocument(LAYOUT, bytes, `${path}/oci-layout`);
  const { imageLayoutVersion: found = 'none' } = read;
  if (found === VERSION) return;
  throw new IntegrityError(
    'oci-layout.version',
    `OCI layout ${path} should have version ${VERSION}, but has ${found}`,
    { expected: VERSION, found },
  );
}

const LAYOUT = partial({ imageLayoutVersion: TEXT }, LEFT_OUT);
const LISTING = record({ manifests: list(FREE) }, LEFT_OUT);

const readDocument = <T>(shape: Shape<T>, bytes: Uint8Array, file: string): T =>
  requireDecoded(decodeJson(shape, bytes, GO_RULES), ([first]) =>
    malformed(`${file}: ${describeFinding(first, 'it')}`),
  );

type NamedDescriptor = { readonly name: string | undefined; readonly descriptor: Descriptor };

async function readIndex(path: string): Promise<NamedDescriptor[]> {
  const file = join(path, 'index.json');
  const bytes = await readFileIfPresent(file);
  if (bytes === undefined) {
    throw malformed(`OCI layout ${path} has no index.json`);
  }
  readDocument(LISTING, bytes, file);
  const index = parseManifest(bytes);
  if (index.kind !== 'index') throw malformed(`${file} is not an image index`);
  return index.manifests.map((descriptor) => ({
    name: descriptor.annotations?.[REF_NAME],
    descriptor,
  }));
}

function chooseImage(
  images: readonly NamedDescriptor[],
  { path, tag }: { readonly path: string; readonly tag: string | undefined },
): Descriptor {
  const matching = tag === undefined ? images : images.filter(({ name }) => name === tag);
  const digests = new Set(matching.map(({ descriptor }) => descriptor.digest));
  const names = formatNames(images);
  const [first] = matching;
  if (first === undefined) throw noImage(path, images, tag);
  if (digests.size === 1) return first.descriptor;
  throw new ConfigError(
    'oci-layout.ambiguous',
    `OCI layout ${path} has ${digests.size} images${tag === undefined ? '' : ` named "${tag}"`}`,
    { found: names, hint: `name one of its images as oci:${path}:TAG; it has: ${names}` },
  );
}

/** A digest takes precedence over a tag. */
const findDigest = (
  images: readonly NamedDescriptor[],
  { digest, tag }: Reference,
): Digest | undefined =>
  digest ?? images.find(({ name }) => name !== undefined && name === tag)?.descriptor.digest;

const formatNames = (images: readonly NamedDescriptor[]): string =>
  images.map(({ name }) => name ?? 'one without a name').join(', ') || 'none';

function noImage(
  path: string,
  images: readonly NamedDescriptor[],
  tag: string | undefined,
): ConfigError {
  const names = formatNames(images);
  const what = tag === undefined ? 'image' : `image "${tag}"`;
  return new ConfigError('oci-layout.no-image', `OCI layout ${path} has no ${what}`, {
    found: names,
    hint: `name one of its images: ${names}`,
  });
}

async function readStored(path: string, digest: Digest): Promise<StoredManifest> {
  const size = await sizeOf(path, digest);
  if (size > MAX_MANIFEST_SIZE) {
    throw damaged(digest, `at most ${MAX_MANIFEST_SIZE} bytes`, `${size} bytes`);
  }
  const bytes = await readFileIfPresent(blobPath(path, digest));
  const found = digestOf(bytes ?? '');
  if (bytes === undefined || found !== digest) throw damaged(digest, digest, found);
  return parseStored(bytes, digest);
}

async function verify(path: string, { digest, size }: Content): Promise<string> {
  const found = await sizeOf(path, digest);
  if (found !== size) throw damaged(digest, `${size} bytes`, `${found} bytes`);
  const actual = await digestFile(blobPath(path, digest));
  if (actual !== digest) throw damaged(digest, digest, actual);
  return blobPath(path, digest);
}

async function sizeOf(path: string, digest: Digest): Promise<number> {
  try {
    const found = await stat(blobPath(path, digest));
    return found.size;
  } catch (cause) {
    if (!isErrno(cause, 'ENOENT', 'ENOTDIR')) throw cause;
    throw new IntegrityError(
      'oci-layout.blob-missing',
      `OCI layout ${path} has no blob ${digest}`,
      {
        hint: 'copy the image into the layout again, with all of its architectures',
        cause,
      },
    );
  }
}

const blobPath = (path: string, digest: Digest): string =>
  join(path, 'blobs', ...digest.split(':'));

const damaged = (digest: Digest, expected: string, found: string): IntegrityError =>
  new IntegrityError(
    'oci-layout.blob-damaged',
    `blob ${digest} should have ${expected}, but has ${found}`,
    { expected, found, hint: 'copy the image into the layout again' },
  );

const malformed = (message: string): IntegrityError =>
  new IntegrityError('oci-layout.malformed', message);
