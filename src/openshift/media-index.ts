import { isDigest, type Digest } from '../base/digest.ts';
import { IntegrityError } from '../base/errors.ts';
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
  if (!Array.isArray(document['extents']) || !Array.isArray(document['images'])) throw malformed();
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
  const isSound =
    Number.isSafeInteger(offset) &&
    Number.isSafeInteger(size) &&
    Array.isArray(paths) &&
    (digest === undefined || (typeof digest === 'string' && isDigest(digest)));
  if (!isSound) throw malformed();
  return {
    offset: offset as number,
    size: size as number,
    paths: paths as string[],
    ...(digest !== undefined && { digest: digest }),
  };
}

const malformed = (): IntegrityError =>
  new IntegrityError('index.malformed', `${INDEX_PATH} is not of the form we write`);
