export type Figures = {
  /** All that was measured, for a file. */
  readonly values: Record<string, unknown>;
  /** What has a goal, in the order it was measured. */
  readonly rows: Row[];
};

type Row = {
  readonly name: string;
  readonly value: number;
  readonly goal: string;
  readonly ok: boolean;
};

type Goal = { readonly atLeast?: number; readonly atMost?: number };

/** Adds figures that have a goal. */
export function addFigures(
  { values, rows }: Figures,
  measured: Readonly<Record<string, Goal & { readonly value: number }>>,
): void {
  for (const [name, { value, atLeast, atMost }] of Object.entries(measured)) {
    const goal = atLeast === undefined ? `<= ${atMost ?? Infinity}` : `>= ${atLeast}`;
    const ok = value >= (atLeast ?? -Infinity) && value <= (atMost ?? Infinity);
    rows.push({ name, value, goal, ok });
    values[name] = value;
  }
}

export function printFigures({ rows }: Figures): void {
  console.log('\nfigure                    reached     goal');
  for (const { name, value, goal, ok } of rows) {
    console.log(
      `${name.padEnd(24)} ${value.toFixed(3).padStart(8)}   ${goal.padEnd(8)} ${ok ? 'reached' : 'MISSED'}`,
    );
  }
}

export function median(list: readonly number[]): number {
  const sorted = [...list].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? NaN;
}
