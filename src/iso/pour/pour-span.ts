import { IntegrityError, RegistryError } from '../../base/errors.ts';
import type { Digest } from '../../base/digest.ts';
import { SpanWriter, type Kept, type LaneTools } from './span-writer.ts';
import type { PourSpan } from './spans.ts';

type StoredSpan = Extract<PourSpan, { kind: 'stored' }>;

/** Writes rendered bytes and padding. */
export async function pourRendered(
  span: Extract<PourSpan, { kind: 'rendered' }>,
  index: number,
  tools: LaneTools,
): Promise<void> {
  const writer = new SpanWriter({ index, span, tools });
  for (const { source, size } of span.extents) {
    await writer.add(source.kind === 'bytes' ? source.bytes : new Uint8Array(size));
  }
  await writer.end();
  tools.isoDigest.verify(index);
}

/**
 * Brings one blob or base extent into the output: what an earlier run left is hashed and compared,
 * the rest comes from the sources in order. A source that gives wrong bytes is not asked again.
 *
 * @throws IntegrityError `extent.wrong-digest`; whatever the opener throws
 */
export async function pourStored(
  options: { readonly span: StoredSpan; readonly index: number; readonly kept: Kept | undefined },
  tools: LaneTools,
): Promise<void> {
  const { span, index } = options;
  const refused = new Set<string>();
  let kept = options.kept;
  let wrong: Outcome | undefined;
  for (;;) {
    const found = await attempt({ span, index, kept, refused }, tools).catch((error: unknown) => {
      if (wrong && error instanceof RegistryError) throw explainWrong(span, wrong, error);
      throw error;
    });
    if (found.digest === span.digest) {
      tools.isoDigest.verify(index);
      return;
    }
    tools.isoDigest.restart(index);
    tools.onBytes(-found.delivered);
    if (kept !== undefined) {
      kept = undefined; // the disk did not keep what the journal hoped; the sources are innocent
      continue;
    }
    if (found.source === undefined || refused.has(found.source)) throw explainWrong(span, found);
    refused.add(found.source);
    wrong = found;
  }
}

type Outcome = { readonly digest: Digest; readonly source?: string; readonly delivered: number };

async function attempt(
  options: {
    readonly span: StoredSpan;
    readonly index: number;
    readonly kept: Kept | undefined;
    readonly refused: ReadonlySet<string>;
  },
  tools: LaneTools,
): Promise<Outcome> {
  const { span, index, kept, refused } = options;
  const hash = tools.hasher.open();
  const writer = new SpanWriter({ index, span, tools, hash });
  try {
    if (kept && !(await writer.keep(kept))) {
      return { digest: await hash.digest(), delivered: writer.position };
    }
    let source: string | undefined;
    if (writer.position < span.size) {
      const { signal } = tools;
      const opened = await tools.openExtent(span.extent, {
        offset: writer.position,
        refused,
        signal,
      });
      source =
        opened.kind === 'file'
          ? await writer.copyFile(opened)
          : await writer.copyStream(opened.chunks);
    }
    await writer.end();
    const delivered = writer.position;
    return { digest: await hash.digest(), delivered, ...(source !== undefined && { source }) };
  } catch (error) {
    await writer.abandon();
    hash.close();
    throw error;
  }
}

/** @param cause why no other source could be asked */
function explainWrong(span: StoredSpan, found: Outcome, cause?: RegistryError): IntegrityError {
  return new IntegrityError(
    'extent.wrong-digest',
    `${span.extent.paths[0] ?? `extent at byte ${span.offset}`} should be ${span.digest}, ` +
      `but ${found.source ?? 'its source'} gave ${found.digest}`,
    { expected: span.digest, found: found.digest, cause },
  );
}
