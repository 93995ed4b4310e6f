import { IntegrityError } from '../../base/errors.ts';

/** One stretch of text that was put in. */
type Insertion = { readonly at: number; readonly text: string };

/** A menu with a further initrd, and where its karg area went. */
export type EditedMenu = { readonly text: string; readonly moved: (offset: number) => number };

/** Which boot loader reads the menu; they write lists of initrds differently. */
export type MenuKind = 'grub' | 'isolinux';

/** The kind of the menu at this path, or undefined for other files. */
export function menuKindOf(path: string): MenuKind | undefined {
  if (/^\/(?:EFI\/[^/]+|boot\/grub)\/grub\.cfg$/.test(path)) return 'grub';
  return path === '/isolinux/isolinux.cfg' ? 'isolinux' : undefined;
}

/**
 * Adds an initrd to every entry of a boot menu: GRUB takes a list separated by spaces on the line
 * `initrd`, ISOLINUX one separated by commas in the word `initrd=` of the line `append`.
 *
 * @param text one byte a character (latin1), so that offsets are bytes
 * @throws IntegrityError `boot-menu.no-initrd` when no entry has one
 */
export function addInitrd(text: string, kind: MenuKind, initrd: string): EditedMenu {
  const insertions =
    kind === 'grub' ? findAtLineEnds(text, ` ${initrd}`) : findAfterLists(text, `,${initrd}`);
  if (insertions.length === 0) {
    throw new IntegrityError('boot-menu.no-initrd', `${kind} menu has no entry with an initrd`, {
      hint: 'use the live ISO of a CoreOS release as base',
    });
  }
  let edited = '';
  let from = 0;
  for (const { at, text: inserted } of insertions) {
    edited += text.slice(from, at) + inserted;
    from = at;
  }
  return {
    text: edited + text.slice(from),
    moved: (offset) =>
      insertions.reduce(
        (sum, { at, text: { length } }) => (at <= offset ? sum + length : sum),
        offset,
      ),
  };
}

const findAtLineEnds = (text: string, inserted: string): Insertion[] =>
  [...text.matchAll(/^[ \t]+initrd(?:efi)?[ \t][^\r\n]*?(?=[ \t]*\r?$)/gm)].map((match) => ({
    at: match.index + match[0].length,
    text: inserted,
  }));

const findAfterLists = (text: string, inserted: string): Insertion[] =>
  [...text.matchAll(/^[ \t]+append[ \t](?:[^\r\n]*?[ \t])?initrd=[^ \t\r\n]*/gim)].map((match) => ({
    at: match.index + match[0].length,
    text: inserted,
  }));
