import { IntegrityError } from '../base/errors.ts';
import type { ByteRange } from '../base/random-access.ts';
import { type IgnitionConfig, parseIgnition } from '../ignition/index.ts';
import { decodeEmbedded, type OverlayPart } from './areas.ts';
import { decodeBuilt } from './built.ts';

/*
 * Owns the judgement of the areas of a medium that may be changed after the build: whose bytes they
 * are, and whether every byte of them is proven. verify, inspect, customize and repair take it from here.
 */

/**
 * | state | the area |
 * |---|---|
 * | as built | has the bytes that the build left |
 * | bare | has no value of any site, not even those of the build |
 * | customized | holds values beside the medium's own parts |
 * | replaced | holds a config without the medium's own units and files: the medium does not install |
 * | removed | is empty, and the build left a config: the medium does not install |
 * | damaged | cannot be read |
 */
export type AreaState = 'as built' | 'bare' | 'customized' | 'replaced' | 'removed' | 'damaged';

export type AreaKind = 'ignition' | 'kernel-arguments' | 'built';

export type JudgedArea = ByteRange & {
  readonly kind: AreaKind;
  readonly state: AreaState;
  /** True if every byte is proven: by a digest, or by the checksums of an archive and zeros behind it. */
  readonly isProven: boolean;
  /** The fault, as a sentence about the area; absent if the medium still works. */
  readonly problem?: string;
};

/** The bytes that an area may have: as the build left it, and without values of any site. */
export type KnownArea = {
  readonly kind: AreaKind;
  /** Undefined if the medium no longer has them. */
  readonly built?: OverlayPart;
  readonly bare?: OverlayPart;
};

/** Judges an area by its bytes. @param own tells whether a config has the medium's own parts */
export async function judgeArea(
  now: OverlayPart,
  { kind, built, bare }: KnownArea,
  own: (config: IgnitionConfig) => boolean,
): Promise<JudgedArea> {
  const place = { kind, offset: now.offset, size: now.bytes.length };
  if (isSame(now, built)) return { ...place, state: 'as built', isProven: true };
  if (isSame(now, bare)) return { ...place, state: 'bare', isProven: true };
  if (kind === 'built') return { ...place, ...judgeCopy(now.bytes) };
  return kind === 'ignition'
    ? { ...place, ...(await judgeConfig(now.bytes, own)) }
    : { ...place, state: 'customized', isProven: false };
}

const isSame = (now: OverlayPart, other: OverlayPart | undefined): boolean =>
  other !== undefined && Buffer.from(now.bytes).equals(other.bytes);

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

const HEAL = 'the medium does not install; "sealift customize --reset" restores it';

type Judgement = Pick<JudgedArea, 'state' | 'isProven' | 'problem'>;

async function judgeConfig(
  bytes: Uint8Array,
  own: (config: IgnitionConfig) => boolean,
): Promise<Judgement> {
  try {
    const { config, keyfiles, others } = await decodeEmbedded(bytes);
    if (config !== undefined && own(parseIgnition(config, 'the embedded Ignition config')))
      return { state: 'customized', isProven: true };
    const isEmpty = config === undefined && keyfiles.length === 0 && !others?.size;
    return isEmpty
      ? { state: 'removed', isProven: true, problem: `has no Ignition config: ${HEAL}` }
      : {
          state: 'replaced',
          isProven: true,
          problem: `has an Ignition config without the units and files of this medium: ${HEAL}`,
        };
  } catch (error) {
    if (!(error instanceof IntegrityError)) throw error;
    const problem = `has no Ignition config that can be read: ${error.message}`;
    return { state: 'damaged', isProven: false, problem };
  }
}

/**
 * A test whether a config has the units and the files of another, by their names: values of a site change
 * the content of some.
 */
export function hasPartsOf(bare: string | undefined): (config: IgnitionConfig) => boolean {
  if (bare === undefined) return () => true;
  const wanted = namesOf(parseIgnition(bare, 'the Ignition config of the medium'));
  return (config) => {
    const found = namesOf(config);
    return [...wanted].every((name) => found.has(name));
  };
}

const namesOf = ({ systemd, storage }: IgnitionConfig): ReadonlySet<string> =>
  new Set([
    ...(systemd?.units ?? []).map(({ name }) => `unit ${name}`),
    ...(storage?.files ?? []).map(({ path }) => `file ${path}`),
  ]);
