import { isDeepStrictEqual } from 'node:util';
import { IntegrityError } from '../base/errors.ts';
import { isObject } from '../base/lists.ts';
import { foldCase } from '../shape/keys.ts';
import { findValue } from '../shape/go-json.ts';
import type {
  CatalogChannel,
  CatalogDeprecations,
  CatalogPackage,
  ChannelEntry,
  CatalogPlace,
} from './catalog.ts';
import { parsePiece } from './read/yaml.ts';

/** Changes a parsed document in place, and leaves unknown members unchanged. */
export type EditDocument = (document: Record<string, unknown>) => void;

/**
 * A document for a new catalog: byte for byte if it is JSON and nothing changes, else as JSON on one line.
 *
 * @throws IntegrityError `catalog.changed` if the document changed since it was read
 */
export function encodeDocument(
  bytes: Buffer,
  place: CatalogPlace,
  edit: EditDocument | undefined,
): Buffer {
  if (place.syntax === 'json' && edit === undefined) return bytes;
  const [piece] = parsePiece(bytes);
  const value = piece && 'value' in piece.result ? piece.result.value : undefined;
  if (!isObject(value)) {
    throw new IntegrityError(
      'catalog.changed',
      `document ${place.number} of ${place.file} changed after it was read`,
      { hint: 'leave the catalog alone while it is in use' },
    );
  }
  edit?.(value);
  return Buffer.from(JSON.stringify(value));
}

/** The edit that turns the source's package into the filtered one; undefined if they are equal. */
export function editPackage(
  source: CatalogPackage,
  filtered: CatalogPackage,
): EditDocument | undefined {
  const { defaultChannel } = filtered;
  if (source.defaultChannel === defaultChannel) return undefined;
  return (document) => {
    setValue(document, 'defaultChannel', defaultChannel);
  };
}

export function editChannel(
  source: CatalogChannel,
  filtered: CatalogChannel,
): EditDocument | undefined {
  if (isDeepStrictEqual(source.entries, filtered.entries)) return undefined;
  return (document) => {
    const written = new Map(
      readEntries(document).map((entry) => [findValue(entry, 'name'), entry]),
    );
    const before = new Map(source.entries.map((entry) => [entry.name, entry]));
    const entries = filtered.entries.map((entry) => {
      const raw = written.get(entry.name) ?? { name: entry.name };
      return isDeepStrictEqual(before.get(entry.name), entry) ? raw : editEntry(raw, entry);
    });
    setValue(document, 'entries', entries);
  };
}

export function editDeprecations(
  source: CatalogDeprecations,
  filtered: CatalogDeprecations,
): EditDocument | undefined {
  if (isDeepStrictEqual(source.entries, filtered.entries)) return undefined;
  const selected = new Set(
    filtered.entries.map(({ reference }) => keyOf(reference.schema, reference.name)),
  );
  return (document) => {
    const entries = readEntries(document).filter((entry) => {
      const reference = findValue(entry, 'reference');
      if (!isObject(reference)) return false;
      return selected.has(keyOf(findValue(reference, 'schema'), findValue(reference, 'name')));
    });
    setValue(document, 'entries', entries);
  };
}

function editEntry(
  raw: Record<string, unknown>,
  { replaces, skips, skipRange }: ChannelEntry,
): Record<string, unknown> {
  const entry = { ...raw };
  setValue(entry, 'replaces', replaces);
  setValue(entry, 'skips', skips);
  setValue(entry, 'skipRange', skipRange);
  return entry;
}

function readEntries(document: Record<string, unknown>): Record<string, unknown>[] {
  const entries = findValue(document, 'entries');
  return Array.isArray(entries) ? entries.filter(isObject) : [];
}

/** Sets the value under the key as written, regardless of its case; undefined removes it. */
function setValue(object: Record<string, unknown>, key: string, value: unknown): void {
  const folded = foldCase(key);
  const written = Object.keys(object).find((one) => foldCase(one) === folded) ?? key;
  if (value === undefined) Reflect.deleteProperty(object, written);
  else object[written] = value;
}

const keyOf = (schema: unknown, name: unknown): string => JSON.stringify([schema, name ?? '']);
