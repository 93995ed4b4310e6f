import { ConfigError } from '../../base/errors.ts';
import { isObject, objectOrEmpty, withoutUndefined } from '../../base/lists.ts';
import { decodeUserText } from '../../base/text/utf8.ts';
import { pathTo, readReference } from '../../registry/index.ts';
import { parse } from '../../shape/parse-text.ts';
import { planDestination } from '../mirror/sets.ts';
import type { WorkspaceFiles } from './files.ts';

/*
 * The contents of archives of mirrorToDisk, by the image set configurations in them. oc-mirror writes no
 * resources for the cluster before the archives reach a registry.
 */

export type ArchivedCatalog = {
  /** Name in the image set configuration. */
  readonly name: string;
  readonly repository: string;
  /** Tag that diskToMirror gives it. */
  readonly tag: string;
  /** Tag in the archives: a filtered catalog is tagged with a digest of its filter. */
  readonly storedTag: string;
};

export type ArchivedImage = {
  readonly name: string;
  readonly repository: string;
  /** Its tag in the archives, if it is found by tag. */
  readonly tag?: string;
};

/** Plain JSON. */
export type ArchivedSet = {
  readonly catalogs: readonly ArchivedCatalog[];
  readonly images: readonly ArchivedImage[];
};

type Entry = Readonly<Record<string, unknown>>;

/** The last configuration of a catalog counts. */
export function readArchivedSet(
  files: WorkspaceFiles,
  modified: (path: string) => number | undefined,
): ArchivedSet {
  const sets = files
    .list('')
    .filter((name) => name.startsWith('isc_'))
    .map((name) => readImageSet(files, name));
  const catalogs = sets.flatMap(({ operators }) =>
    listEntries(operators).flatMap((entry) => readCatalogEntry(entry, { files, modified })),
  );
  const images = sets.flatMap(({ additionalImages }) =>
    listEntries(additionalImages).flatMap(readImage),
  );
  return {
    catalogs: [...new Map(catalogs.map((one) => [`${one.repository}:${one.tag}`, one])).values()],
    images: [...new Map(images.map((one) => [`${one.name} ${one.repository}`, one])).values()],
  };
}

function readImageSet(files: WorkspaceFiles, file: string): Entry {
  const { bytes, name } = files.read(file);
  try {
    return objectOrEmpty(objectOrEmpty(parse(decodeUserText(bytes, name)))['mirror']);
  } catch (cause) {
    throw new ConfigError('workspace.malformed', `${name} is not YAML`, {
      cause,
      hint: 'copy the archives again',
    });
  }
}

const listEntries = (value: unknown): readonly Entry[] =>
  Array.isArray(value) ? value.filter(isObject) : [];

const textOf = (entry: Entry, name: string): string | undefined => {
  const value = entry[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
};

function readImage(entry: Entry): readonly ArchivedImage[] {
  const name = (textOf(entry, 'name') ?? '').replace(/^docker:\/\//, '');
  const reference = readReference(name);
  if (!reference) return [];
  const repository = textOf(entry, 'targetRepo');
  const tag = textOf(entry, 'targetTag');
  const place = planDestination(reference, withoutUndefined({ repository, tag }));
  return [{ name, repository: place.repository, ...withoutUndefined({ tag: place.tags[0] }) }];
}

type Cache = {
  readonly files: WorkspaceFiles;
  readonly modified: (path: string) => number | undefined;
};

function readCatalogEntry(entry: Entry, cache: Cache): readonly ArchivedCatalog[] {
  const name = (textOf(entry, 'catalog') ?? '').replace(/^docker:\/\//, '');
  const place = placeCatalogEntry(entry, name);
  if (!place) return [];
  const isFull = entry['full'] === true && listEntries(entry['packages']).length === 0;
  const { repository, tag } = place;
  const component = lastOf(name).replace(/[@:][^]*$/, '');
  const storedTag = isFull ? tag : (findFiltered({ component, repository, tag }, cache) ?? tag);
  return [{ name, repository, tag, storedTag }];
}

const lastOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

/** oc-mirror's place of a catalog; one of an OCI layout has the name of its directory. */
function placeCatalogEntry(
  entry: Entry,
  name: string,
): { readonly repository: string; readonly tag: string } | undefined {
  const target = withoutUndefined({
    repository: textOf(entry, 'targetCatalog'),
    tag: textOf(entry, 'targetTag'),
  });
  if (name.startsWith('oci:')) {
    const repository = target.repository ?? lastOf(name.replace(/(?<!\/)\/+$/, ''));
    return { repository, tag: target.tag ?? 'latest' };
  }
  const reference = readReference(name);
  if (!reference) return undefined;
  const { repository, tags } = planDestination(reference, target);
  return { repository, tag: tags[0] ?? 'latest' };
}

/** The tag of the last filter of a catalog, whose tag names the original in the archives. */
function findFiltered(
  { component, repository, tag }: Readonly<Record<'component' | 'repository' | 'tag', string>>,
  { files, modified }: Cache,
): string | undefined {
  const linkOf = (tag: string): string => pathTo.tagLink(repository, tag);
  const tags = files.list(pathTo.tags(repository)).filter((name) => FILTER.test(name));
  const original = tag.startsWith('sha256-')
    ? tag.slice('sha256-'.length)
    : readHex(files, linkOf(tag), tag);
  const folder = `working-dir/operator-catalogs/${component}/${original ?? ''}/filtered-catalogs`;
  const known = new Set(files.list(folder));
  const own = tags.filter((name) => known.has(name));
  const candidates = own.length > 0 ? own : tags;
  const timeOf = (name: string): number => modified(linkOf(name)) ?? 0;
  return candidates.toSorted((a, b) => timeOf(b) - timeOf(a))[0];
}

/** MD5 of the entry of a catalog, which oc-mirror takes for the tag of a filtered catalog. */
const FILTER = /^[0-9a-f]{32}$/;

function readHex(files: WorkspaceFiles, link: string, tag: string): string | undefined {
  const folder = link.slice(0, link.lastIndexOf(`/${tag}/`));
  if (!files.list(folder).includes(tag)) return undefined;
  return files.read(link).bytes.toString('latin1').replace('sha256:', '');
}
