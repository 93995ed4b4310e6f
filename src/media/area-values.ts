import { IntegrityError } from '../base/errors.ts';
import type { ByteRange } from '../base/random-access.ts';
import { type LocatedAreas, parseKargs } from '../iso/index.ts';
import { type OverlayPart, planEmbedPart, planKargParts, sortParts } from './areas.ts';
import type { MutableArea } from './media-index.ts';

/* Owns the contents that the areas of a medium can have, and the bytes of areas with these contents. */

/** Contents of the areas: the archive of the embed area, and the kernel arguments. */
export type AreaValues = { readonly archive: Uint8Array; readonly kargs: string };

export type AreaKind = MutableArea['kind'];

/** True for the kinds that are files of our own, which no medium with a proof has. */
export const isFileArea = (kind: AreaKind): kind is 'built' | 'config-image' =>
  kind === 'built' || kind === 'config-image';

export type AreaBytes = OverlayPart & { readonly kind: AreaKind };

export type FoundAreas = {
  readonly embed: ByteRange & { readonly bytes: Uint8Array };
  /** FoundAreas of the kernel arguments; absent on images older than the areas for them. */
  readonly kargs?: LocatedAreas;
  /** All areas, by offset. */
  readonly now: readonly AreaBytes[];
};

export const fillEmbed = (
  { embed }: Pick<FoundAreas, 'embed'>,
  archive: Uint8Array,
): AreaBytes => ({
  kind: 'ignition',
  ...planEmbedPart({ offset: embed.offset, size: embed.bytes.length }, archive),
});

export const fillKargs = (kargs: LocatedAreas, text: string): readonly AreaBytes[] =>
  sortParts(planKargParts(kargs, text)).map((part) => ({ kind: 'kernel-arguments', ...part }));

/**
 * No build leaves a configuration image: its area becomes zeros. Without values of any site, the copy of the
 * built contents becomes zeros too.
 */
export function planContents(
  areas: FoundAreas,
  { archive, kargs: text }: AreaValues,
  form: 'built' | 'bare',
): readonly AreaBytes[] {
  const emptied = areas.now.filter(
    ({ kind }) => kind === 'config-image' || (kind === 'built' && form === 'bare'),
  );
  return [
    fillEmbed(areas, archive),
    ...(areas.kargs ? fillKargs(areas.kargs, text) : []),
    ...emptied.map(({ kind, offset, bytes }) => ({
      kind,
      offset,
      bytes: new Uint8Array(bytes.length),
    })),
  ].sort((a, b) => a.offset - b.offset);
}

/** True if the areas of the Ignition config and of the kernel arguments have these contents. */
export const hasContents = (areas: FoundAreas, contents: AreaValues): boolean =>
  hasParts(
    areas,
    planContents(areas, contents, 'built').filter(({ kind }) => kind !== 'config-image'),
  );

const hasParts = ({ now }: Pick<FoundAreas, 'now'>, parts: readonly OverlayPart[]): boolean =>
  parts.every(({ offset, bytes }) =>
    now.some((area) => area.offset === offset && Buffer.from(area.bytes).equals(bytes)),
  );

/** Undefined if the areas differ or cannot be read. */
export function readSameKargs(areas: Pick<FoundAreas, 'kargs' | 'now'>): string | undefined {
  const text = readKargText(areas);
  if (!areas.kargs) return '';
  return text !== undefined && hasParts(areas, fillKargs(areas.kargs, text)) ? text : undefined;
}

/** Undefined if the arguments cannot be read. The areas may still differ. */
export function readKargText({
  kargs,
  now,
}: Pick<FoundAreas, 'kargs' | 'now'>): string | undefined {
  const [first] = kargs?.areas ?? [];
  const bytes = now.find(({ offset }) => offset === first?.offset)?.bytes;
  try {
    return first && bytes && parseKargs(bytes, first);
  } catch (error) {
    if (error instanceof IntegrityError) return undefined;
    throw error;
  }
}
