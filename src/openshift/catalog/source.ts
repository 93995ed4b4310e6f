import { SealiftError } from '../../base/errors.ts';
import { type LocalCatalog, parseLocalCatalog, refuseCatalog } from '../../fbc/index.ts';
import { parseReference, type Reference } from '../../registry/index.ts';

export type CatalogSource =
  { readonly kind: 'image'; readonly reference: Reference } | LocalCatalog;

/**
 * Parses `registry/repository:tag`, or a local catalog as `parseLocalCatalog` does.
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
