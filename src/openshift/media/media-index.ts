import { isDigest, type Digest } from '../../base/digest.ts';
import { IntegrityError } from '../../base/errors.ts';
import { INDEX_PATH } from './media-paths.ts';

/** One run of bytes of the medium, as its index tells. */
export type IndexExtent = {
  readonly offset: number;
  readonly size: number;
  /** Absent for the index itself. */
  readonly digest?: Digest;
  readonly paths: readonly string[];
};

export type IndexImage = {
  readonly name: string;
  readonly set: string;
  readonly source: string;
  readonly repository: string;
  readonly tags: readonly string[];
  readonly manifests: readonly string[];
};

/** `/sealift/index.json`: what the medium says of itself. */
export type MediaIndex = {
  readonly format: 1;
  readonly product: string;
  readonly base: { readonly digest: string; readonly size: number };
  readonly release: {
    readonly version: string;
    readonly reference: string;
    readonly architecture: string;
  };
  readonly images: readonly IndexImage[];
  readonly extents: readonly IndexExtent[];
};

/** @throws IntegrityError `index.malformed`, `index.format` */
export function parseMediaIndex(bytes: Uint8Array): MediaIndex {
  const document = parse(bytes);
  if (document['format'] !== 1) {
    throw new IntegrityError('index.format', `${INDEX_PATH} has a format we do not know`, {
      expected: '1',
      found: JSON.stringify(document['format'] ?? null),
      hint: 'use a newer sealift',
    });
  }
  const { release, base, product } = document;
  if (!isTexts(release, ['version', 'reference', 'architecture'])) throw malformed();
  if (!isTexts(base, ['digest']) || typeof product !== 'string') throw malformed();
  if (!Array.isArray(document['extents']) || !Array.isArray(document['images'])) throw malformed();
  if (!(document['images'] as unknown[]).every(isImage)) throw malformed();
  const extents = (document['extents'] as unknown[]).map(parseExtent);
  return { ...(document as unknown as MediaIndex), extents };
}

function parse(bytes: Uint8Array): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes).toString('utf8'));
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  } catch (cause) {
    throw new IntegrityError('index.malformed', `${INDEX_PATH} is not JSON`, { cause });
  }
  throw malformed();
}

function parseExtent(value: unknown): IndexExtent {
  const extent = value as Partial<Record<keyof IndexExtent, unknown>> | null;
  const { offset, size, digest, paths = [] } = extent ?? {};
  if (!Number.isSafeInteger(offset) || !Number.isSafeInteger(size)) throw malformed();
  if (!Array.isArray(paths)) throw malformed();
  const place = { offset: offset as number, size: size as number, paths: paths as string[] };
  if (typeof digest === 'string' && isDigest(digest)) return { ...place, digest };
  if (digest !== undefined || !isIndexItself(paths)) throw malformed();
  return place;
}

/** The index cannot tell its own digest; whatever else lacks one is damaged. */
const isIndexItself = (paths: readonly unknown[]): boolean =>
  paths.length === 1 && paths[0] === INDEX_PATH;

const malformed = (): IntegrityError =>
  new IntegrityError('index.malformed', `${INDEX_PATH} is not of the form we write`);

const isTexts = (value: unknown, keys: readonly string[]): boolean =>
  typeof value === 'object' &&
  value !== null &&
  keys.every((key) => typeof (value as Record<string, unknown>)[key] === 'string');

function isImage(value: unknown): boolean {
  if (!isTexts(value, ['name', 'set', 'source', 'repository'])) return false;
  const { tags, manifests } = value as { tags?: unknown; manifests?: unknown };
  return [tags, manifests].every(
    (list) => Array.isArray(list) && list.every((item) => typeof item === 'string'),
  );
}
