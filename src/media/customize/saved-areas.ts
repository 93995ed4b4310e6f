import { isObject } from '../../base/lists.ts';

/** What stands at an offset, and what is to stand there. */
export type Saved = { readonly offset: number; readonly old: Buffer; readonly now: Uint8Array };

/** The text that is beside an ISO while it is changed in place. */
export const formatSaved = (saved: readonly Saved[]): string =>
  `${JSON.stringify({
    areas: saved.map(({ offset, old, now }) => ({
      offset,
      old: old.toString('base64'),
      now: Buffer.from(now).toString('base64'),
    })),
  })}\n`;

/** undefined for what `formatSaved` does not write. */
export function parseSavedAreas(text: string): readonly Saved[] | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const areas = isObject(value) ? value['areas'] : undefined;
  if (!Array.isArray(areas)) return undefined;
  const parsed = areas.map((area: unknown): Saved | undefined => {
    const { offset, old, now } = isObject(area) ? area : {};
    if (typeof offset !== 'number' || !Number.isSafeInteger(offset) || offset < 0) return undefined;
    if (typeof old !== 'string' || typeof now !== 'string') return undefined;
    const bytes = { old: Buffer.from(old, 'base64'), now: Buffer.from(now, 'base64') };
    return bytes.old.length === bytes.now.length ? { offset, ...bytes } : undefined;
  });
  return parsed.every((area) => area !== undefined) ? parsed : undefined;
}

/** Whether each byte that was found is the old or the new one: what a write that was broken off leaves. */
export const isOldOrNew = (found: Uint8Array, { old, now }: Omit<Saved, 'offset'>): boolean =>
  found.length === old.length && found.every((byte, at) => byte === old[at] || byte === now[at]);
