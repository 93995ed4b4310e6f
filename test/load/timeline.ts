/** Values that take each other's place; around a change both hold. */
export type Timeline<Value> = {
  readonly change: (value: Value, act: () => void) => void;
  /** Those that held at some time from `from` until now. */
  readonly since: (from: number) => readonly Value[];
  readonly current: () => Value;
};

export function createTimeline<Value>(first: Value): Timeline<Value> {
  const entries: { value: Value; from: number; until: number }[] = [
    { value: first, from: 0, until: Infinity },
  ];
  return {
    change(value, act) {
      const last = entries.at(-1);
      entries.push({ value, from: performance.now(), until: Infinity });
      act();
      if (last) last.until = performance.now();
    },
    since: (from) => entries.filter(({ until }) => until >= from).map(({ value }) => value),
    current: () => entries.at(-1)?.value ?? first,
  };
}
