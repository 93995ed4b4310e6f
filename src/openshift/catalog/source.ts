import { SealiftError } from '../../base/errors.ts';
import { type LocalCatalog, parseLocalCatalog, refuseCatalog } from '../../fbc/index.ts';
import { parseReference, type Reference } from '../../registry/index.ts';

/** A catalog in a registry, or on this machine. */
export type CatalogSource =
  { readonly kind: 'image'; readonly reference: Reference } | LocalCatalog;

/**
 * Parses the name of a catalog: `registry/repository:tag`, or a local one in the forms that
 * `parseLocalCatalog` reads.
 *
 * @throws ConfigError `catalog.reference`
 */
export const parseCatalogSource = (text: string, baseDirectory: string): CatalogSource =>
  parseLocalCatalog(text, baseDirectory) ?? { kind: 'image', reference: parseImage(text) };

function parseImage(text: string): Reference {
  let reference: Reference;
  try {
    reference = parseReference(text);
  } catch (cause) {
    if (!(cause instanceof SealiftError)) throw cause;
    throw refuseCatalog(text, cause.message, cause);
  }
  if (reference.tag !== undefined || reference.digest !== undefined) return reference;
  throw refuseCatalog(text, 'it has neither tag nor digest');
}
