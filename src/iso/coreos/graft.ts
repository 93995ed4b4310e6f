import { ConfigError, IntegrityError } from '../../base/errors.ts';
import { formatReadableJson, type Json } from '../../base/text/json.ts';
import type { TreeFile } from '../extent.ts';
import type { BasePatch } from '../lay-out/scan.ts';
import type { IsoImage } from '../read/open.ts';
import { planEmbed, type EmbedContent, type EmbedPlace } from './embed-area.ts';
import { readKargsFile } from './json.ts';
import { type KargArea, encodeKargs, type KargsFiller } from './kargs.ts';
import type { CoreosLive } from './live.ts';
import { menuKindOf, type MenuKind } from './menu.ts';

/** Changes that make a live ISO boot with an additional initrd, an Ignition config and other arguments. */
export type LiveGraft = {
  /** New files, and files that replace files of the base. */
  readonly files: readonly TreeFile[];
  readonly patches: readonly BasePatch[];
  /** Places of the Ignition config and of the kernel arguments, for later changes. */
  readonly areas: {
    readonly embed: EmbedPlace;
    readonly kargs: {
      /** The arguments of the areas. */
      readonly default: string;
      readonly size: number;
      readonly areas: readonly GraftedKargs[];
    };
  };
};

/** Offset inside a file of the new tree, or from the start of the image. */
export type GraftedKargs = KargsFiller & { readonly path?: string; readonly offset: number };

export type LiveGraftOptions = {
  /** Path on the ISO and bytes of the initrd that every menu entry gets. */
  readonly initrd: { readonly path: string; readonly bytes: Uint8Array };
  /** Compressed archive for the embed area. */
  readonly embed: EmbedContent;
  /** Arguments that belong to the medium like those of the base: restoring the arguments leaves them. */
  readonly appendKargs: readonly string[];
  /** New label of the volume, which the live system waits for; absent: it stays. */
  readonly label?: string;
};

/**
 * Plans how a CoreOS live ISO is changed. Boot menus grow, so they become new files; the embed area is filled
 * in place if the archive fits.
 *
 * @throws IntegrityError `base-iso.no-menu`, `base-iso.fixed-embed-area`; ConfigError
 * `base-iso.too-old`; UsageError `kargs.too-large`
 */
export async function planLiveGraft(
  iso: IsoImage,
  live: CoreosLive,
  options: LiveGraftOptions,
): Promise<LiveGraft> {
  const { text } = live.kargs;
  const { label } = options;
  const own = label === undefined ? text : text.replace(LIVEISO, `$1${label}`);
  const kargs = [own, ...options.appendKargs].join(' ').trim();
  const menus = await planMenus(iso, live, { ...options, kargs });
  const embed = await planEmbed(iso, live.embedArea, options.embed);
  const { path, bytes } = options.initrd;
  return {
    files: [{ path, content: { kind: 'bytes', bytes } }, ...menus.files, ...embed.files],
    patches: [...menus.patches, ...embed.patches],
    areas: {
      embed: embed.place,
      kargs: { default: kargs, size: live.kargs.size, areas: menus.areas },
    },
  };
}

const LIVEISO = /(\bcoreos\.liveiso=)\S+/g;

async function planMenus(
  iso: IsoImage,
  live: CoreosLive,
  options: LiveGraftOptions & { readonly kargs: string },
): Promise<Pick<LiveGraft, 'files' | 'patches'> & { readonly areas: readonly GraftedKargs[] }> {
  const { size, areas } = live.kargs;
  const placed: GraftedKargs[] = [];
  const files: TreeFile[] = [];
  const moved = new Map<string, number>();
  for await (const { path, node } of iso.walk()) {
    const kind = menuKindOf(path);
    if (kind === undefined || node.kind !== 'file') continue;
    const text = Buffer.from(await iso.readFile(node, 1 << 20)).toString('latin1');
    const menu = addInitrd(text, kind, options.initrd.path);
    const bytes = Buffer.from(menu.text, 'latin1');
    for (const area of areas.filter((area) => isOf(area, path))) {
      const offset = menu.moved(area.offset - (node.extents[0]?.offset ?? 0));
      bytes.set(encodeKargs(options.kargs, size, area), offset);
      moved.set(path, offset);
      placed.push({ path, offset, pad: area.pad, end: area.end });
    }
    files.push({ path, content: { kind: 'bytes', bytes } });
  }
  if (files.length === 0) {
    throw new IntegrityError('base-iso.no-menu', `image ${iso.path} has no known boot menu`);
  }
  const fixed = areas.filter((area) => ![...moved.keys()].some((path) => isOf(area, path)));
  const patches = fixed.map((area) => ({
    offset: area.offset,
    bytes: encodeKargs(options.kargs, size, area),
  }));
  const listed = await moveListed(iso, { areas, moved, default: options.kargs });
  return {
    files: [...files, listed],
    patches,
    areas: [...placed, ...fixed.map(({ offset, pad, end }) => ({ offset, pad, end }))],
  };
}

const isOf = (area: KargArea, path: string): boolean => {
  if (area.path === undefined) throw tooOld();
  return area.path.toLowerCase().replace(/^\/?/, '/') === path.toLowerCase();
};

const tooOld = (): ConfigError =>
  new ConfigError(
    'base-iso.too-old',
    'base ISO stores its kernel arguments as images before 2022 did',
    {
      hint: 'use the live ISO of this release',
    },
  );

/** `coreos/kargs.json` with the places of the areas in the edited menus, and their arguments. */
async function moveListed(
  iso: IsoImage,
  {
    areas,
    moved,
    default: kargs,
  }: {
    readonly areas: readonly KargArea[];
    readonly moved: ReadonlyMap<string, number>;
    readonly default: string;
  },
): Promise<TreeFile> {
  const node = await iso.find('/coreos/kargs.json');
  if (!node || areas.length === 0) throw tooOld();
  const json = await readKargsFile(iso, node);
  const files = json.files.map((file) => {
    const offset = moved.get(file.path.replace(/^\/?/, '/'));
    return offset === undefined ? file : { ...file, offset };
  });
  return jsonFile('/coreos/kargs.json', { ...json, default: kargs, files });
}

const jsonFile = (path: string, json: Json): TreeFile => ({
  path,
  content: { kind: 'bytes', bytes: Buffer.from(formatReadableJson(json)) },
});

type Insertion = { readonly at: number; readonly text: string };

/** A menu with an added initrd, and the new offset of each old one. */
type EditedMenu = { readonly text: string; readonly moved: (offset: number) => number };

/**
 * Adds an initrd to every entry of a boot menu: GRUB takes a list separated by spaces on the line
 * `initrd`, ISOLINUX one separated by commas in the word `initrd=` of the line `append`.
 *
 * @param text one byte a character (latin1), so that offsets are bytes
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
  [...text.matchAll(/^[ \t]+initrd(?:efi)?[ \t][^\r\n]*/gm)].map((match) => ({
    at: match.index + match[0].trimEnd().length,
    text: inserted,
  }));

const findAfterLists = (text: string, inserted: string): Insertion[] =>
  [...text.matchAll(/^[ \t]+append[ \t](?:[^\r\n]*?[ \t])?initrd=[^ \t\r\n]*/gim)].map((match) => ({
    at: match.index + match[0].length,
    text: inserted,
  }));
