import type { Digest } from '../../base/digest.ts';
import { formatCanonicalJson } from '../../base/text/json.ts';
import { digestOf } from '../../base/digest.ts';
import { IntegrityError } from '../../base/errors.ts';
import type { Extent, Layout } from '../extent.ts';
import type { Span } from './frontier.ts';

/** What one lane pours at a time. */
export type PourSpan = Span &
  (
    | { readonly kind: 'stored'; readonly extent: Extent; readonly digest: Digest }
    /** Rendered bytes and padding that lie together: written in one go, never resumed. */
    | { readonly kind: 'rendered'; readonly extents: readonly Extent[] }
  );

/**
 * Cuts a layout into spans: each blob and base extent alone, neighbouring rendered ones together.
 *
 * @throws IntegrityError `layout.malformed` where extents do not cover the ISO, or lack a digest
 */
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

/** Names a layout: two are the same when every byte of their outputs is. */
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
