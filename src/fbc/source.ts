import { basename, resolve } from 'node:path';
import { ConfigError } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';

/** A catalog on this machine, by its absolute path. */
export type LocalCatalog =
  /** A directory of file-based catalog files. */
  | { readonly kind: 'directory'; readonly path: string }
  /** An OCI image layout; `tag` is the `org.opencontainers.image.ref.name` of the catalog in it. */
  | { readonly kind: 'oci'; readonly path: string; readonly tag?: string };

/** Versions to keep, both ends included; absent ends are open. */
export type VersionBounds = { readonly minVersion?: string; readonly maxVersion?: string };

/** Selected part of a channel: versions, or all upgrades from one bundle to the head. Not both. */
export type Bounds = VersionBounds & {
  /** Name of the bundle; versions must be absent then. */
  readonly minBundle?: string;
};

export type PackageSelection = Bounds & {
  readonly name: string;
  /** New default channel of the package. */
  readonly defaultChannel?: string;
  /** Selected channels; empty: all channels of the package. */
  readonly channels: readonly ({ readonly name: string } & Bounds)[];
  /** Names of bundles that are left out as if they had never been published. */
  readonly skipBundles?: readonly string[];
};

/** Treatment of requirements that no selected bundle meets: add bundles that meet them, or warn. */
export type DependencyMode = 'add' | 'warn';

export type CatalogSelection = {
  /** Selected packages; empty: all packages. */
  readonly packages: readonly PackageSelection[];
  /** Every version, not only the heads of channels. */
  readonly full: boolean;
  /** Default `warn`. */
  readonly dependencies?: DependencyMode;
};

export const CATALOG_HINT = 'write registry/repository:tag, file:DIRECTORY or oci:DIRECTORY[:TAG]';

/**
 * Reads `file:DIR` or `oci:DIR[:TAG]`, both also as `file:///DIR`; undefined for anything else. Relative
 * directories count from `baseDirectory`. The text after the last colon of an `oci:` path is its tag unless
 * it has a slash.
 *
 * @throws ConfigError `catalog.reference`
 */
export function parseLocalCatalog(text: string, baseDirectory: string): LocalCatalog | undefined {
  const [, scheme, rest = ''] = /^(file|oci):(.*)$/s.exec(text) ?? [];
  if (scheme === undefined) return undefined;
  const written = stripHost(text, rest);
  const { path, tag } = scheme === 'oci' ? splitTag(written) : { path: written, tag: undefined };
  if (path === '' || path.includes('\0')) throw refuseCatalog(text, 'it names no directory');
  if (tag === '') throw refuseCatalog(text, 'its tag is empty');
  const absolute = resolve(baseDirectory, path);
  if (scheme === 'file') return { kind: 'directory', path: absolute };
  return { kind: 'oci', path: absolute, ...withoutUndefined({ tag }) };
}

/** oc-mirror's name for a local catalog: the last name of its path, and the tag `latest` by default. */
export const nameLocalCatalog = (
  local: LocalCatalog,
): { readonly repository: string; readonly tag: string } => ({
  repository: basename(local.path),
  tag: (local.kind === 'oci' ? local.tag : undefined) ?? 'latest',
});

/** The refusal of a catalog's name, ConfigError `catalog.reference`. */
export const refuseCatalog = (text: string, reason: string, cause?: unknown): ConfigError =>
  new ConfigError('catalog.reference', `catalog "${text}" cannot be read: ${reason}`, {
    hint: CATALOG_HINT,
    cause,
  });

/** RFC 8089 2: a host may precede the path, and is usually empty. */
function stripHost(text: string, rest: string): string {
  if (!rest.startsWith('//')) return rest;
  if (rest.startsWith('///')) return rest.slice(2);
  throw refuseCatalog(text, '// is followed by a host, but catalogs are read from this machine');
}

function splitTag(text: string): { path: string; tag: string | undefined } {
  const colon = text.lastIndexOf(':');
  if (colon <= text.lastIndexOf('/')) return { path: text, tag: undefined };
  return { path: text.slice(0, colon), tag: text.slice(colon + 1) };
}
