import { UsageError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { type IsoImage, type KargAreas, parseReplacement } from '../../iso/index.ts';
import type { CustomValues } from '../../openshift/agent/values.ts';
import { type OverlayPart, planEditedKargs, readOptionalKargs, sortParts } from '../areas.ts';

/* Decides how the kernel arguments of an ISO change. */

/** True if only kernel arguments change, which needs no look at the Ignition config. */
export const isKargsAlone = (values: CustomValues): boolean =>
  Object.keys(withoutUndefined(values)).every((name) => name === 'kargs');

type Warn = (text: string) => void;

/** Like `coreos-installer iso kargs modify`. */
export async function planKargsAlone(
  iso: IsoImage,
  values: CustomValues,
  warn: Warn = () => undefined,
): Promise<readonly OverlayPart[]> {
  const kargs = await readOptionalKargs(iso);
  return sortParts(planKargs(kargs, values, { keep: true, warn }));
}

export function planKargs(
  kargs: KargAreas | undefined,
  { kargs: edits = {} }: CustomValues,
  { keep, warn }: { readonly keep: boolean; readonly warn: Warn },
): readonly OverlayPart[] {
  const { append = [], remove = [], replace = [] } = edits;
  if (kargs) {
    const text = keep ? kargs.text : kargs.default;
    // An argument given again moves to the end, where it takes precedence.
    const earlier = text === kargs.default ? [] : append;
    const absent = [
      ...remove.filter((karg) => !hasKarg(text, karg)),
      ...replace
        .map((each) => parseReplacement(each).old)
        .filter((old) => !hasKarg([text, ...append].join(' '), old)),
    ];
    for (const karg of absent) warn(`kernel argument ${karg} is not on the ISO: nothing to change`);
    const changes = { append, remove: [...remove, ...earlier], replace };
    return planEditedKargs({ ...kargs, default: text }, changes);
  }
  if (append.length + remove.length + replace.length === 0) return [];
  throw new UsageError(
    'customize.no-kargs',
    'this ISO does not support customizing kernel arguments: it has no areas for them',
    { hint: 'use a newer live ISO' },
  );
}

const hasKarg = (text: string, karg: string): boolean => ` ${text} `.includes(` ${karg.trim()} `);
