/* Owns the elements of DER (ITU-T X.690, 10), as far as certificates need them. */

export type Element = {
  readonly tag: number;
  /** The contents, without tag and length. */
  readonly content: Buffer;
  /** Tag, length and contents. */
  readonly whole: Buffer;
};

export const DER = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  oid: 0x06,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
} as const;

/** Reads the elements that fill the bytes; undefined if one is malformed or incomplete. */
export function readElements(bytes: Buffer): readonly Element[] | undefined {
  const elements: Element[] = [];
  for (let rest = bytes; rest.length > 0;) {
    const element = readElement(rest);
    if (element === undefined) return undefined;
    elements.push(element);
    rest = rest.subarray(element.whole.length);
  }
  return elements;
}

/** The elements in a SEQUENCE; empty if there is no such, or if one of them is malformed. */
export const childrenOf = (element: Element | undefined): readonly Element[] =>
  element?.tag === DER.sequence ? (readElements(element.content) ?? []) : [];

/** Reads the first element; undefined if it is malformed, incomplete or not in its shortest form. */
export function readElement(bytes: Buffer): Element | undefined {
  const head = readHead(bytes);
  const end = head && head.size + head.length;
  if (end === undefined || end > bytes.length) return undefined;
  const [tag = 0] = bytes;
  return { tag, content: bytes.subarray(head?.size, end), whole: bytes.subarray(0, end) };
}

const isLongTag = (tag: number): boolean => (tag & 0x1f) === 0x1f;

/** Sizes of the tag with its length, and of the contents (X.690, 8.1 and 10.1). */
function readHead(bytes: Buffer): { readonly size: number; readonly length: number } | undefined {
  const [tag, first] = bytes;
  if (tag === undefined || first === undefined || isLongTag(tag)) return undefined;
  if (first < 0x80) return { size: 2, length: first };
  const count = first & 0x7f;
  if (count === 0 || count > 4 || bytes.length < 2 + count) return undefined;
  const length = bytes.readUIntBE(2, count);
  const isShortest = length >= 0x80 && length >= 2 ** (8 * (count - 1));
  return isShortest ? { size: 2 + count, length } : undefined;
}
