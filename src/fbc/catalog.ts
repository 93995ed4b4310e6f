/** Place of a document of a file-based catalog, for errors and for reading it again verbatim. */
export type CatalogPlace = {
  /** Path below the catalog's directory, `/` between names. */
  readonly file: string;
  /** Number from 1, in the order of the file. */
  readonly number: number;
  /** Bytes from the start of the file. */
  readonly offset: number;
  /** Bytes. */
  readonly size: number;
  readonly syntax: 'json' | 'yaml';
};

/** `olm.package` */
export type CatalogPackage = {
  readonly name: string;
  readonly defaultChannel: string | undefined;
  readonly place: CatalogPlace;
};

export type ChannelEntry = {
  readonly name: string;
  readonly replaces?: string;
  readonly skips?: readonly string[];
  readonly skipRange?: string;
};

/** `olm.channel` */
export type CatalogChannel = {
  readonly package: string;
  readonly name: string;
  readonly entries: readonly ChannelEntry[];
  readonly place: CatalogPlace;
};

/** A kind of object that a cluster knows: a value of `olm.gvk`. */
export type Api = { readonly group: string; readonly version: string; readonly kind: string };

/**
 * A requirement of a bundle: a value of `olm.package.required`, `olm.gvk.required` or
 * `olm.constraint`. As in OLM, one bundle has to meet all of it, compound ones too.
 */
export type Requirement =
  /** `versionRange` is in blang's language. */
  | { readonly kind: 'package'; readonly packageName: string; readonly versionRange: string }
  | { readonly kind: 'api'; readonly api: Api }
  | { readonly kind: 'all' | 'any' | 'not'; readonly of: readonly Requirement[] }
  /** A constraint that is not evaluated here: a CEL rule, or a value that OLM would not read. */
  | { readonly kind: 'unknown'; readonly what: string; readonly reason: string };

/** `olm.bundle` */
export type CatalogBundle = {
  readonly package: string;
  readonly name: string;
  readonly image: string;
  /** Version from its `olm.package` property; absent without one. */
  readonly version?: string;
  readonly requirements: readonly Requirement[];
  /** Values of its `olm.gvk` properties. */
  readonly provides: readonly Api[];
  /** Value of its `olm.maxOpenShiftVersion` property; several values are joined, since OLM takes no such bundle. */
  readonly maxOpenShiftVersion?: string;
  /** Images as written: duplicates and empty names are usual. */
  readonly relatedImages: readonly { readonly name: string; readonly image: string }[];
  readonly place: CatalogPlace;
};

export type DeprecationEntry = {
  readonly reference: { readonly schema: string; readonly name?: string };
  readonly message: string;
};

/** `olm.deprecations` */
export type CatalogDeprecations = {
  readonly package: string;
  readonly entries: readonly DeprecationEntry[];
  readonly place: CatalogPlace;
};

/** A document of an unknown schema; it is carried unchanged. */
export type OtherDocument = {
  readonly schema: string;
  /** Absent or empty if it belongs to no package. */
  readonly package?: string;
  readonly name?: string;
  readonly place: CatalogPlace;
};

/** A malformed document of a known package, in no other list: selecting the package must be refused. */
export type MalformedDocument = {
  readonly schema: string;
  readonly package: string;
  readonly name?: string;
  /** With file, document and byte; at least one, and only the first ones of very many. */
  readonly problems: readonly string[];
  readonly place: CatalogPlace;
};

/** A file-based catalog. Only what the selection needs is in memory; documents stay at their `place`. */
export type Catalog = {
  readonly packages: readonly CatalogPackage[];
  readonly channels: readonly CatalogChannel[];
  readonly bundles: readonly CatalogBundle[];
  readonly deprecations: readonly CatalogDeprecations[];
  readonly others: readonly OtherDocument[];
  readonly malformed: readonly MalformedDocument[];
};
