import { digestOf } from '../../base/digest.ts';
import type { Extent, Layout } from '../../iso/extent.ts';
import type { LiveGraft } from '../../iso/coreos/graft.ts';
import { configure } from '../../openshift/agent/configure.ts';
import type { CustomValues } from '../../openshift/agent/values.ts';
import type { MutableArea } from '../index/media-index.ts';
import { encodeEmbedded, planEditedKargs, planEmbedPart, planKargParts } from './live-areas.ts';
import { applyParts, sortParts, type OverlayPart } from './overlay.ts';

type Areas = LiveGraft['areas'];

/** What an index says of the areas of a medium that has no values of a site. */
export function describeAreas(
  areas: Areas,
  extents: readonly Extent[],
  archive: Uint8Array,
): readonly MutableArea[] {
  const { embed, kargs } = locate(areas, extents);
  const ignition = planEmbedPart(embed, archive);
  return [
    describe('ignition', ignition),
    ...planKargParts(kargs, kargs.default).map((part) => describe('kernel-arguments', part)),
  ];
}

const describe = (kind: MutableArea['kind'], { offset, bytes }: OverlayPart): MutableArea => ({
  kind,
  offset,
  size: bytes.length,
  digest: digestOf(bytes),
});

/**
 * The layout of a medium that is built with values, and the bytes that its embed area then holds. The ISO is that which
 * the same values make of the medium that is built without.
 *
 * @param pristine JSON text of the Ignition config
 * @throws what `configure`, `planEmbedPart` and `planEditedKargs` throw
 */
export function configureLayout(
  layout: Layout,
  areas: Areas,
  { pristine, values }: { readonly pristine: string; readonly values: CustomValues },
): { readonly layout: Layout; readonly used: number } {
  const { embed, kargs } = locate(areas, layout.extents);
  const config = configure(pristine, values);
  const archive = encodeEmbedded({ config, keyfiles: [] });
  const parts = sortParts([
    planEmbedPart(embed, archive),
    ...planEditedKargs(kargs, values.kargs ?? {}),
  ]);
  const extents = layout.extents.map((extent) => overlay(extent, parts));
  return { layout: { ...layout, extents }, used: archive.length };
}

function overlay(extent: Extent, parts: readonly OverlayPart[]): Extent {
  const { offset, size, source } = extent;
  const own = parts.filter(
    (part) => part.offset < offset + size && part.offset + part.bytes.length > offset,
  );
  if (own.length === 0) return extent;
  if (source.kind !== 'bytes') throw new Error(`extent at ${offset} has no bytes to change`);
  const bytes = Buffer.from(source.bytes);
  applyParts(bytes, offset, own);
  return { ...extent, digest: digestOf(bytes), source: { kind: 'bytes', bytes } };
}

/** Offsets from the start of the image. */
function locate({ embed, kargs }: Areas, extents: readonly Extent[]) {
  const startOf = (path: string | undefined): number =>
    path === undefined ? 0 : (extents.find(({ paths }) => paths.includes(path))?.offset ?? 0);
  return {
    embed: { offset: startOf(embed.path) + embed.offset, size: embed.size },
    kargs: {
      ...kargs,
      areas: kargs.areas.map((area) => ({ ...area, offset: startOf(area.path) + area.offset })),
    },
  };
}
