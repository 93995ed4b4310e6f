import { IntegrityError, UsageError } from '../../base/errors.ts';
import { findContiguousFile, type ReadableIso } from './embed-area.ts';
import { KARGS_PATH, readKargsFile, type KargsFile } from './json.ts';

/** The filling of a kernel argument area; both members are one byte. */
export type KargsFiller = {
  /** Fills the rest of the area; default of CoreOS `#`. */
  readonly pad: string;
  /** Follows the arguments; default of CoreOS a newline. */
  readonly end: string;
};

/** The arguments that an area holds. @throws IntegrityError `kargs.not-utf8` */
export function parseKargs(area: Uint8Array, { pad, end }: KargsFiller): string {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(area);
  } catch (cause) {
    throw new IntegrityError('kargs.not-utf8', 'kernel argument area is not UTF-8', { cause });
  }
  return trimEnd(trimEnd(text, pad), end).trim();
}

/**
 * An area of `size` bytes with the given arguments; at most `size - 1` bytes of them fit.
 *
 * @throws UsageError `kargs.malformed`, `kargs.too-large`
 */
export function encodeKargs(text: string, size: number, { pad, end }: KargsFiller): Uint8Array {
  if (CONTROL.test(text.trim())) {
    throw new UsageError(
      'kargs.malformed',
      'kernel arguments have a line break or a control character',
      {
        hint: 'give each argument separately, with --kargs-append or as its own entry',
      },
    );
  }
  const kargs = Buffer.from(text.trim() + end, 'utf8');
  if (kargs.length > size) {
    throw new UsageError(
      'kargs.too-large',
      `kernel arguments take ${kargs.length} bytes, but their area has ${size}`,
      {
        expected: `at most ${size}`,
        found: String(kargs.length),
        hint: 'append fewer or shorter kernel arguments',
      },
    );
  }
  const area = Buffer.alloc(size, pad, 'latin1');
  area.set(kargs);
  return area;
}

function trimEnd(text: string, character: string): string {
  let length = text.length;
  while (length > 0 && text[length - 1] === character) length -= 1;
  return text.slice(0, length);
}

/** One copy of the kernel arguments: in the menu of a boot loader, or in a boot image. */
export type KargArea = KargsFiller & {
  /** Path of the file, as in `coreos/kargs.json`; undefined when only a legacy header names it. */
  readonly path: string | undefined;
  /** Bytes from the start of the image. */
  readonly offset: number;
};

export type KargAreas = {
  /** The arguments of the areas, which all hold the same. */
  readonly text: string;
  /** The arguments that the image was built with. */
  readonly default: string;
  /** Bytes of each area. */
  readonly size: number;
  readonly areas: readonly KargArea[];
};

export type LocatedAreas = Omit<KargAreas, 'text'>;

const MAX_AREA_SIZE = 2048;
/** CoreOS has two to four. */
const MAX_AREAS = 64;
const LEGACY_AT = 32_672;
const LEGACY_SIZE = 72;
const LEGACY_MAGIC = 'coreKarg';
const LEGACY_FILLER: KargsFiller = { pad: '#', end: '\n' };

/**
 * The kernel argument areas that `coreos/kargs.json` lists; without that file, those of the `coreKarg`
 * header at the end of the System Area, which images before 2022 have.
 *
 * @throws IntegrityError `kargs.no-areas`, `kargs.area-too-large`, `kargs.areas-differ`,
 * `kargs.not-utf8`, `iso.malformed-json`, `iso.out-of-bounds`
 */
export async function readKargAreas(iso: ReadableIso): Promise<KargAreas> {
  const located = await locateKargAreas(iso);
  return { ...located, text: await readSameText(iso, located) };
}

/**
 * The kernel argument areas without their contents, which may differ.
 *
 * @throws IntegrityError `kargs.no-areas`, `kargs.area-too-large`, `iso.malformed-json`, `iso.out-of-bounds`
 */
export async function locateKargAreas(iso: ReadableIso): Promise<LocatedAreas> {
  const node = await iso.find('/coreos/kargs.json');
  const located = node
    ? await locateListed(iso, await readKargsFile(iso, node))
    : await locateLegacy(iso);
  const { size, areas } = located;
  const bytes = Buffer.byteLength(located.default);
  if (bytes >= size || CONTROL.test(located.default)) {
    throw new IntegrityError(
      'iso.malformed-json',
      `${KARGS_PATH} has a default of ${bytes} bytes, for areas of ${size}, that cannot be written`,
    );
  }
  if (areas.length === 0) throw createMissingError();
  if (size > MAX_AREA_SIZE) {
    throw new IntegrityError(
      'kargs.area-too-large',
      `kernel argument area has ${size} bytes, more than ${MAX_AREA_SIZE}`,
      { expected: `at most ${MAX_AREA_SIZE}`, found: String(size) },
    );
  }
  return located;
}

const CONTROL = /\p{Cc}/u;

async function readSameText(
  iso: ReadableIso,
  { size, areas }: Pick<LocatedAreas, 'size' | 'areas'>,
): Promise<string> {
  const texts = await Promise.all(
    areas.map(async (area) => parseKargs(await iso.readBytes(area.offset, size), area)),
  );
  const [first = ''] = texts;
  const odd = texts.findIndex((text) => text !== first);
  if (odd < 0) return first;
  throw new IntegrityError(
    'kargs.areas-differ',
    `kernel arguments at byte ${areas[0]?.offset ?? 0} are "${first}", but at byte ${areas[odd]?.offset ?? 0} "${texts[odd] ?? ''}"`,
    { expected: first, found: texts[odd] ?? '' },
  );
}

