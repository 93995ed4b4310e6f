import { append } from '../../base/lists.ts';
import type { IsoPart, LayoutDifference } from '../../media/compare-layout.ts';
import { compareIso } from '../../stages/pour/compare-iso.ts';
import type { IsoRequest, PrepareIso } from '../build-iso.ts';
import type { BuildTools } from '../build-tools.ts';

export type Reproduction = {
  /**
   * `equal`: each byte is what a build makes now. `equal-as-compared`: so is all but rendered parts that
   * have values drawn at random, which are not known here.
   */
  readonly result: 'equal' | 'equal-as-compared' | 'different';
  readonly size: { readonly found: number; readonly expected: number };
  readonly differences: readonly LayoutDifference[];
  /** What differs, and may depend on what was drawn: rendered files, and directories that have their sizes. */
  readonly notCompared: readonly LayoutDifference[];
};

/** What values drawn at random have no part in; directories have the sizes of files that have them. */
const ALWAYS_EQUAL: ReadonlySet<IsoPart> = new Set(['base', 'blobs', 'structures', 'padding']);

/**
 * Decides every byte of the ISO again, from the configuration and the lock, and compares them with the ISO
 * that is the output of the request. No second ISO is written, and no blob fetched for it.
 */
export async function reproduceIso<Request extends IsoRequest>(
  request: Request,
  tools: BuildTools,
  prepare: PrepareIso<Request>,
): Promise<Reproduction> {
  const { output } = request;
  const { layout } = await prepare({ ...request, isThere: true }, tools);
  const { size, differences, files } = await tools.engine.run(compareIso, { layout, output });
  const isDrawn = drewAgain(request, tools);
  const isUnknown = ({ part }: LayoutDifference): boolean => isDrawn && !ALWAYS_EQUAL.has(part);
  const notCompared = differences.filter(isUnknown);
  const known = differences.filter((one) => !isUnknown(one));
  if (isDrawn) append(known, files);
  const isDifferent = known.length > 0 || size.found !== size.expected;
  const equal = notCompared.length > 0 ? 'equal-as-compared' : 'equal';
  return { result: isDifferent ? 'different' : equal, size, differences: known, notCompared };
}

/** Whether something was drawn that is not what was drawn for the ISO, as far as the lock tells. */
const drewAgain = ({ lock }: IsoRequest, { drawn }: BuildTools): boolean =>
  (lock?.isLocked !== true || lock.drawsAgain === true) && Object.keys(drawn.list()).length > 0;
