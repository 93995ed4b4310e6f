import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Digest } from '../base/digest.ts';
import { ConfigError } from '../base/errors.ts';
import type { IsoImage, Layout } from '../iso/index.ts';
import type { IsoArtifact } from '../outputs/artifact/manifest.ts';
import {
  measureParts,
  planParts,
  readPart,
  type Part,
  type PlannedPart,
} from '../outputs/artifact/parts.ts';
import { formatReference, parseReference, type Reference } from '../registry/index.ts';
import { listCarriedSecrets } from './carried-secrets.ts';
import { readImageContents } from './contents.ts';
import { INDEX_PATH, parseMediaIndex, readIndex, type MediaIndex } from './media-index.ts';
import { useMedium } from './open.ts';
import { noIndex } from './proof.ts';

/** Our ISO, verified and ready to be pushed. */
export type ReadIso = {
  readonly artifact: IsoArtifact;
  /** Original repositories of the images that contain a blob, as `registry/repository`. */
  readonly sourcesOf: (blob: Digest) => readonly Reference[];
  readonly open: (part: Part) => AsyncIterable<Uint8Array>;
};

type PushWork = {
  readonly signal: AbortSignal;
  readonly onProgress: (bytes: number, total: number) => void;
  /** Called with the kinds of secrets on the ISO before it is read, if there are any; may refuse them. */
  readonly onSecrets?: (kinds: readonly string[]) => void;
};

/** @throws IntegrityError `artifact.no-index`, `artifact.damaged`; the errors of `useMedium` */
export async function readIsoToPush(
  path: string,
  { signal, onProgress, onSecrets }: PushWork,
): Promise<ReadIso> {
  const { parts: planned, sources, secrets, ...about } = await readPushed(path);
  if (secrets.length > 0) onSecrets?.(secrets);
  const { mode, size } = await stat(path);
  const { digest, parts } = await measureParts(path, planned, {
    signal,
    onProgress(bytes) {
      onProgress(bytes, size);
    },
  });
  const isPrivate = secrets.length > 0 || (mode & 0o004) === 0;
  return {
    artifact: { title: basename(path), ...about, size, digest, isPrivate, parts },
    sourcesOf: (blob) => sources.get(blob) ?? [],
    open: (part) => readPart(path, part),
  };
}

type PushedIso = Pick<IsoArtifact, 'index' | 'version'> & {
  readonly parts: readonly PlannedPart[];
  readonly sources: ReadonlyMap<Digest, readonly Reference[]>;
  readonly secrets: readonly string[];
};

function readPushed(path: string): Promise<PushedIso> {
  return useMedium(path, async (iso) => {
    const index = await readIndex(iso);
    if (!index?.digest) throw await noIndex(iso, 'artifact.no-index');
    const extents = index.extents.toSorted((a, b) => a.offset - b.offset);
    return {
      index: index.digest,
      version: index.release.version,
      sources: await findSources(iso, index),
      secrets: await listCarriedSecrets(iso, index),
      parts: planParts(extents),
    };
  });
}

async function findSources(iso: IsoImage, index: MediaIndex): Promise<PushedIso['sources']> {
  const sources = new Map<Digest, Map<string, Reference>>();
  for await (const { image, extents } of readImageContents(iso, index)) {
    const source = repositoryOf(image.source);
    if (!source) continue;
    for (const { digest } of extents) {
      if (digest === undefined) continue;
      const known = sources.get(digest) ?? new Map<string, Reference>();
      sources.set(digest, known.set(formatReference(source), source));
    }
  }
  return new Map([...sources].map(([digest, known]) => [digest, [...known.values()]]));
}

/** The description of a medium for its artifact, from a layout with an index. */
export function describeLayout({ extents }: Layout): Pick<IsoArtifact, 'index' | 'version'> {
  const source = extents.find(({ paths }) => paths.includes(INDEX_PATH))?.source;
  if (source?.kind !== 'bytes') throw new Error('the layout has no index');
  const { digest = '', release } = parseMediaIndex(source.bytes);
  return { index: digest, version: release.version };
}

/** Parses a source; undefined if it is not a reference, which only an index of another tool has. */
function repositoryOf(source: string): Reference | undefined {
  try {
    const { registry, repository } = parseReference(source);
    return { registry, repository };
  } catch (error) {
    if (error instanceof ConfigError) return undefined;
    throw error;
  }
}
