import { digestOf, type Digest } from '../base/digest.ts';
import { IntegrityError } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import type { ByteRange } from '../base/random-access.ts';
import { type IgnitionConfig, isCheckedXz, parseResolved } from '../ignition/index.ts';
import { findMissingKargs, parseKargs } from '../iso/index.ts';
import { canInstall, hasInstallation } from '../openshift/installation/ignition.ts';
import { decodeEmbedded, type Embedded, encodeEmbedded, type OverlayPart } from './areas.ts';
import { decodeBuilt } from './built.ts';
import { type AreaBytes, type AreaKind, isFileArea, planContents } from './area-values.ts';
import { readHeldImage } from './held-image.ts';
import { type MediumAreas } from './medium.ts';

/*
 * Owns the judgement of the areas of a medium that may be changed after the build: whose bytes they are, and
 * whether every byte of them is proven.
 */

/**
 * | state | the area |
 * |---|---|
 * | as built | has the bytes that the build left |
 * | bare | has no value of any site, not even those of the build |
 * | customized | holds values beside the medium's own parts, or a configuration image |
 * | replaced | holds a config without the medium's own units and files: the medium does not install |
 * | removed | holds no config, and the build left one: the medium does not install |
 * | damaged | cannot be read |
 */
export type AreaState = 'as built' | 'bare' | 'customized' | 'replaced' | 'removed' | 'damaged';

export type JudgedArea = ByteRange & {
  readonly kind: AreaKind;
  readonly state: AreaState;
  /** True if every byte is proven: by a digest, or by the checksums of an archive and zeros behind it. */
  readonly isProven: boolean;
  /** The fault, as a sentence about the area; absent if the medium still works. */
  readonly problem?: string;
};

export async function judgeAreas(areas: MediumAreas): Promise<readonly JudgedArea[]> {
  const { built, bare } = areas;
  const [builtParts, bareParts] = [
    built ? planContents(areas, built, 'built') : [],
    bare ? planContents(areas, bare, 'bare') : [],
  ];
  const own = await findOwnParts(areas);
  const remedy = describeRemedy(areas);
  const isBuilt = createDigestTest(areas);
  return Promise.all(
    areas.now.map(async (now): Promise<JudgedArea> => {
      const { kind, offset, bytes } = now;
      const place = { kind, offset, size: bytes.length };
      if (isBuilt(now) || hasSame(builtParts, now))
        return { ...place, state: 'as built', isProven: true };
      if (hasSame(bareParts, now)) return { ...place, state: 'bare', isProven: true };
      if (kind === 'built') return { ...place, ...judgeCopy(bytes) };
      if (kind === 'config-image') return { ...place, ...(await judgeImage(areas)) };
      return kind === 'ignition'
        ? { ...place, ...(await judgeConfig(bytes, own, remedy)) }
        : { ...place, state: 'customized', isProven: false, ...judgeArguments(now, areas, remedy) };
    }),
  );
}

/** On ISOs of other makers `bare` is the state of their release: nothing says what their build left. */
export function summarizeAreas(areas: readonly JudgedArea[]): 'as built' | 'bare' | 'customised' {
  if (areas.every(({ state }) => state === 'as built')) return 'as built';
  // A medium that was built with values is bare without its copy of them.
  const isBare = areas.every(
    ({ kind, state }) => state === 'bare' || (state === 'as built' && kind !== 'built'),
  );
  return isBare ? 'bare' : 'customised';
}

const hasSame = (parts: readonly OverlayPart[], { offset, bytes }: OverlayPart): boolean =>
  parts.some((part) => part.offset === offset && Buffer.from(part.bytes).equals(bytes));

/** By the digest that the proof of the medium names for the area's kind. */
function createDigestTest({ now, digests }: MediumAreas): (area: AreaBytes) => boolean {
  const of = (wanted: AreaKind): Digest =>
    digestOf(Buffer.concat(now.filter(({ kind }) => kind === wanted).map(({ bytes }) => bytes)));
  return ({ kind }) =>
    !isFileArea(kind) && digests?.[kind] !== undefined && of(kind) === digests[kind];
}

/** Undefined for a medium without parts of its own. */
async function findOwnParts({
  bare,
  digests,
}: MediumAreas): Promise<((config: IgnitionConfig) => boolean) | undefined> {
  const config = bare && (await decodeEmbedded(bare.archive)).config;
  if (config !== undefined) return hasPartsOf(config);
  return digests && canInstall;
}

