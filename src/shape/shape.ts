/**
 * The allowed values at a place of a document. Members of a record match without regard to case,
 * as in Go's JSON decoder; keys of a map and of free data are kept as written.
 */
export type Shape =
  | { readonly kind: 'text' | 'flag' | 'integer' | 'free' }
  | { readonly kind: 'list' | 'map'; readonly of: Shape }
  | {
      readonly kind: 'record';
      readonly members: Readonly<Record<string, Shape>>;
      /** True for a whole document whose unknown members cause warnings and not problems. */
      readonly isLenient?: boolean;
    };

/** Plain data: members of records spelled as in their shape, other keys as written. */
export type Plain =
  null | boolean | number | string | readonly Plain[] | { readonly [key: string]: Plain };

/**
 * The value that is read along a shape: an absent or empty value, or a value of another type, is
 * left out.
 */
export type ValueOf<S> = S extends { kind: 'text' }
  ? string
  : S extends { kind: 'flag' }
    ? boolean
    : S extends { kind: 'integer' }
      ? number
      : S extends { kind: 'list'; of: infer Item }
        ? readonly (ValueOf<Item> | undefined)[]
        : S extends { kind: 'map'; of: infer Item }
          ? Readonly<Record<string, ValueOf<Item>>>
          : S extends { kind: 'record'; members: infer Members }
            ? { readonly [Name in keyof Members]?: ValueOf<Members[Name]> }
            : Plain;

export const TEXT = { kind: 'text' } as const;
export const FLAG = { kind: 'flag' } as const;
export const INTEGER = { kind: 'integer' } as const;
export const FREE = { kind: 'free' } as const;

export const list = <S extends Shape>(of: S) => ({ kind: 'list', of }) as const;
export const map = <S extends Shape>(of: S) => ({ kind: 'map', of }) as const;
export const record = <M extends Readonly<Record<string, Shape>>>(members: M) =>
  ({ kind: 'record', members }) as const;

/** The same shape of a document, but unknown members only cause warnings, on every level. */
export const lenient = <S extends { readonly kind: 'record' }>(shape: S): S => ({
  ...shape,
  isLenient: true,
});

/** Names of the types for problems. */
export const TYPES: Readonly<Record<Shape['kind'], string>> = {
  text: 'a field of type string',
  flag: 'a field of type bool',
  integer: 'a field of type int',
  list: 'a field of type list',
  map: 'a field of type map',
  record: 'a field of type object',
  free: 'a field',
};
