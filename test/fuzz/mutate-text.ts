import type { Random } from '../faults/random.ts';
import { LARGEST, repeatPart, type Mutation } from './mutation.ts';

/** Words of a text: names, numbers, and the signs between them. */
const WORD = /-?\d+(?:\.\d+)?|"(?:[^"\\\n]|\\.)*"|[A-Za-z_][\w.-]*|[^\w\s]/g;

const NUMBERS = ['0', '1', '-1', '9007199254740993', '1e999', '18446744073709551615', '0x10'];
const VALUES = ['null', '""', '[]', '{}', '"\\u0000"', '"__proto__"', '&a [*a,*a]', '*a', '---'];
const ODD = ['null', ...VALUES, ...NUMBERS] as const;

type Span = { readonly start: number; readonly end: number };

/** In the first 64 KiB. */
function wordIn(text: string, random: Random): Span | undefined {
  const words = [...text.slice(0, 1 << 16).matchAll(WORD)];
  const word = words[random.below(words.length)];
  return word && { start: word.index, end: word.index + word[0].length };
}

const replace = (text: string, { start, end }: Span, by: string): Buffer =>
  Buffer.from(text.slice(0, start) + by + text.slice(end), 'latin1');

/** Another word in the place of one: of the text itself (a reference to oneself), or an odd one. */
const setWord: Mutation = (bytes, { random }) => {
  const text = bytes.toString('latin1');
  const [word, from] = [wordIn(text, random), wordIn(text, random)];
  if (!word || !from) return bytes;
  const own = text.slice(from.start, from.end);
  return replace(text, word, random.chance(0.4) ? own : random.pick(ODD));
};

/** Brackets, quotes and spaces in depths that recursion does not survive. */
const nest: Mutation = (bytes, { random }) => {
  const at = random.below(bytes.length);
  const depth = random.pick([100, 10_000, 500_000]);
  const open = random.pick(['[', '{"a":', '- ', '{a: ', '"', '\\', '(', ' ', '{{ ', '? ']);
  const filler = open.repeat(Math.min(depth, Math.floor(LARGEST / open.length)));
  return Buffer.concat([bytes.subarray(0, at), Buffer.from(filler), bytes.subarray(at)]);
};

/** As {@link nest}, with the ends: what is well-formed gets further. */
const wrap: Mutation = (bytes, { random }) => {
  const text = bytes.toString('latin1');
  const word = wordIn(text, random);
  return word ? replace(text, word, wrapValue(text.slice(word.start, word.end), random)) : bytes;
};

function wrapValue(value: string, random: Random): string {
  const [open, close] = random.pick([['[', ']'] as const, ['{"a":', '}'] as const]);
  const depth = random.pick([10, 300, 20_000]);
  return open.repeat(depth) + value + close.repeat(depth);
}

/** A word and what follows it, with a number each time, so that no two are equal. */
const count: Mutation = (bytes, { random }) => {
  const text = bytes.toString('latin1');
  const word = wordIn(text, random);
  if (!word) return bytes;
  const isQuoted = text[word.end - 1] === '"';
  const middle = word.end - Number(isQuoted);
  const next = random.chance(0.5) ? word.end + 1 : text.indexOf('\n', word.end) + 1;
  const [head, tail] = [text.slice(word.start, middle), text.slice(middle, next)];
  const most = Math.floor((LARGEST - text.length) / (next - word.start + 6));
  const times = Math.max(0, Math.min(random.pick([100, 10_000, Infinity]), most));
  const all = Array.from({ length: times }, (_, index) => `${head}${index}${tail}`).join('');
  return replace(text, { start: word.start, end: word.start }, all);
};

/** A line again and again. */
const repeatLine: Mutation = (bytes, { random }) => {
  const start = bytes.lastIndexOf(10, random.below(bytes.length)) + 1;
  const end = bytes.indexOf(10, start) + 1;
  return end <= start
    ? bytes
    : repeatPart(bytes, { start, end, count: random.pick([1, 1000, Infinity]) });
};

type Slot = { readonly parent: Record<string, unknown>; readonly key: string };

/** Deeper ones than the stack would take are larger. */
const LARGEST_PARSED = 16 << 10;

const MARK = '"(here)"';

/** A member of JSON is left out, is there in another form, or many times; of a line, where that is JSON. */
const setMember: Mutation = (bytes, context) => {
  const { random } = context;
  const text = bytes.toString('latin1');
  const span = text.startsWith('{\n') ? { start: 0, end: text.length } : lineIn(text, random);
  const document =
    bytes.length > LARGEST_PARSED ? undefined : parse(text.slice(span.start, span.end));
  const slots = listSlots(document);
  const slot = slots[random.below(slots.length)];
  if (!slot) return setWord(bytes, context);
  const value = JSON.stringify(slot.parent[slot.key]);
  const other = slots[random.below(slots.length)];
  const isLeftOut = random.chance(0.3);
  if (isLeftOut && Array.isArray(slot.parent)) slot.parent.splice(Number(slot.key), 1);
  else if (isLeftOut) Reflect.deleteProperty(slot.parent, slot.key);
  else slot.parent[slot.key] = JSON.parse(MARK);
  const most = Math.floor(LARGEST / (value.length + 1));
  const odd = random.pick([
    () => random.pick(ODD),
    () => wrapValue(value, random),
    () => `[${`${value},`.repeat(Math.min(random.pick([1, 1000, 50_000]), most))}0]`,
    () => (other ? JSON.stringify(other.parent[other.key]) : '""'),
    () => `"${'x'.repeat(random.pick([100, 5000, 1 << 20]))}"`,
  ])();
  return replace(
    text,
    span,
    JSON.stringify(document).replace(MARK, () => odd),
  );
};

function lineIn(text: string, random: Random): Span {
  const start = text.lastIndexOf('\n', random.below(text.length)) + 1;
  const end = text.indexOf('\n', start);
  return { start, end: end < 0 ? text.length : end };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Where a JSON value has its members and elements, in its first levels. */
function listSlots(value: unknown, levels = 12): readonly Slot[] {
  if (typeof value !== 'object' || value === null || levels === 0) return [];
  const parent = value as Record<string, unknown>;
  return Object.keys(parent).flatMap((key) => [
    { parent, key },
    ...listSlots(parent[key], levels - 1),
  ]);
}

export const TEXT_MUTATIONS = [
  ...[setWord, setWord, nest, wrap, count, repeatLine],
  ...[setMember, setMember, setMember],
] as const;