async function locateListed(iso: ReadableIso, json: KargsFile): Promise<LocatedAreas> {
  const { default: text, files, size } = json;
  if (files.length > MAX_AREAS) {
    throw new IntegrityError(
      'iso.malformed-json',
      `${KARGS_PATH} names ${files.length} files, more than ${MAX_AREAS}`,
    );
  }
  const areas: KargArea[] = [];
  for (const file of files) areas.push(await locateOne(iso, file, size));
  return { default: text.trim(), size, areas };
}

async function locateOne(
  iso: ReadableIso,
  { path, offset: skip = 0, pad = '#', end = '\n' }: KargsFile['files'][number],
  size: number,
): Promise<KargArea> {
  const { file, extent } = await findContiguousFile(iso, path);
  if (skip + size > file.size) {
    throw new IntegrityError(
      'iso.out-of-bounds',
      `kernel argument area of ${size} bytes at ${skip} ends past ${path}, which has ${file.size} bytes`,
    );
  }
  return { path, offset: extent.offset + skip, pad, end };
}

/** Magic, u64 size, u64 offset of the default, six u64 offsets of areas; the first 0 ends them. */
async function locateLegacy(iso: ReadableIso): Promise<LocatedAreas> {
  const header = Buffer.from(await iso.readBytes(LEGACY_AT, LEGACY_SIZE));
  if (header.toString('latin1', 0, 8) !== LEGACY_MAGIC) throw createMissingError();
  const numbers = Array.from({ length: 8 }, (_, index) =>
    Number(header.readBigUInt64LE(8 + index * 8)),
  );
  const [size = 0, defaultOffset = 0, ...offsets] = numbers;
  const count = offsets.indexOf(0);
  const areas = offsets
    .slice(0, count < 0 ? offsets.length : count)
    .map((offset) => ({ path: undefined, offset, ...LEGACY_FILLER }));
  const stored = await iso.readBytes(defaultOffset, Math.min(size, MAX_AREA_SIZE));
  return { default: parseKargs(stored, LEGACY_FILLER), size, areas };
}

const createMissingError = (): IntegrityError =>
  new IntegrityError(
    'kargs.no-areas',
    'image has no kernel argument areas: it is old, damaged, or not a CoreOS image',
  );

/** Changes of kernel arguments, in this order. */
export type KargEdits = {
  /** Runs of whole words; every one is removed. */
  readonly remove?: readonly string[];
  /** Added at the end. */
  readonly append?: readonly string[];
  /** `KEY=OLD=NEW`: every `KEY=OLD` becomes `KEY=NEW`. */
  readonly replace?: readonly string[];
};

/** Edits kernel arguments as CoreOS's own tool does. @throws UsageError `kargs.replace` */
export function editKargs(
  text: string,
  { append = [], remove = [], replace = [] }: KargEdits,
): string {
  const removed = remove.reduce(
    (line, karg) => line.replaceAll(` ${karg.trim()} `, ' '),
    ` ${text.trim()} `,
  );
  const appended = [removed.trim(), ...append.map((karg) => karg.trim())].join(' ').trim();
  return replace
    .map(parseReplacement)
    .reduce((line, { old, now }) => line.replaceAll(` ${old} `, () => ` ${now} `), ` ${appended} `)
    .trim();
}

/**
 * Splits `KEY=OLD=NEW` into `KEY=OLD` and `KEY=NEW`. A value with an equals sign has no such form.
 *
 * @throws UsageError `kargs.replace`
 */
export function parseReplacement(text: string): { readonly old: string; readonly now: string } {
  const [, key, old, now] = /^([^=]+)=([^=]+)=([^=]+)$/.exec(text) ?? [];
  if (key !== undefined && old !== undefined && now !== undefined)
    return { old: `${key}=${old}`, now: `${key}=${now}` };
  throw new UsageError('kargs.replace', `"${text}" does not say which argument is replaced`, {
    expected: 'KEY=OLD=NEW',
    found: text,
    hint: 'write console=ttyS0=ttyS1 to make console=ttyS1 out of console=ttyS0, or delete one argument and append another',
  });
}

/** Whole strings; in those with double quotes, GRUB replaces variables and escapes. */
const STRINGS = /'[^']*'|"[^"$\\]*"/g;
/** Characters with a meaning for GRUB; some only at the start of a word or as a whole word. */
const SPECIAL = /[&|;<>{}$\\'"]|(?<!\S)(?:#|(?:\[\[|\]\])(?!\S))/;

/**
 * Refuses kernel arguments that have another meaning in a GRUB menu: a machine would stop at GRUB's prompt, or
 * the kernel would get other arguments than from the ISOLINUX menu.
 *
 * @throws UsageError `kargs.special`
 */
export function requireMenuWords(kargs: readonly string[]): void {
  for (const karg of kargs) {
    const [found] = SPECIAL.exec(karg.trim().replaceAll(STRINGS, 'string')) ?? [];
    if (found === undefined) continue;
    throw new UsageError(
      'kargs.special',
      `a kernel argument has ${found}, which GRUB does not pass on`,
      {
        expected: 'none of & | ; < > { } $ \\, only whole strings, and no word that begins with #',
        found,
        hint: 'write the argument without it, for example a URL with only one query parameter',
      },
    );
  }
}
