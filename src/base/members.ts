/** Whether a parsed value has members: neither a scalar nor a list. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The members of a parsed value, none where it is not an object: what is missing is noticed where it is needed. */
export const objectOrEmpty = (value: unknown): Readonly<Record<string, unknown>> =>
  isObject(value) ? value : {};

/** The members that have a value: an optional member is absent, never undefined. */
export function withoutUndefined<T extends object>(
  object: T,
): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(object).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> };
}
