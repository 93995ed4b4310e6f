/** The name that was probably meant: at most a third of its letters, and at least one, differ. */
export function findNearestName(name: string, known: Iterable<string>): string | undefined {
  const limit = Math.max(1, Math.floor(name.length / 3));
  let best: { readonly name: string; readonly distance: number } | undefined;
  for (const candidate of known) {
    if (Math.abs(candidate.length - name.length) > limit) continue;
    const distance = countEdits(name.toLowerCase(), candidate.toLowerCase());
    if (distance <= limit && distance < (best?.distance ?? Infinity))
      best = { name: candidate, distance };
  }
  return best?.name;
}

/** `did you mean "x"?`, for a hint; undefined when no known name is near. */
export function suggestName(name: string, known: Iterable<string>): string | undefined {
  const nearest = findNearestName(name, known);
  return nearest === undefined ? undefined : `did you mean "${nearest}"?`;
}

/** `; did you mean "x"?`, for the end of a sentence; empty when no known name is near. */
export function appendSuggestion(name: string, known: Iterable<string>, separator = '; '): string {
  const suggestion = suggestName(name, known);
  return suggestion === undefined ? '' : separator + suggestion;
}

/** Levenshtein distance, with one row of the table in memory. */
export function countEdits(from: string, to: string): number {
  const row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    let diagonal = i - 1;
    row[0] = i;
    for (let j = 1; j <= to.length; j++) {
      const above = row[j] ?? 0;
      const replaced = diagonal + (from[i - 1] === to[j - 1] ? 0 : 1);
      row[j] = Math.min(replaced, above + 1, (row[j - 1] ?? 0) + 1);
      diagonal = above;
    }
  }
  return row[to.length] ?? 0;
}
