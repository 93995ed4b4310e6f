import { createHash } from 'node:crypto';
import pLimit from 'p-limit';
import { digestFromHex, digestOf, type Digest } from '../../base/digest.ts';
import { bringVerified } from '../../base/download/bring-verified.ts';
import { type Attempt, type Source, type SourceAnswer } from '../../base/download/sources.ts';
import type { IntegrityError } from '../../base/errors.ts';
import { TransientError } from '../../base/http/network-failure.ts';
import type { Extent, Layout } from '../../iso/index.ts';
import { explainWrong, type ExtentChunk, type ExtentOpener } from '../../pour/index.ts';
import type { IsoArtifact } from './manifest.ts';
import { planParts, readPart, type Part, type PlannedPart } from './parts.ts';

export type LayoutToPush = {
  readonly layout: Layout;
  /** Contents of the artifact's annotations. */
  readonly about: Pick<IsoArtifact, 'title' | 'index' | 'version' | 'isPrivate'>;
  readonly openExtent: ExtentOpener;
  /** Small extents read at a time. */
  readonly lanes: number;
  readonly signal: AbortSignal;
};

/** An ISO that is on no disk, ready to be pushed. */
export type OpenedLayout = {
  readonly artifact: IsoArtifact;
  /** The bytes of a part, verified before the last of them. */
  readonly open: (part: Required<Part>) => AsyncIterable<Uint8Array>;
  /** Bytes that were read so far, over the network and on this machine. */
  readonly counters: { fetched: number; copied: number };
};

/**
 * Plans the artifact of a layout. Extents smaller than a layer are read now, since only their bytes give the
 * digest of their layer; the rest is read when the registry does not have it. No process sees all bytes, so
 * there is no checksum of the ISO. An extent is never cut: a layer is as large as the largest of them.
 */
export async function openLayout(iso: LayoutToPush): Promise<OpenedLayout> {
  const { layout, about, signal, openExtent, lanes } = iso;
  const extents = new Map(layout.extents.map((extent) => [extent.offset, extent]));
  const counters = { fetched: 0, copied: 0 };
  const reading: Reading = { openExtent, signal, counters, wrong: new Map() };
  const limit = pLimit(lanes);
  const stored = layout.extents.filter(({ source }) => source.kind !== 'zero');
  const joined = new Map<Digest, Uint8Array>();
  const parts = await Promise.all(
    planParts(stored, Infinity).map(async (part): Promise<Required<Part>> => {
      const { offset, size, digest } = part;
      if (digest !== undefined) return { offset, size, digest };
      const bytes = await limit(() => joinExtents(part, extents, reading));
      const found = digestOf(bytes);
      joined.set(found, bytes);
      return { offset, size, digest: found };
    }),
  );
  return {
    artifact: { ...about, size: layout.size, parts },
    counters,
    open({ offset, digest }) {
      const bytes = joined.get(digest);
      if (bytes) return piecesOf(bytes);
      const extent = extents.get(offset);
      if (!extent) throw new Error(`no extent begins at byte ${offset}`);
      return readVerified(extent, digest, reading);
    },
  };
}

type Reading = Pick<LayoutToPush, 'openExtent' | 'signal'> &
  Pick<OpenedLayout, 'counters'> & {
    /** Sources that gave wrong bytes, by object. */
    readonly wrong: Map<Digest, Map<Source, SourceAnswer>>;
  };

async function joinExtents(
  { offset, size, extents: small = [] }: PlannedPart,
  extents: ReadonlyMap<number, Extent>,
  reading: Reading,
): Promise<Uint8Array> {
  const bytes = new Uint8Array(size);
  for (const { offset: at } of small) {
    const extent = extents.get(at);
    if (extent) bytes.set(await readSmall(extent, reading), at - offset);
  }
  return bytes;
}

async function readSmall(extent: Extent, reading: Reading): Promise<Uint8Array> {
  if (extent.source.kind === 'bytes') return extent.source.bytes;
  const bytes = new Uint8Array(extent.size);
  await bringVerified(async (attempt) => {
    const used = new Set<Source>();
    for await (const chunk of readChunks(extent, attempt, reading)) {
      used.add(chunk.source);
      bytes.set(chunk.bytes, chunk.offset);
    }
    const found = digestOf(bytes);
    if (found === extent.digest) return undefined;
    return { used, hasPrefix: false, error: explainWrong(extent, found, used) };
  }, reading.signal);
  return bytes;
}

/**
 * Holds back the last piece of a large extent until the digest is verified. Wrong bytes, or a source that
 * starts over, end the request; the next request asks others.
 */
async function* readVerified(
  extent: Extent,
  digest: Digest,
  reading: Reading,
): AsyncGenerator<Uint8Array> {
  if (extent.source.kind === 'bytes') {
    yield extent.source.bytes;
    return;
  }
  const wrong = reading.wrong.get(digest) ?? new Map<Source, SourceAnswer>();
  reading.wrong.set(digest, wrong);
  const attempt: Omit<Attempt, 'usePrefix'> = {
    rank: (sources) => sources.filter((source) => !wrong.has(source)),
    isSuspect: (source) => wrong.has(source),
    answers: [...wrong.values()],
  };
  const hash = createHash('sha256');
  const used = new Set<Source>();
  let at = 0;
  let last: Uint8Array | undefined;
  for await (const { offset, bytes, source } of readChunks(extent, attempt, reading)) {
    if (offset !== at) throw again(`${source.name} starts ${digest} over`);
    used.add(source);
    hash.update(bytes);
    at += bytes.length;
    if (last) yield last;
    last = bytes;
  }
  const found = digestFromHex(hash.digest('hex'));
  if (found !== digest) {
    const error = explainWrong(extent, found, used);
    for (const source of used) wrong.set(source, { source: source.name, error });
    throw again(error.message, error);
  }
  if (last) yield last;
}

const again = (message: string, cause?: IntegrityError): TransientError =>
  new TransientError('registry.upload-lost', message, { answered: true, ...(cause && { cause }) });

async function* readChunks(
  extent: Extent,
  { rank, isSuspect, answers }: Omit<Attempt, 'usePrefix'>,
  { openExtent, signal, counters }: Reading,
): AsyncGenerator<ExtentChunk> {
  const opened = await openExtent(extent, { offset: 0, signal, rank, isSuspect, answers });
  const chunks = opened.kind === 'stream' ? opened.chunks : readFile(opened, extent);
  for await (const chunk of chunks) {
    counters[chunk.source.local ? 'copied' : 'fetched'] += chunk.bytes.length;
    yield chunk;
  }
}

async function* readFile(
  { path, position, source }: { path: string; position: number; source: Source },
  { size }: Extent,
): AsyncGenerator<ExtentChunk> {
  let offset = 0;
  for await (const bytes of readPart(path, { offset: position, size })) {
    yield { offset, bytes, source };
    offset += bytes.length;
  }
}

async function* piecesOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(bytes);
}
