import type { Stage } from '../../engine/stage.ts';
import type { Layout } from '../../iso/extent.ts';
import { compareLayout, type LayoutComparison } from '../../media/compare-layout.ts';

export type CompareIsoInput = {
  readonly layout: Layout;
  /** Absolute path of the ISO. */
  readonly output: string;
};

/** Compares an ISO that is there with what would be poured. */
export const compareIso: Stage<CompareIsoInput, LayoutComparison, object> = {
  name: 'compare ISO',
  run: ({ layout, output }, _, watched) => compareLayout(output, layout, watched),
};
