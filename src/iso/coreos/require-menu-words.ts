import { UsageError } from '../../base/errors.ts';

/** Whole strings; in those with double quotes, GRUB replaces variables and escapes. */
const STRINGS = /'[^']*'|"[^"$\\]*"/g;
/** What has a meaning for GRUB: some only at the start of a word, or as one. */
const SPECIAL = /[&|;<>{}$\\'"]|(?<!\S)(?:#|(?:\[\[|\]\])(?!\S))/;

/**
 * Refuses kernel arguments that a menu of GRUB has another meaning for: a machine would stop at its prompt, or the kernel
 * get others than those of the menu of isolinux beside it.
 *
 * @throws UsageError `kargs.special`
 */
export function requireMenuWords(kargs: readonly string[]): void {
  for (const karg of kargs) {
    const [found] = SPECIAL.exec(karg.trim().replaceAll(STRINGS, 'string')) ?? [];
    if (found === undefined) continue;
    throw new UsageError(
      'kargs.special',
      `a kernel argument has ${found}, which GRUB does not hand on`,
      {
        expected: 'none of & | ; < > { } $ \\, whole strings, and no word with # in front',
        found,
        hint: 'Write the argument without it: a URL with a query of one part, for instance.',
      },
    );
  }
}
