/** A value of a foreign document in a message: a scalar as it is, anything else by what it is. */
export function describeValue(value: unknown): string {
  if (value === undefined) return 'undefined';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return 'an object';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
