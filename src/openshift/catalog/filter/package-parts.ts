import type { CatalogBundle, CatalogChannel, CatalogPackage } from '../catalog.ts';
import type { FilterReport } from './filter-report.ts';
import type { PackageSelection } from '../selection.ts';

/** Everything that a catalog says about one package. */
export type PackageParts = {
  readonly name: string;
  /** One in a valid catalog; none when the catalog has only channels of it. */
  readonly packages: readonly CatalogPackage[];
  readonly channels: readonly CatalogChannel[];
  readonly bundles: readonly CatalogBundle[];
};

export type PackageFilter = {
  /** Absent when the selection names no packages: then heads are selected. */
  readonly selected: PackageSelection | undefined;
  readonly full: boolean;
  readonly report: FilterReport;
};
