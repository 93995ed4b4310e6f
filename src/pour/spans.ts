import { type Digest, digestOf } from '../base/digest.ts';
import type { Attempt, Source } from '../base/download/sources.ts';
import { IntegrityError } from '../base/errors.ts';
import { formatCanonicalJson } from '../base/text/json.ts';
import type { Extent, Layout } from '../iso/index.ts';
import type { Span, PourFrontier } from './frontier.ts';
import type { Hasher } from './hasher.ts';
import type { OutputFile } from './output-file.ts';

/** Part of an output that one lane pours at a time. */
export type PourSpan = Span &
  (
    | { readonly kind: 'stored'; readonly extent: Extent; readonly digest: Digest }
    /** Adjacent rendered bytes and padding: written in one go, never resumed. */
    | { readonly kind: 'rendered'; readonly extents: readonly Extent[] }
  );

export type ExtentChunk = {
  /** Bytes from the extent's start. An offset of 0 in the middle means that the source starts over. */
  readonly offset: number;
  readonly bytes: Uint8Array;
  readonly source: Source;
};

/** An extent's bytes: in a local file, which is read directly, or as a stream. */
export type OpenExtent =
  | {
      readonly kind: 'file';
      readonly path: string;
      readonly position: number;
      readonly source: Source;
      /** True if an earlier build recorded the digest of these bytes: they are not hashed again. */
      readonly isRecorded?: boolean;
      /** True if others may write to its folder: no link is followed. */
      readonly isListed?: boolean;
    }
  | { readonly kind: 'stream'; readonly chunks: AsyncIterable<ExtentChunk> };

export type OpenExtentOptions = {
  /** Offset in the extent at which to start. */
  readonly offset: number;
  readonly signal: AbortSignal;
  /** Called with the bytes that a source fetches before the extent is in a file. */
  readonly onFetched?: (size: number) => void;
} & Omit<Attempt, 'usePrefix'>;

/** Opens an extent at the sources that `rank` returns; throws if no source has it. */
export type ExtentOpener = (extent: Extent, options: OpenExtentOptions) => Promise<OpenExtent>;

/** Counts of bytes by origin and destination. */
export type PourCounters = { fetched: number; copied: number; reused: number; written: number };

export type LaneTools = {
  /** Memory that buffers are cut from. */
  readonly memory: Buffer;
  readonly hasher: Hasher;
  readonly output: OutputFile;
  readonly frontier: PourFrontier;
  readonly openExtent: ExtentOpener;
  readonly counters: PourCounters;
  readonly notePrefix: (span: number, size: number, digest: Digest) => void;
  readonly signal: AbortSignal;
  readonly onBytes: (size: number) => void;
  readonly waiting: Waiting;
};

/**
 * The time since which a lane waits for bytes of its source, in milliseconds; undefined while it works on some.
 */
export type Waiting = { since: number | undefined };

/** Prefix of a span that an earlier run left in the output. */
export type Reused = { readonly size: number; readonly digest: Digest };

/** Cuts a layout into spans: each blob and base extent alone, neighbouring rendered ones together. */
export function planSpans(layout: Layout): readonly PourSpan[] {
  const spans: PourSpan[] = [];
  let rendered: Extent[] = [];
  let position = 0;
  const closeRendered = (): void => {
    const first = rendered[0];
    if (!first) return;
    const size = rendered.reduce((sum, extent) => sum + extent.size, 0);
    spans.push({ kind: 'rendered', offset: first.offset, size, extents: rendered });
    rendered = [];
  };
  for (const extent of layout.extents) {
    if (extent.offset !== position) refuse(`extents leave a gap or overlap at byte ${position}`);
    position += extent.size;
    if (extent.source.kind === 'bytes' || extent.source.kind === 'zero') {
      rendered.push(extent);
      continue;
    }
    closeRendered();
    const { offset, size, digest } = extent;
    if (digest === undefined) return refuse(`extent at byte ${offset} has no digest`);
    spans.push({ kind: 'stored', offset, size, extent, digest });
  }
  closeRendered();
  if (position !== layout.size) refuse(`extents end at ${position}, the ISO at ${layout.size}`);
  return spans;
}

function refuse(reason: string): never {
  throw new IntegrityError('layout.malformed', reason);
}

/** The digest of a layout: equal digests mean that every byte of the outputs is equal. */
export function digestLayout(layout: Layout): Digest {
  return digestOf(
    formatCanonicalJson({
      size: layout.size,
      extents: layout.extents.map(({ offset, size, digest, source }) => [
        offset,
        size,
        source.kind === 'bytes' ? digestOf(source.bytes) : (digest ?? source.kind),
      ]),
    }),
  );
}
