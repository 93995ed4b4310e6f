/** Values that take each other's place; around a change both hold. */
export type Timeline<Value> = {
  readonly change: (value: Value, act: () => Promise<void> | void) => Promise<void>;
  /** Those that held at some time from `from` until now. */
  readonly since: (from: number) => readonly Value[];
  readonly current: () => Value;
};

export function createTimeline<Value>(first: Value): Timeline<Value> {
  const entries: { value: Value; from: number; until: number }[] = [
    { value: first, from: 0, until: Infinity },
  ];
  return {
    async change(value, act) {
      const last = entries.at(-1);
      entries.push({ value, from: performance.now(), until: Infinity });
      await act();
      if (last) last.until = performance.now();
    },
    since: (from) => entries.filter(({ until }) => until >= from).map(({ value }) => value),
    current: () => entries.at(-1)?.value ?? first,
  };
}

/** When something was not there. */
export type Absences = {
  /** From now until what it returns is called. */
  readonly begin: () => () => void;
  readonly had: (from: number, until: number) => boolean;
};

/** @param aftermath milliseconds that belong to each */
export function createAbsences(aftermath = 0): Absences {
  const absences: { readonly from: number; until: number }[] = [];
  return {
    begin() {
      const absence = { from: performance.now(), until: Infinity };
      absences.push(absence);
      return () => {
        absence.until = performance.now() + aftermath;
      };
    },
    had: (from, until) => absences.some((one) => one.from <= until && one.until >= from),
  };
}
