import { ConfigError } from '../../base/errors.ts';
import {
  type Catalog,
  type CatalogPlace,
  editChannel,
  editDeprecations,
  type EditDocument,
  editPackage,
  encodeDocument,
  readDocuments,
} from '../../fbc/index.ts';
import { packFiles } from '../../registry/index.ts';

/** Every rebuilt catalog has this directory, regardless of the original's. */
export const CONFIGS_DIRECTORY = 'configs';

/** Far above any real catalog (some 100 MB); a layer is held in memory twice while it is packed. */
const MAX_LAYER_SIZE = 1024 ** 3;

/** Part of a path: it does not start with a dot, because `.wh.` would be a whiteout. */
const PACKAGE_NAME = /^[A-Za-z0-9_][\w.+-]{0,254}$/;

const NEWLINE = Buffer.from('\n');

const DIRECTORY_MODE = 0o755;

/** opm builds its cache below it, as any user that the cluster gives it. */
const TEMPORARY_MODE = 0o1777;

type PlacedDocument = { readonly place: CatalogPlace; readonly edit: EditDocument | undefined };

/**
 * A layer that hides the catalog of the layers below, in any directory, and the cache that opm
 * built of it: serving refuses a cache that does not match (OCI image-spec layer.md, whiteouts).
 *
 * Parents have their own entries, because unpacking would give missing parents a mode of its
 * choice, and a `/tmp` that not every user may write to keeps opm from starting.
 */
export async function packWhiteouts(configsDirectory: string): Promise<Buffer> {
  const hidden = [configsDirectory, CONFIGS_DIRECTORY, 'tmp/cache'];
  const directories = new Map<string, number>();
  const whiteouts = new Map<string, readonly Buffer[]>();
  for (const path of hidden) {
    // An entry below a directory that the same layer removes would bring it back.
    if (hidden.some((other) => path.startsWith(`${other}/`))) continue;
    const names = path.split('/');
    const name = names.pop() ?? '';
    for (let depth = 1; depth <= names.length; depth++) {
      const parent = names.slice(0, depth).join('/');
      directories.set(parent, parent === 'tmp' ? TEMPORARY_MODE : DIRECTORY_MODE);
    }
    whiteouts.set([...names, `.wh.${name}`].join('/'), []);
  }
  return packFiles(directories, whiteouts);
}

/**
 * A layer with `configs/<package>/catalog.json` for each package and `configs/catalog.json` for documents
 * without a package. Documents are in the order package, channels, bundles, deprecations, others, and within
 * these as in `filtered`. Its bytes depend only on the arguments and the files. Holds the layer in memory
 * twice, so at most 1 GiB.
 *
 * @param directory from which `source` was read
 */
export async function packCatalog(
  directory: string,
  { source, filtered }: { readonly source: Catalog; readonly filtered: Catalog },
): Promise<Buffer> {
  const documents = planDocuments(source, filtered);
  const edits = new Map([...documents.values()].flat().map(({ place, edit }) => [place, edit]));
  const encoded = new Map<CatalogPlace, Buffer>();
  let size = 0;
  await readDocuments(directory, edits.keys(), (bytes, place) => {
    const document = encodeDocument(bytes, place, edits.get(place));
    size += document.length;
    if (size > MAX_LAYER_SIZE) throw tooLarge(size);
    encoded.set(place, document);
  });
  const directories = new Map([[CONFIGS_DIRECTORY, DIRECTORY_MODE]]);
  const files = new Map<string, readonly Buffer[]>();
  for (const [name, placed] of documents) {
    const parent = name === '' ? CONFIGS_DIRECTORY : `${CONFIGS_DIRECTORY}/${name}`;
    directories.set(parent, DIRECTORY_MODE);
    const content = placed.flatMap(({ place }) => [encoded.get(place), NEWLINE]);
    files.set(
      `${parent}/catalog.json`,
      content.filter((part) => part !== undefined),
    );
  }
  return packFiles(directories, files);
}

/** The documents of each package; '' for documents without a package. */
function planDocuments(source: Catalog, filtered: Catalog): Map<string, PlacedDocument[]> {
  const documents = new Map<string, PlacedDocument[]>();
  const add = (name: string, document: PlacedDocument): void => {
    const known = documents.get(name);
    if (known) known.push(document);
    else documents.set(checkName(name), [document]);
  };
  const packages = indexByPlace(source.packages);
  const channels = indexByPlace(source.channels);
  const deprecations = indexByPlace(source.deprecations);
  for (const one of filtered.packages) {
    add(one.name, { place: one.place, edit: editPackage(originOf(packages, one), one) });
  }
  for (const one of filtered.channels) {
    add(one.package, { place: one.place, edit: editChannel(originOf(channels, one), one) });
  }
  for (const one of filtered.bundles) add(one.package, { place: one.place, edit: undefined });
  for (const one of filtered.deprecations) {
    add(one.package, {
      place: one.place,
      edit: editDeprecations(originOf(deprecations, one), one),
    });
  }
  for (const one of filtered.others) add(one.package ?? '', { place: one.place, edit: undefined });
  return documents;
}

type Placed = { readonly place: CatalogPlace };

const indexByPlace = <Item extends Placed>(items: readonly Item[]): Map<string, Item> =>
  new Map(items.map((item) => [placeKey(item), item]));

function originOf<Item extends Placed>(items: ReadonlyMap<string, Item>, item: Item): Item {
  const origin = items.get(placeKey(item));
  if (origin) return origin;
  throw new RangeError(`${placeKey(item)} is not a document of the source catalog`);
}

const placeKey = ({ place }: Placed): string => `byte ${place.offset} of ${place.file}`;

/** The file name `catalog.json` is reserved for documents without a package. */
function checkName(name: string): string {
  if (name === '' || (PACKAGE_NAME.test(name) && name !== 'catalog.json')) return name;
  throw new ConfigError(
    'catalog.package-name',
    `package ${JSON.stringify(name.slice(0, 300))} cannot be the name of a directory in a rebuilt catalog`,
    { hint: 'leave the package out of the selection' },
  );
}

const tooLarge = (size: number): ConfigError =>
  new ConfigError(
    'catalog.too-large',
    `rebuilt catalog has at least ${size} bytes, but at most ${MAX_LAYER_SIZE} can be packed`,
    { expected: `at most ${MAX_LAYER_SIZE} bytes`, found: `${size} bytes` },
  );
