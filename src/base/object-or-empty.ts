/** The members of a parsed value, none where it is not an object: what is missing is noticed where it is needed. */
export const objectOrEmpty = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {};
