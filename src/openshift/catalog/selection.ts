import { SealiftError } from '../../base/errors.ts';
import { parseLocalCatalog, refuseCatalog, type LocalCatalog } from '../../base/local-catalog.ts';
import { parseReference, type Reference } from '../../registry/reference.ts';

/** Versions to keep, both ends included; absent ends are open. */
export type VersionBounds = { readonly minVersion?: string; readonly maxVersion?: string };

/** What to keep of a channel: versions, or all that upgrades from one bundle to the head. Not both. */
export type Bounds = VersionBounds & {
  /** Name of the bundle. Versions play no part then. */
  readonly minBundle?: string;
};

export type PackageSelection = Bounds & {
  readonly name: string;
  /** What the package's default channel becomes. */
  readonly defaultChannel?: string;
  /** None: all channels of the package. */
  readonly channels: readonly ({ readonly name: string } & Bounds)[];
  /** Names of bundles that are left out as if they had never been published. */
  readonly skipBundles?: readonly string[];
};

/** What to do about requirements that no selected bundle meets: add what meets them, or warn. */
export type DependencyMode = 'add' | 'warn';

/** What to keep of a catalog. */
export type CatalogSelection = {
  /** None: all packages. */
  readonly packages: readonly PackageSelection[];
  /** Every version, not only the heads of channels. */
  readonly full: boolean;
  /** Default `warn`. */
  readonly dependencies?: DependencyMode;
};

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
