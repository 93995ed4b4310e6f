import { createHash } from 'node:crypto';
import { digestFromHex, type Digest } from '../base/digest.ts';
import type { RandomAccess } from '../base/random-access.ts';
import { type IsoImage, readKargAreas, findEmbedArea } from '../iso/index.ts';
import { hasInstallation } from '../openshift/installation/ignition.ts';
import type { OverlayPart } from './areas.ts';
import { planBuilt, readBuilt } from './built.ts';
import { judgeArea, type JudgedArea } from './judge-areas.ts';
import {
  digestAreas,
  digestByProof,
  type PlacedArea,
  type Proof,
  type ProvenArea,
  readProof,
} from './proof.ts';
import type { VerifyOptions } from './verify-contents.ts';
import { type Findings, takeAreas } from './verify-findings.ts';

/** Compares a medium with the proof in its volume descriptor; a medium without a proof is left alone. */
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
  const areas = iso ? await placeAreasOf(iso, proof) : [];
  const reading = { read: image.read, ...options, onProgress: options.onProgress };
  const found = await digestByProof(reading, proof, areas);
  findings.checked = { extents: 1, bytes: proof.size, images: 0 };
  findings.coverage.add([whole]);
  if (found !== proof.digest) {
    const problem = 'has other bytes than its proof says';
    findings.report({ kind: 'content', problem, ...whole, expected: proof.digest, found });
  }
  takeAreas(
    await judgeProven(image, { proof, areas, carried: await readCarriedParts(iso) }),
    findings,
  );
}

/** Compares a medium with the digest that its maker published, even if it has an index or a proof. */
export async function verifyByDigest(
  { read, ...image }: RandomAccess,
  expected: Digest,
  { findings, options }: { readonly findings: Findings; readonly options: VerifyOptions },
): Promise<void> {
  // A device is larger than the ISO on it.
  const size = image.isDevice === true ? findings.size : image.size;
  const hash = createHash('sha256');
  for (let at = 0; at < size; at += PIECE) {
    options.signal.throwIfAborted();
    hash.update(await read(at, Math.min(PIECE, size - at)));
    options.onProgress(Math.min(size, at + PIECE), size);
  }
  const found = digestFromHex(hash.digest('hex'));
  findings.hasProof = true;
  findings.size = size;
  findings.coverage.addAll();
  findings.checked = { ...findings.checked, bytes: size };
  if (found === expected) return;
  const problem = 'has another SHA-256 than the given one';
  findings.report({ kind: 'content', problem, offset: 0, size, expected, found });
}

const PIECE = 4 * 2 ** 20;

/** Places of the areas that the proof names, from the files of the medium, which the proof covers. */
async function placeAreasOf(iso: IsoImage, { areas }: Proof): Promise<readonly PlacedArea[]> {
  const embed = areas.ignition && (await findEmbedArea(iso));
  const { areas: menus = [], size = 0 } = areas[KARGS] ? await readKargAreas(iso) : {};
  return [
    ...(embed ? [{ kind: 'ignition' as const, offset: embed.offset, size: embed.size }] : []),
    ...menus.map(({ offset }) => ({ kind: KARGS, offset, size })),
  ].sort((a, b) => a.offset - b.offset);
}

const KARGS = 'kernel-arguments' as const;

/** The areas as the build left them, if the medium still carries them. */
async function readCarriedParts(iso: IsoImage | undefined): Promise<readonly OverlayPart[]> {
  const built = iso && (await readBuilt(iso));
  return iso && typeof built === 'object' ? planBuilt(iso, built) : [];
}

type Proven = {
  readonly proof: Proof;
  readonly areas: readonly PlacedArea[];
  readonly carried: readonly OverlayPart[];
};

async function judgeProven(
  { read }: RandomAccess,
  { proof: { areas: built }, areas, carried }: Proven,
): Promise<readonly JudgedArea[]> {
  const now = await digestAreas({ read }, areas);
  const isBuilt = (kind: ProvenArea): boolean => now[kind] === built[kind];
  return Promise.all(
    areas.map(async ({ kind, offset, size }) => {
      const part: OverlayPart = { offset, bytes: await read(offset, size) };
      const left = isBuilt(kind) ? part : carried.find((each) => each.offset === offset);
      const known = { kind, ...(left && { built: left }) };
      return judgeArea(part, known, hasInstallation);
    }),
  );
}