/** Arguments may be missing that a host needs to boot and to apply the config. */
function judgeArguments(
  { offset, bytes }: AreaBytes,
  { kargs }: MediumAreas,
  remedy: string,
): Pick<JudgedArea, 'problem'> {
  const area = kargs?.areas.find((each) => each.offset === offset);
  if (!kargs || !area) return {};
  const missing = findMissingKargs({ text: parseKargs(bytes, area), default: kargs.default });
  if (missing.length === 0) return {};
  return { problem: `lacks the kernel arguments ${missing.join(' ')}: ${remedy}` };
}

/** The copy of the areas as built has a checksum of its own, and is zeros once it is dropped. */
function judgeCopy(bytes: Uint8Array): Judgement {
  try {
    decodeBuilt(bytes);
    return { state: 'as built', isProven: true };
  } catch (error) {
    if (!(error instanceof IntegrityError)) throw error;
    return { state: 'damaged', isProven: false, problem: error.message };
  }
}

/** An area that is neither zeros as built nor as bare, on a medium that carries neither, may still be zeros. */
async function judgeImage(areas: MediumAreas): Promise<Judgement> {
  const held = await readHeldImage(areas);
  if (!held) return { state: 'as built', isProven: true };
  const { isProven, isDamaged, problem } = held;
  const state = isDamaged ? 'damaged' : 'customized';
  return { state, isProven, ...withoutUndefined({ problem }) };
}

/** The remedy of a medium whose own config is gone, by what the medium still carries. */
function describeRemedy({ built, bare }: MediumAreas): string {
  if (built) return 'the medium does not install; "sealift customize --reset" restores it';
  return bare
    ? 'the medium does not install; "sealift customize --reset=bare" restores it without values'
    : 'the medium does not install, and has to be built again';
}

type Judgement = Pick<JudgedArea, 'state' | 'isProven' | 'problem'>;

async function judgeConfig(
  bytes: Uint8Array,
  own: ((config: IgnitionConfig) => boolean) | undefined,
  remedy: string,
): Promise<Judgement> {
  try {
    const embedded = await decodeEmbedded(bytes);
    if (!own || hasOwnParts(embedded, own)) {
      return { state: 'customized', isProven: isProvenArchive(bytes, embedded) };
    }
    return embedded.config === undefined
      ? { state: 'removed', isProven: true, problem: `has no Ignition config: ${remedy}` }
      : {
          state: 'replaced',
          isProven: true,
          problem: `does not have the units and files of this medium: ${remedy}`,
        };
  } catch (error) {
    if (!(error instanceof IntegrityError)) throw error;
    const problem = `has no Ignition config that can be read: ${error.message}`;
    return { state: 'damaged', isProven: false, problem };
  }
}

const hasOwnParts = ({ config }: Embedded, own: (config: IgnitionConfig) => boolean): boolean =>
  config !== undefined && own(parseResolved(config, 'the embedded Ignition config'));

/**
 * A checksum covers xz with CRC32, as CoreOS's own tool writes it, and exactly what we write of the contents.
 * gzip has no checksum of its header.
 */
function isProvenArchive(bytes: Uint8Array, embedded: Embedded): boolean {
  if (isCheckedXz(bytes)) return true;
  const written = new Uint8Array(bytes.length);
  const archive = encodeEmbedded(embedded);
  if (archive.length > bytes.length) return false;
  written.set(archive);
  return Buffer.from(bytes).equals(written);
}

/** By names: values of a site change the content of some units and files. */
export function hasPartsOf(bare: string): (config: IgnitionConfig) => boolean {
  const own = parseResolved(bare, 'the Ignition config of the medium');
  const wanted = namesOf(own);
  const installs = hasInstallation(own);
  return (config) => {
    const found = namesOf(config);
    return [...wanted].every((name) => found.has(name)) && (!installs || canInstall(config));
  };
}

const namesOf = ({ systemd, storage }: IgnitionConfig): ReadonlySet<string> =>
  new Set([
    ...(systemd?.units ?? []).map(({ name }) => `unit ${name}`),
    ...(storage?.files ?? []).map(({ path }) => `file ${path}`),
  ]);
