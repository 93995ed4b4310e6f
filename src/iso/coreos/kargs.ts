import { IntegrityError, UsageError } from '../../base/errors.ts';

/** How a kernel argument area is filled: both are one byte. */
export type KargsFiller = {
  /** Fills the rest of the area; default of CoreOS `#`. */
  readonly pad: string;
  /** Stands behind the arguments; default of CoreOS a newline. */
  readonly end: string;
};

/**
 * The arguments that an area holds.
 *
 * @throws IntegrityError `kargs.not-utf8`
 */
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
  if (/\p{Cc}/u.test(text.trim())) {
    throw new UsageError(
      'kargs.malformed',
      'kernel arguments have a line break or a control character',
      {
        hint: 'Give each argument on its own, with --kargs-append or as an entry of its own.',
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
        hint: 'Append fewer or shorter kernel arguments.',
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
