import type { Digest } from '../base/digest.ts';
import { type ByteRange, digestRange, type RandomAccess } from '../base/random-access.ts';
import type { IsoImage } from '../iso/index.ts';
import { judgeAreas } from './judge-areas.ts';
import { type MediumAreas, readAreas } from './medium.ts';
import { digestByProof, type Proof, readProof } from './proof.ts';
import type { VerifyOptions } from './verify-contents.ts';
import { type Findings, takeAreas } from './verify-findings.ts';

/** A medium without a proof is left alone. */
export async function verifyByProof(
  image: RandomAccess,
  iso: IsoImage | undefined,
  { findings, options }: { readonly findings: Findings; readonly options: VerifyOptions },
): Promise<void> {
  const proof = await readProof(image);
  if (!proof) return;
  findings.hasProof = true;
  findings.size = Math.max(proof.size, findings.size);
  const whole = { offset: 0, size: proof.size };
  if (proof.size > image.size) {
    const problem = `ends at byte ${image.size} and should have ${proof.size}`;
    findings.report({ kind: 'lost', problem, ...whole });
    return;
  }
  const areas = iso && hasAreas(proof) ? await readAreas(iso, { proof }) : undefined;
  const reading = { read: image.read, ...options, onProgress: options.onProgress };
  const found = await digestByProof(reading, proof, areas ? listPlaces(areas) : []);
  findings.checked = { extents: 1, bytes: proof.size, images: 0 };
  findings.coverage.add([whole]);
  if (found !== proof.digest) {
    const problem = 'has other bytes than its proof says';
    findings.report({ kind: 'content', problem, ...whole, expected: proof.digest, found });
  }
  if (areas) takeAreas(await judgeAreas(areas), findings);
}

const hasAreas = ({ areas }: Proof): boolean => Object.keys(areas).length > 0;

const listPlaces = ({ now }: MediumAreas): readonly ByteRange[] =>
  now.map(({ offset, bytes }) => ({ offset, size: bytes.length }));

/** Even if the medium has an index or a proof. */
export async function verifyByDigest(
  { read, ...image }: RandomAccess,
  expected: Digest,
  { findings, options }: { readonly findings: Findings; readonly options: VerifyOptions },
): Promise<void> {
  // A device is larger than the ISO on it.
  const size = image.isDevice === true ? findings.size : image.size;
  const { signal, onProgress } = options;
  const whole = { offset: 0, size };
  const found = await digestRange(read, whole, {
    signal,
    onProgress: (bytes) => {
      onProgress(bytes, size);
    },
  });
  findings.hasProof = true;
  findings.size = size;
  findings.coverage.addAll();
  findings.checked = { ...findings.checked, bytes: size };
  if (found === expected) return;
  const problem = 'has another SHA-256 than the given one';
  findings.report({ kind: 'content', problem, ...whole, expected, found });
}
