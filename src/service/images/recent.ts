/* Owns a memory of the values that were computed last. */

/** Recently computed values by name. Callers that ask during a computation share its result. */
export type Recent<Value> = {
  readonly get: (name: string, compute: () => Promise<Value>) => Promise<Value>;
  readonly forget: (name: string) => void;
};

/** Remembers `most` values, and the failures for which `isLasting` is true: by default no failure. */
export function createRecent<Value>(
  most: number,
  isLasting: (error: unknown) => boolean = () => false,
): Recent<Value> {
  const values = new Map<string, Promise<Value>>();
  return {
    get(name, compute) {
      const value = values.get(name) ?? compute();
      values.delete(name);
      values.set(name, value);
      const [oldest] = values.keys();
      if (values.size > most && oldest !== undefined) values.delete(oldest);
      value.catch((error: unknown) => {
        if (!isLasting(error) && values.get(name) === value) values.delete(name);
      });
      return value;
    },
    forget: (name) => void values.delete(name),
  };
}
