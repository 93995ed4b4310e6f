/**
 * File-based catalogs of operators (FBC): read, filtered to a selection, completed by what bundles
 * require, and edited.
 */

// The catalog and its name.
export type {
  Catalog,
  CatalogBundle,
  CatalogChannel,
  ChannelEntry,
  CatalogPlace,
} from './catalog.ts';
export { CATALOG_HINT, nameLocalCatalog, parseLocalCatalog, refuseCatalog } from './source.ts';
export type { CatalogSelection, LocalCatalog } from './source.ts';
export { readCatalog, readDocuments } from './read/read-catalog.ts';
export { readLifecycles } from './lifecycle.ts';
export type { Lifecycle, Lifecycles, LifecycleVersion } from './lifecycle.ts';

// Selection.
export { filterCatalog } from './filter/filter-catalog.ts';
export type { FilteredCatalog } from './filter/filter-catalog.ts';
export { resolveDependencies } from './dependencies.ts';
export type { AddedBundle, ResolvedCatalog } from './dependencies.ts';
export { findGraphProblems, findHead } from './channel-graph.ts';
export { completeVersion } from './constraint.ts';

// Edits of single documents.
export { editChannel, editDeprecations, editPackage, encodeDocument } from './edit.ts';
export type { EditDocument } from './edit.ts';
