import { digestOf, type Digest } from '../../base/digest.ts';
import { ConfigError, IntegrityError } from '../../base/errors.ts';
import type { Descriptor } from '../descriptor.ts';
import type { StoredManifest } from '../manifest.ts';

/** A file of a registry's tree: small bytes of ours, or a blob that is poured later. */
export type RegistryFile = {
  /** Absolute within the tree, `/docker/registry/v2/...`. */
  readonly path: string;
  readonly content:
    | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
    | { readonly kind: 'blob'; readonly digest: Digest; readonly size: number };
};

/** Gathers files; what is added twice must be the same. */
export type FilePlan = {
  /** @throws IntegrityError `layout.digest-mismatch`, `layout.size-conflict` */
  addManifest: (path: string, manifest: StoredManifest) => void;
  /** @throws IntegrityError `layout.size-conflict` */
  addBlob: (path: string, blob: Descriptor) => void;
  /** @throws ConfigError `layout.path-conflict` */
  addBytes: (path: string, bytes: Uint8Array) => void;
  /** Sorted by path, in UTF-16 code units. */
  files: () => RegistryFile[];
};

export function createFilePlan(): FilePlan {
  const files = new Map<string, RegistryFile>();
  const sizes = new Map<Digest, number>();
  const checkSize = ({ digest, size }: Descriptor): void => {
    const known = sizes.get(digest) ?? size;
    if (known !== size) throw sizeConflict(digest, known, size);
    sizes.set(digest, size);
  };
  return {
    addManifest(path, { descriptor, bytes }) {
      checkManifest(descriptor, bytes);
      checkSize(descriptor);
      files.set(path, { path, content: { kind: 'bytes', bytes } });
    },
    addBlob(path, blob) {
      checkSize(blob);
      // A manifest may be named as a blob, too: its bytes are already here.
      if (files.has(path)) return;
      files.set(path, { path, content: { kind: 'blob', digest: blob.digest, size: blob.size } });
    },
    addBytes(path, bytes) {
      const known = files.get(path)?.content;
      if (known?.kind === 'bytes' && !Buffer.from(known.bytes).equals(bytes)) {
        throw pathConflict(path, known.bytes, bytes);
      }
      files.set(path, { path, content: { kind: 'bytes', bytes } });
    },
    files: () => [...files.values()].sort((a, b) => (a.path < b.path ? -1 : 1)),
  };
}

function checkManifest({ digest, size }: Descriptor, bytes: Uint8Array): void {
  if (bytes.length !== size) throw sizeConflict(digest, size, bytes.length);
  const found = digestOf(bytes);
  if (found === digest) return;
  throw new IntegrityError(
    'layout.digest-mismatch',
    `manifest ${digest} has bytes with the digest ${found}`,
    { expected: digest, found },
  );
}

const sizeConflict = (digest: Digest, expected: number, found: number): IntegrityError =>
  new IntegrityError(
    'layout.size-conflict',
    `${digest} is ${expected} bytes in one place and ${found} bytes in another`,
    { expected: `${expected} bytes`, found: `${found} bytes` },
  );

function pathConflict(path: string, known: Uint8Array, added: Uint8Array): ConfigError {
  const expected = Buffer.from(known).toString('utf8', 0, 80);
  const found = Buffer.from(added).toString('utf8', 0, 80);
  return new ConfigError(
    'layout.path-conflict',
    `${path} should hold ${expected} for one image and ${found} for another`,
    { expected, found, hint: 'Give the two images different tags or repositories.' },
  );
}
