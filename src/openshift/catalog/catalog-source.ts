import { SealiftError } from '../../base/errors.ts';
import { parseLocalCatalog, refuseCatalog, type LocalCatalog } from '../../base/local-catalog.ts';
import { parseReference, type Reference } from '../../registry/reference.ts';

/** Where a catalog comes from. */
export type CatalogSource =
  { readonly kind: 'image'; readonly reference: Reference } | LocalCatalog;

/**
 * Reads how a catalog is named: `registry/repository:tag`, or as `parseLocalCatalog` does.
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
