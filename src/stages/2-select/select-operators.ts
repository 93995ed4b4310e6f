import { join } from 'node:path';
import { ConfigError, IntegrityError, RegistryError, SealiftError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { Stage } from '../../engine/index.ts';
import {
  type CatalogSelection,
  filterCatalog,
  type FilteredCatalog,
  type LocalCatalog,
  nameLocalCatalog,
  readCatalog,
  type ResolvedCatalog,
  resolveDependencies,
} from '../../fbc/index.ts';
import {
  extractCatalog,
  openCatalogImage,
  openServerImage,
  type CatalogImage,
} from '../../openshift/catalog/image.ts';
import { rebuildCatalog } from '../../openshift/catalog/rebuild.ts';
import {
  importOciLayout,
  listBundles,
  listLastVersions,
  listPackages,
  type SelectedCatalog,
} from '../../openshift/catalog/selected.ts';
import type { ImageTools } from '../../openshift/images.ts';
import type { Selection } from '../../openshift/mirror/fetch.ts';
import { platformOf, type RpmArchitecture } from '../../openshift/release/bundle.ts';
import { type Descriptor, parseReference, type Reference } from '../../registry/index.ts';

export type WantedCatalog = CatalogSelection & {
  /** Reference of the catalog's image, or the configuration's name of the catalog on this machine. */
  readonly catalog: string;
  readonly local?: LocalCatalog;
  readonly targetCatalog?: string;
  readonly targetTag?: string;
};

export type SelectOperatorsInput = {
  readonly catalogs: readonly WantedCatalog[];
  readonly arch: RpmArchitecture;
  /** Rebuilds a catalog for every architecture that it has. */
  readonly allArchitectures: boolean;
  /** Carries catalogs unchanged: the selection is only checked against them. */
  readonly unchanged?: boolean;
  /** Image of the release that catalogs from directories are put into, if there are any. */
  readonly server?: Reference;
};

export type SelectOperatorsTools = Pick<ImageTools, 'client' | 'cache'> & {
  readonly workDir: string;
};

type Tools = ImageTools & {
  /** Directory in which catalogs are unpacked. */
  readonly directory: string;
  readonly warn: (message: string) => void;
};

/**
 * Reads every catalog, selects from it, and makes the image that is carried in its place; a catalog
 * that is selected whole is carried unchanged. Bundles that selected bundles
 * require are looked for in all catalogs together. Problems of all of them are reported.
 */
export const selectOperators: Stage<
  SelectOperatorsInput,
  readonly SelectedCatalog[],
  SelectOperatorsTools
> = {
  name: 'select operators',
  run: (input, { workDir, ...tools }, context) =>
    selectAll(input, { ...tools, ...context, directory: join(workDir, 'cache', 'catalogs') }),
};

async function selectAll(input: SelectOperatorsInput, tools: Tools): Promise<SelectedCatalog[]> {
  const opened = await settleAll(input.catalogs, tools, (wanted) =>
    openCatalog(wanted, input, tools),
  );
  const resolved = resolveDependencies(
    opened.map(({ wanted: { catalog: name, dependencies: mode = 'warn' }, filtered }) => ({
      name,
      mode,
      filtered,
    })),
  );
  const pairs = opened.flatMap((one, at) => {
    const selected = resolved[at];
    return selected === undefined ? [] : [{ one, selected }];
  });
  const selected = await settleAll(pairs, tools, ({ one, selected }) =>
    makeCatalog(one, input.unchanged === true ? { ...selected, isWhole: true } : selected, tools),
  );
  for (const { warnings } of selected) for (const warning of warnings) tools.warn(warning);
  return selected;
}

/** All results, or the failures of all. */
async function settleAll<Item, Result>(
  items: readonly Item[],
  { signal }: Tools,
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results = await Promise.allSettled(items.map(work));
  signal.throwIfAborted();
  const failures = results.flatMap((result) =>
    result.status === 'rejected' ? [result.reason as unknown] : [],
  );
  if (failures.length > 0) throw summarise(failures);
  return results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
}

type OpenedCatalog = OpenCatalog & {
  readonly wanted: WantedCatalog;
  readonly filtered: FilteredCatalog;
};

async function openCatalog(
  wanted: WantedCatalog,
  input: SelectOperatorsInput,
  tools: Tools,
): Promise<OpenedCatalog> {
  const { catalog: name } = wanted;
  const { image, reference, directory } = await openWanted(wanted, input, tools);
  const source = await readCatalog(directory, { name, signal: tools.signal });
  const filtered = filterCatalog(source, wanted, { name });
  return { wanted, image, reference, directory, filtered };
}

async function makeCatalog(
  { wanted, image, reference, directory, filtered }: OpenedCatalog,
  selected: ResolvedCatalog,
  tools: Tools,
): Promise<SelectedCatalog> {
  const { catalog: name, local } = wanted;
  const { source } = filtered;
  const made =
    selected.isWhole && local?.kind !== 'directory'
      ? undefined
      : await rebuild({ image, directory, source, filtered: selected.catalog }, tools);
  return {
    name,
    reference,
    digest: made?.digest ?? image.top.descriptor.digest,
    ...readTarget(wanted),
    ...(local && { isLocal: true as const }),
    ...(made && { rebuilt: { made: made.blobs } }),
    packages: listPackages(selected.catalog),
    bundles: listBundles(selected.catalog),
    lastVersions: listLastVersions(selected.catalog),
    additions: selected.additions,
    warnings: selected.warnings,
  };
}

type OpenCatalog = {
  readonly image: CatalogImage;
  readonly reference: Reference;
  readonly directory: string;
};

async function openWanted(
  { catalog, local }: WantedCatalog,
  { arch, allArchitectures, server }: SelectOperatorsInput,
  tools: Tools,
): Promise<OpenCatalog> {
  const selection: Selection = allArchitectures ? 'all' : platformOf(arch);
  if (local?.kind === 'directory') {
    if (server === undefined) throw new TypeError(`no image to put catalog ${catalog} into`);
    const image = await openServerImage(tools, server, selection);
    return { image, reference: server, directory: local.path };
  }
  const reference = local
    ? await importOciLayout(local, nameLocalCatalog(local).repository, { ...tools, selection })
    : parseReference(catalog);
  const image = await openCatalogImage(tools, reference, selection);
  return { image, reference, directory: await extractCatalog(tools, image, tools.directory) };
}

/** Reads the target of the copy, if it is not the path and tag of its reference. */
function readTarget({ local, targetCatalog, targetTag }: WantedCatalog) {
  const own = local && nameLocalCatalog(local);
  const [repository, tag] = [targetCatalog ?? own?.repository, targetTag ?? own?.tag];
  return {
    ...withoutUndefined({ targetCatalog: repository, targetTag: tag }),
  };
}

/** Puts content that no registry has into the cache, in which the plan and the pour find it by digest. */
async function rebuild(
  parts: Parameters<typeof rebuildCatalog>[0],
  { cache }: ImageTools,
): Promise<{ readonly digest: Descriptor['digest']; readonly blobs: readonly Descriptor[] }> {
  const made = await rebuildCatalog(parts);
  for (const { bytes } of [...made.blobs, ...made.manifests]) await cache.put(bytes);
  const blobs = [...made.blobs, ...made.manifests].map(({ descriptor }) => {
    const { mediaType, digest, size } = descriptor;
    return { mediaType, digest, size };
  });
  return { digest: made.top.descriptor.digest, blobs };
}

/** Summarises failures: a mistake in this program comes first; otherwise several failures become one. */
function summarise(failures: readonly unknown[]): unknown {
  const bug = failures.find((failure) => !(failure instanceof SealiftError));
  const foreseen = failures.filter((failure) => failure instanceof SealiftError);
  const [first] = foreseen;
  if (bug !== undefined || first === undefined || foreseen.length === 1) return bug ?? first;
  const message = foreseen.map((failure) => failure.message).join('\n');
  const details = { cause: first, ...withoutUndefined({ hint: first.hint }) };
  if (first instanceof RegistryError) return new RegistryError('catalog.several', message, details);
  if (first instanceof IntegrityError)
    return new IntegrityError('catalog.several', message, details);
  return new ConfigError('catalog.several', message, details);
}
