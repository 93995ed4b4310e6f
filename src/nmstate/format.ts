import { parseMacAddress } from '../base/mac-address.ts';
import { escapeCharacter } from '../base/text/words.ts';
import { isOtherInYaml } from '../shape/decode-yaml.ts';
import type { Plain } from '../shape/shape.ts';

/* This file owns the normal form of an nmstate document, in which it goes to a node. */

/** Plain scalars to every reader of YAML: no indicator at the beginning, no colon at the end of a word. */
const PLAIN =
  /^(?:[A-Za-z0-9_./]|:(?=[^ ]))(?:[A-Za-z0-9_./+@%=-]|:(?=[^ ])| (?=[A-Za-z0-9_./]))*$/;

/** Characters that a single-quoted text on one line cannot show (YAML 1.1, 5.1 and 9.2). */
// eslint-disable-next-line no-control-regex -- control characters are what it looks for
const UNPRINTABLE = /[\0-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]/;

/**
 * Formats an nmstate document in its normal form: keys sorted on every level, two spaces for each level,
 * lists not indented, quotes only if YAML 1.1 would read another type, MAC addresses with colons, a newline
 * at the end.
 */
export const formatNetworkConfig = (value: Plain): string =>
  isEmpty(value) ? `${formatScalar(value)}\n` : `${formatBlock(value, '').join('\n')}\n`;

function formatBlock(value: Plain, indent: string): readonly string[] {
  if (Array.isArray(value)) {
    return (value as readonly Plain[]).flatMap((item) => {
      if (isEmpty(item)) return [`${indent}- ${formatScalar(item)}`];
      const [first = '', ...rest] = formatBlock(item, `${indent}  `);
      return [`${indent}- ${first.slice(indent.length + 2)}`, ...rest];
    });
  }
  const map = value as Readonly<Record<string, Plain>>;
  return Object.keys(map)
    .toSorted(compareCodePoints)
    .flatMap((key) => formatMember(key, map[key] ?? null, indent));
}

/** nmstate compares the text of an address with that of the kernel, and undoes the network if they differ. */
function formatMac(text: string): string {
  const mac = parseMacAddress(text)?.toUpperCase() ?? text;
  return mac === text.toUpperCase() ? text : mac;
}

function formatMember(key: string, written: Plain, indent: string): readonly string[] {
  const isMac = key === 'mac-address' && typeof written === 'string';
  const value = isMac ? formatMac(written) : written;
  const name = `${indent}${formatText(key)}:`;
  if (isEmpty(value)) return [`${name} ${formatScalar(value)}`];
  return [name, ...formatBlock(value, Array.isArray(value) ? indent : `${indent}  `)];
}

/** True if the value fits on one line: a scalar, or a collection without members. */
const isEmpty = (value: Plain): boolean =>
  typeof value !== 'object' || value === null || Object.keys(value).length === 0;

function formatScalar(value: Plain): string {
  if (typeof value === 'string') return formatText(value);
  if (Array.isArray(value)) return '[]';
  return typeof value === 'object' && value !== null ? '{}' : String(value);
}

function formatText(text: string): string {
  if (isOtherInYaml(text)) return JSON.stringify(text);
  if (PLAIN.test(text)) return text;
  if (!UNPRINTABLE.test(text.replaceAll(/[\ud800-\udbff][\udc00-\udfff]/g, ''))) {
    return `'${text.replaceAll("'", "''")}'`;
  }
  return JSON.stringify(text).replaceAll(
    /[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/g,
    escapeCharacter,
  );
}

/** Compares by UTF-8 bytes. */
const compareCodePoints = (a: string, b: string): number =>
  Buffer.compare(Buffer.from(a), Buffer.from(b));
