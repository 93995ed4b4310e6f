/**
 * Kernel arguments without some and with others at their end, as CoreOS's own tool edits them: first what is removed,
 * each a run of whole words, everywhere; then what is appended.
 */
export function editKargs(
  text: string,
  { append, remove }: { readonly append: readonly string[]; readonly remove: readonly string[] },
): string {
  const removed = remove.reduce(
    (line, karg) => line.replaceAll(` ${karg.trim()} `, ' '),
    ` ${text.trim()} `,
  );
  return [removed.trim(), ...append.map((karg) => karg.trim())].join(' ').trim();
}
