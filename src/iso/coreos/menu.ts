import type { IsoImage } from '../read/open.ts';

/** The boot loader that reads a menu: each has its own form of a list of initrds. */
export type MenuKind = 'grub' | 'isolinux';

/** The kind of the menu at this path, or undefined for other files. */
export function menuKindOf(path: string): MenuKind | undefined {
  if (/^\/(?:EFI\/[^/]+|boot\/grub)\/grub\.cfg$/.test(path)) return 'grub';
  return path === '/isolinux/isolinux.cfg' ? 'isolinux' : undefined;
}

/** An entry of a boot menu that starts a kernel. */
export type MenuEntry = {
  readonly kernel: string;
  /** Paths, in the order in which they are loaded. */
  readonly initrds: readonly string[];
  readonly kargs: string;
};

export type BootMenu = {
  readonly path: string;
  readonly kind: MenuKind;
  readonly entries: readonly MenuEntry[];
  /** Volumes that the boot loader looks for, to load files from the one that it finds. */
  readonly volumes: readonly string[];
};

/** Bytes; menus of CoreOS have 2 KiB. */
const LARGEST_MENU = 1 << 20;

/**
 * Reads the boot menus of a live ISO, with the entries that start a kernel.
 *
 * @throws IntegrityError `iso.file-too-large`
 */
export async function readBootMenus(iso: IsoImage): Promise<readonly BootMenu[]> {
  const menus: BootMenu[] = [];
  for await (const { path, node } of iso.walk()) {
    const kind = menuKindOf(path);
    if (kind === undefined || node.kind !== 'file') continue;
    const text = Buffer.from(await iso.readFile(node, LARGEST_MENU)).toString('latin1');
    menus.push({
      path,
      kind,
      ...(kind === 'grub'
        ? { entries: readGrub(text), volumes: readSearched(text) }
        : { entries: readIsolinux(text), volumes: [] }),
    });
  }
  return menus;
}

const wordsOf = (text: string): readonly string[] => text.split(/[ \t]+/).filter(Boolean);

/** GRUB manual, "menuentry", "linux" and "initrd"; the padding of an area of arguments is a comment. */
export function readGrub(text: string): readonly MenuEntry[] {
  const entries: MenuEntry[] = [];
  let isEntry = false; // without one, GRUB shows its prompt
  for (const line of text.split(/\r?\n/)) {
    const [command = '', ...words] = wordsOf(line);
    if (command === 'menuentry' || command === '}') isEntry = command !== '}';
    else if (!isEntry) continue;
    else if (/^linux(?:efi)?$/.test(command)) {
      const [kernel = '', ...kargs] = words;
      entries.push({ kernel, initrds: [], kargs: kargs.join(' ') });
    } else if (/^initrd(?:efi)?$/.test(command)) {
      const last = entries.pop();
      if (last) entries.push({ ...last, initrds: words });
    }
  }
  return entries;
}

/** GRUB manual, "search": labels that must lead to the root. */
export function readSearched(text: string): readonly string[] {
  return text.split(/\r?\n/).flatMap((line) => {
    const [command = '', ...words] = wordsOf(line);
    const isRoot = words.some((word) => /^--set(?:=root)?$/.test(word));
    const isLabel = words.some((word) => /^(?:-l|--label)$/.test(word));
    const label = words.filter((word) => !word.startsWith('-')).at(-1);
    return command === 'search' && isRoot && isLabel && label !== undefined
      ? [label.replaceAll(/["']/g, '')]
      : [];
  });
}

/** SYSLINUX, `KERNEL` and `APPEND`; the word `initrd=` is a list with commas. */
export function readIsolinux(text: string): readonly MenuEntry[] {
  const entries: MenuEntry[] = [];
  for (const line of text.split(/\r?\n/)) {
    const [command = '', ...words] = wordsOf(line);
    if (/^(?:kernel|linux)$/i.test(command)) {
      entries.push({ kernel: words[0] ?? '', initrds: [], kargs: '' });
    } else if (/^append$/i.test(command)) {
      const last = entries.pop();
      if (last) entries.push({ ...last, ...splitAppend(words) });
    }
  }
  return entries;
}

function splitAppend(words: readonly string[]): Pick<MenuEntry, 'initrds' | 'kargs'> {
  const isList = (word: string): boolean => word.startsWith('initrd=');
  return {
    initrds: words.filter(isList).flatMap((word) => word.slice('initrd='.length).split(',')),
    kargs: words.filter((word) => !isList(word)).join(' '),
  };
}
