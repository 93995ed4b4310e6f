import { explainDigest, type Digest } from '../base/digest.ts';

/*
 * Owns the language in which foreign values are described: one shape serves YAML with places, JSON
 * and Go's JSON. A shape is data, so that reading, the JSON Schema and the hints walk one table.
 */

declare const VALUE: unique symbol;

/** The values that are allowed at a place, and what they are read as. */
export type Shape<T = unknown> = ShapeNode & {
  /** The type of the read value; no shape has it when the program runs. */
  readonly [VALUE]?: T;
};

export type TypeOf<S> = S extends { readonly [VALUE]?: infer T } ? T : never;

export type ShapeNode = {
  /** Meaning of the value, for editors and the documentation. */
  readonly description?: string;
} & (
  | { readonly kind: 'text'; readonly pattern?: RegExp; readonly isFilled?: boolean }
  | { readonly kind: 'integer'; readonly least?: number; readonly most?: number }
  | { readonly kind: 'flag' | 'free' }
  | { readonly kind: 'choice'; readonly words: readonly (string | number)[] }
  | { readonly kind: 'list'; readonly of: Shape; readonly isUnique: boolean }
  | { readonly kind: 'tuple'; readonly items: readonly Shape[] }
  | { readonly kind: 'mapping'; readonly of: Shape }
  | RecordNode
  | { readonly kind: 'otherwise'; readonly of: Shape; readonly value: unknown }
  | { readonly kind: 'refined'; readonly of: Shape; readonly why: Why }
  | {
      readonly kind: 'mapped';
      readonly of: Shape;
      readonly to: (value: never, at: Steps) => unknown;
    }
  | {
      readonly kind: 'parsed';
      readonly what: string;
      readonly parse: Parse;
      readonly takesNull: boolean;
    }
  | { readonly kind: 'noted'; readonly of: Shape; readonly why: Why }
);

type Why = (value: never) => string | undefined;
type Steps = readonly (string | number)[];
type Parse = (value: unknown, written: string | undefined) => unknown;

export type RecordNode = About & {
  readonly kind: 'record';
  readonly members: Readonly<Record<string, MemberNode>>;
};

/** A member that must exist, that may be absent, or that has a default. */
type MemberNode = Shape | OptionalNode;
type OptionalNode = {
  readonly kind: 'optional';
  readonly of: Shape;
  readonly value?: () => unknown;
};

type Optional<T> = OptionalNode & { readonly [VALUE]?: T };
type Defaulted<T> = Optional<T> & { readonly value: () => T };

export type About = {
  /** Members that the shape does not name; absent: `refused`. `warned` holds for the whole document below. */
  readonly others?: 'refused' | 'warned' | 'kept' | 'left-out';
  readonly aliases?: Readonly<Record<string, string>>;
};

/** The manner of most foreign documents: members that we do not read are of no interest. */
export const LEFT_OUT = { others: 'left-out' } as const;

/** Plain data: members of records spelled as in their shape, other keys as written. */
export type Plain =
  null | boolean | number | string | readonly Plain[] | { readonly [key: string]: Plain };

/** A text; in YAML a scalar stays as written: 4.20 is "4.20". */
export const TEXT: Shape<string> = { kind: 'text' };
/** A text with at least one character. */
export const FILLED: Shape<string> = { kind: 'text', isFilled: true };
export const FLAG: Shape<boolean> = { kind: 'flag' };
export const INTEGER: Shape<number> = { kind: 'integer' };
/** Any value, also null. */
export const FREE: Shape<Plain> = { kind: 'free' };

export const matching = (pattern: RegExp): Shape<string> => ({ kind: 'text', pattern });

export const integerFrom = (least: number, most?: number): Shape<number> => ({
  kind: 'integer',
  least,
  ...(most !== undefined && { most }),
});

export const oneOf = <const W extends readonly (string | number)[]>(
  ...words: W
): Shape<W[number]> => ({ kind: 'choice', words });

export const list = <T>(of: Shape<T>, isUnique = false): Shape<readonly T[]> => ({
  kind: 'list',
  of,
  isUnique,
});

/** A list of so many items, each with its own shape. */
export const tuple = <const S extends readonly Shape[]>(
  ...items: S
): Shape<{ readonly [K in keyof S]: TypeOf<S[K]> }> => ({ kind: 'tuple', items });

/** Any keys, with values of one shape. */
export const mapping = <T>(of: Shape<T>): Shape<Readonly<Record<string, T>>> => ({
  kind: 'mapping',
  of,
});

