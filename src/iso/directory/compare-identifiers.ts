/**
 * The order of records in a directory (ECMA-119 9.3): names as if filled up with spaces, then
 * extensions the same way, then versions from high to low. Negative when `a` comes first.
 */
export function compareIdentifiers(a: Uint8Array, b: Uint8Array): number {
  const [left, right] = [split(a), split(b)];
  return (
    comparePadded(left.name, right.name) ||
    comparePadded(left.extension, right.extension) ||
    right.version - left.version
  );
}

type Parts = { readonly name: string; readonly extension: string; readonly version: number };

function split(identifier: Uint8Array): Parts {
  const [text = '', version = '0'] = Buffer.from(identifier).toString('latin1').split(';');
  const dot = text.indexOf('.');
  const name = dot < 0 ? text : text.slice(0, dot);
  const extension = dot < 0 ? '' : text.slice(dot + 1);
  return { name, extension, version: Number(version) || 0 };
}

function comparePadded(a: string, b: string): number {
  const length = Math.max(a.length, b.length);
  const [left, right] = [a.padEnd(length), b.padEnd(length)];
  if (left === right) return 0;
  return left < right ? -1 : 1;
}
