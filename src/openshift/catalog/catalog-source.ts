import { resolve } from 'node:path';
import { ConfigError, SealiftError } from '../../base/errors.ts';
import { parseReference, type Reference } from '../../registry/reference.ts';

/** Where a catalog comes from. */
export type CatalogSource =
  | { readonly kind: 'image'; readonly reference: Reference }
  /** A directory of file-based catalog files, absolute. */
  | { readonly kind: 'directory'; readonly path: string }
  /** An OCI image layout, absolute; `tag` is its `org.opencontainers.image.ref.name`. */
  | { readonly kind: 'oci'; readonly path: string; readonly tag?: string };

const HINT = 'Write registry/repository:tag, file:DIRECTORY or oci:DIRECTORY[:TAG].';

/**
 * Reads how a catalog is named: `registry/repository:tag`, `file:DIR` or `oci:DIR[:TAG]`, the last two
 * also as `file:///DIR`. Relative directories count from `baseDirectory`. What follows the last colon
 * of an `oci:` path is its tag unless it has a slash.
 *
 * @throws ConfigError `catalog.reference`
 */
export function parseCatalogSource(text: string, baseDirectory: string): CatalogSource {
  const [, scheme, rest = ''] = /^(file|oci):(.*)$/s.exec(text) ?? [];
  if (scheme === undefined) return { kind: 'image', reference: parseImage(text) };
  const written = stripHost(text, rest);
  const { path, tag } = scheme === 'oci' ? splitTag(written) : { path: written, tag: undefined };
  if (path === '' || path.includes('\0')) throw refuse(text, 'it names no directory');
  if (tag === '') throw refuse(text, 'its tag is empty');
  const absolute = resolve(baseDirectory, path);
  if (scheme === 'file') return { kind: 'directory', path: absolute };
  return { kind: 'oci', path: absolute, ...(tag !== undefined && { tag }) };
}

/** RFC 8089 2: a host may stand before the path, and is usually empty. */
function stripHost(text: string, rest: string): string {
  if (!rest.startsWith('//')) return rest;
  if (rest.startsWith('///')) return rest.slice(2);
  throw refuse(text, 'after // stands a host, but catalogs are read from this machine');
}

function parseImage(text: string): Reference {
  let reference: Reference;
  try {
    reference = parseReference(text);
  } catch (cause) {
    if (!(cause instanceof SealiftError)) throw cause;
    throw refuse(text, cause.message, cause);
  }
  if (reference.tag !== undefined || reference.digest !== undefined) return reference;
  throw refuse(text, 'it has neither tag nor digest');
}

function splitTag(text: string): { path: string; tag: string | undefined } {
  const colon = text.lastIndexOf(':');
  if (colon <= text.lastIndexOf('/')) return { path: text, tag: undefined };
  return { path: text.slice(0, colon), tag: text.slice(colon + 1) };
}

const refuse = (text: string, reason: string, cause?: unknown): ConfigError =>
  new ConfigError('catalog.reference', `catalog "${text}" cannot be read: ${reason}`, {
    hint: HINT,
    cause,
  });
