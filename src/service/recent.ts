/** What was computed last, by name: whoever asks again while it is computed waits for the same. */
export type Recent<Value> = {
  readonly get: (name: string, compute: () => Promise<Value>) => Promise<Value>;
  readonly forget: (name: string) => void;
};

/**
 * @param most how many are remembered
 * @param isLasting whether a failure is the answer next time, too; by default none is
 */
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
