import type { Digest } from '../../base/digest.ts';
import { digestRange, type RandomAccess } from '../../base/random-access.ts';
import type { VerifyOptions } from '../verify-contents.ts';
import { type Findings, guard } from '../verify-findings.ts';
import { describeDelta } from './describe.ts';
import { digestOfBody, readDeltaHead } from './file.ts';
import { isWholePart, readPartHead } from './part.ts';

type Work = { readonly findings: Findings; readonly options: VerifyOptions };

/** Compares with the digests in the head, which deltas of earlier versions do not have. */
export async function verifyDelta(file: RandomAccess, { findings, options }: Work): Promise<void> {
  const delta = await guard('structure', findings, () => describeDelta(file));
  if (!delta) return;
  findings.delta = delta;
  const proven =
    delta.kind === 'delta' ? await hasBody(file, options) : await isPart(file, options);
  if (proven === undefined) return;
  findings.hasProof = true;
  findings.coverage.addAll();
  findings.checked = { extents: 1, bytes: file.size, images: 0 };
  if (proven) return;
  const problem = 'has other bytes than its head says';
  findings.report({ kind: 'content', problem, offset: 0, size: file.size });
}

async function isPart(file: RandomAccess, options: VerifyOptions): Promise<boolean> {
  const part = await readPartHead(file);
  return part !== undefined && isWholePart(file, part, watch(options, file, part.start));
}

/** True if the body has the digest that its head names; undefined if that names none. */
async function hasBody(file: RandomAccess, options: VerifyOptions): Promise<boolean | undefined> {
  const { body, start } = await readDeltaHead(file);
  if (!body) return undefined;
  const digests: Digest[] = [];
  let offset = start;
  for (const size of body.sizes) {
    digests.push(await digestRange(file.read, { offset, size }, watch(options, file, offset)));
    offset += size;
  }
  return digestOfBody(digests) === body.digest;
}

/** Reports the progress of a range as that of the file. */
const watch = (
  { signal, onProgress }: VerifyOptions,
  { size }: RandomAccess,
  start: number,
): Parameters<typeof digestRange>[2] => ({
  signal,
  onProgress: (bytes) => {
    onProgress(start + bytes, size);
  },
});