/** Reads null, an absent value, and a value of another shape (after a finding) as `value`. */
export const otherwise = <T, U>(of: Shape<T>, value: U): Shape<T | U> => ({
  kind: 'otherwise',
  of,
  value,
});

/** A value that must also pass `why`, which names what is wrong; undefined if nothing is. */
export const refine = <T>(of: Shape<T>, why: (value: T) => string | undefined): Shape<T> => ({
  kind: 'refined',
  of,
  why,
});

/** @param to gets the place of the value as well, in a list that is valid during the call */
export const transform = <T, U>(of: Shape<T>, to: (value: T, at: Steps) => U): Shape<U> => ({
  kind: 'mapped',
  of,
  to,
});

/**
 * A scalar in the forms of one consumer.
 *
 * @param what noun for messages: `a MAC address`
 * @param parse gets the text of a number or a flag, if it is known; undefined if the value is not `what`
 * @param takesNull true: null is a value as well, even where it counts as absent
 */
export const parsed = <T>(
  what: string,
  parse: (value: unknown, written: string | undefined) => T | undefined,
  takesNull = false,
): Shape<T> => ({ kind: 'parsed', what, parse, takesNull });

/** A value that is read, and reported if `why` says something of it, though it is not wrong. */
export const noted = <T>(of: Shape<T>, why: (value: T) => string | undefined): Shape<T> => ({
  kind: 'noted',
  of,
  why,
});

export const DIGEST = refine(TEXT, explainDigest) as Shape<Digest>;

/** Limit on offsets and sizes: far larger than any medium, and the sum of two is still exact. */
const LARGEST_COUNT = 2 ** 52 - 1;

/** A number of bytes. */
export const COUNT = integerFrom(0, LARGEST_COUNT);

export const described = <S extends Shape>(shape: S, description: string): S => ({
  ...shape,
  description,
});

export const optional = <T>(of: Shape<T>, description?: string): Optional<T> => ({
  kind: 'optional',
  of: description === undefined ? of : described(of, description),
});

// V keeps the default's literal type: a choice refuses a wider one.
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters
export const defaulted = <T, const V extends T>(
  of: Shape<T>,
  value: () => V,
  description?: string,
): Defaulted<T> => ({ ...optional(of, description), value });

type Members = Readonly<Record<string, Shape | Optional<unknown>>>;

type IsAbsent<M> = M extends { readonly kind: 'optional' }
  ? M extends { readonly value: () => unknown }
    ? false
    : true
  : false;

type Read<M extends Members> = Flat<
  { readonly [K in keyof M as IsAbsent<M[K]> extends true ? never : K]: TypeOf<M[K]> } & {
    readonly [K in keyof M as IsAbsent<M[K]> extends true ? K : never]?: TypeOf<M[K]>;
  }
>;
type Flat<T> = { [K in keyof T]: T[K] };

type RecordShape<T, M> = Shape<T> & RecordNode & { readonly members: M };

export const record = <const M extends Members>(
  members: M,
  about: About = {},
): RecordShape<Read<M>, M> => ({ kind: 'record', members, ...about });

type AllOptional<M extends Readonly<Record<string, Shape>>> = {
  readonly [K in keyof M]: Optional<TypeOf<M[K]>>;
};

/** A record whose members may all be absent. */
export const partial = <const M extends Readonly<Record<string, Shape>>>(
  members: M,
  about: About = {},
): RecordShape<Read<AllOptional<M>>, AllOptional<M>> => {
  const all = Object.entries(members).map(([name, shape]) => [name, optional(shape)] as const);
  return record(Object.fromEntries(all) as AllOptional<M>, about);
};

export const shapeOf = (member: MemberNode): Shape =>
  member.kind === 'optional' ? member.of : member;

/** The shape without what only changes how its value is read. */
export const coreOf = (shape: Shape): Shape =>
  WRAPPING.includes(shape.kind) ? coreOf((shape as { readonly of: Shape }).of) : shape;

const WRAPPING: readonly string[] = ['otherwise', 'refined', 'mapped', 'noted'];

/** The names of all members on any level. */
export function listMemberNames(shape: Shape): readonly string[] {
  const core = coreOf(shape);
  if (core.kind === 'list' || core.kind === 'mapping') return listMemberNames(core.of);
  if (core.kind !== 'record') return [];
  return Object.entries(core.members).flatMap(([name, member]) => [
    name,
    ...listMemberNames(shapeOf(member)),
  ]);
}
