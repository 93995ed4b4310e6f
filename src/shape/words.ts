import { formatSteps, type Finding } from './decode.ts';
import { coreOf, type Shape } from './shape.ts';

/* Owns the words for findings about JSON. A configuration has words of its own. */

/**
 * The finding as a sentence; a text is quoted up to 40 characters.
 *
 * @param whole the subject for a fault of the whole value; absent: the sentence has no subject
 */
export function describeFinding(
  { path, code, shape, found, why }: Finding,
  whole?: string,
): string {
  const subject = path.length === 0 ? whole : formatSteps(path);
  const place = subject === undefined ? '' : `${subject} `;
  if (why !== undefined) return `${place}${why}`;
  if (code === 'unknown') return `${place}is not a known member`;
  return `${place}should be ${nameShape(shape)}, but is ${nameType(found)}`;
}

/** The values that a shape allows: `a string`, `an object`, `1 or 2`. */
export function nameShape(shape: Shape): string {
  const core = coreOf(shape);
  if (core.kind === 'choice') return core.words.map((word) => JSON.stringify(word)).join(' or ');
  if (core.kind === 'integer') return nameRange(core);
  if (core.kind === 'parsed') return core.what;
  if (core.kind === 'tuple') return `a list of ${core.items.length}`;
  if (core.kind !== 'text') return NAMES[core.kind] ?? 'a value';
  if (core.pattern) return `a string that matches ${core.pattern.source}`;
  return core.isFilled === true ? 'a string that is not empty' : 'a string';
}

function nameRange({ least, most }: { readonly least?: number; readonly most?: number }): string {
  if (least === undefined) return 'an integer';
  return most === undefined
    ? `an integer of at least ${least}`
    : `an integer from ${least} to ${most}`;
}

const NAMES: Readonly<Record<string, string>> = {
  flag: 'true or false',
  list: 'a list',
  mapping: 'an object',
  record: 'an object',
};

/** The type of a value, in the words of RFC 8259; a short value with its text. */
export function nameType(value: unknown): string {
  if (value === undefined) return 'absent';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'an object';
  if (typeof value === 'string') return `the string ${JSON.stringify(value.slice(0, 40))}`;
  if (typeof value === 'number' || typeof value === 'boolean')
    return `the ${typeof value} ${value}`;
  return `a ${typeof value}`;
}
