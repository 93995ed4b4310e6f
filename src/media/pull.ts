import type { Digest } from '../base/digest.ts';
import { IntegrityError } from '../base/errors.ts';
import { type BlobSource, readBlob } from '../base/store/blob-source.ts';
import { type Extent, fillGaps, type Layout } from '../iso/index.ts';
import { requireSpace } from '../openshift/mirror/costs.ts';
import { fetchArtifact } from '../outputs/artifact.ts';
import type { IsoArtifact } from '../outputs/artifact/manifest.ts';
import { publishIso } from '../outputs/file.ts';
import { type ExtentOpener, pourIso, type PourOptions, surveyPartial } from '../pour/index.ts';
import { formatReference, type Reference, type RegistryClient } from '../registry/index.ts';
import { readIndex } from './media-index.ts';
import { describeDamage, useMedium } from './open.ts';

export type PullOptions = Pick<PourOptions, 'output' | 'signal' | 'warn'> & {
  readonly client: RegistryClient;
  /** Sources tried before the registry; their bytes are verified. */
  readonly seeds: readonly BlobSource[];
  readonly onProgress: (bytes: number, total: number) => void;
};

/** Sizes are bytes. */
export type PullReport = {
  /** SHA-256 of the ISO. */
  readonly digest: Digest;
  readonly size: number;
  /** Digest of the manifest or index that the reference names. */
  readonly manifest: Digest;
  /** Bytes fetched over the network in this run. */
  readonly fetched: number;
  /** Bytes copied from seeds. */
  readonly copied: number;
  /** Bytes already in the interrupted output. */
  readonly reused: number;
};

const LANES = 4;

/**
 * Verifies every byte; continues an interrupted run.
 *
 * @throws IntegrityError `artifact.not-ours`, `artifact.malformed`, `artifact.wrong-digest`;
 * RegistryError; the errors of `pourIso`
 */
export async function pullIso(reference: Reference, options: PullOptions): Promise<PullReport> {
  const { client, seeds, output, signal, warn, onProgress } = options;
  const { artifact, manifest } = await fetchArtifact(reference, options);
  const layout = layOut(artifact);
  const { allocated } = await surveyPartial(layout, output);
  await requireSpace({ output, allocated, isoSize: layout.size, cacheSize: 0 });
  const { digest, fetched, copied, reused } = await pourIso({
    output,
    signal,
    ...(warn && { warn }),
    layout,
    lanes: LANES,
    mode: artifact.isPrivate ? 0o600 : 0o644,
    openExtent: createOpener([...seeds, ...client.sourcesOf(reference)]),
    onProgress(bytes) {
      onProgress(bytes, layout.size);
    },
  });
  if (artifact.digest !== undefined && artifact.digest !== digest) {
    throw wrongDigest(reference, artifact.digest, digest);
  }
  await requireIndex(reference, artifact, output);
  await publishIso(output, { digest });
  return { digest, size: layout.size, manifest, fetched, copied, reused };
}

const STORED = { source: { kind: 'blob' }, paths: [] } as const;

const layOut = ({ parts, size }: IsoArtifact): Layout => ({
  size,
  extents: fillGaps(
    parts.map((part): Extent => ({ ...part, ...STORED })),
    size,
  ),
});

/** Always returns the same source objects: sources of wrong bytes are tracked by identity. */
const createOpener =
  (sources: readonly BlobSource[]): ExtentOpener =>
  async ({ digest, size, offset: at }, options) => {
    if (digest === undefined) throw new Error(`the extent at byte ${at} has no digest`);
    const blob = { mediaType: 'application/octet-stream', digest, size };
    const ranked = options.rank(sources);
    let tried = 0;
    for (const source of ranked) {
      if (!source.fileOf) break;
      const found = await source.fileOf(blob);
      if (found) {
        const { path, position } = found;
        return { kind: 'file', path, position: position + options.offset, source };
      }
      tried += 1;
    }
    return { kind: 'stream', chunks: readBlob(ranked.slice(tried), blob, options) };
  };

/** Requires the index that was pushed, because layers that match their manifest need not form its ISO. */
async function requireIndex(
  reference: Reference,
  { index: expected }: IsoArtifact,
  output: string,
): Promise<void> {
  let found: string | undefined;
  try {
    found = (await useMedium(`${output}.partial`, readIndex))?.digest;
  } catch (error) {
    found = describeDamage(error);
    if (found === undefined) throw error;
  }
  if (found !== expected) throw wrongDigest(reference, expected, found ?? 'no index');
}

const wrongDigest = (reference: Reference, expected: string, found: string): IntegrityError =>
  new IntegrityError(
    'artifact.wrong-digest',
    `the layers of ${formatReference(reference)} do not make the ISO that was pushed`,
    { expected, found, hint: 'push the ISO again' },
  );
