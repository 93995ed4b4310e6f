import { type IpAddress, parseAddress } from '../base/ip-address.ts';
import { describeValue, suggestName, toPrintable } from '../base/text/words.ts';
import {
  decode,
  type Finding as ShapeFinding,
  formatSteps,
  type Path,
  YAML_RULES,
} from '../shape/decode.ts';
import {
  coreOf,
  described,
  FREE,
  matching,
  noted,
  oneOf,
  optional,
  parsed,
  type Shape,
  transform,
} from '../shape/shape.ts';
import { nameShape } from '../shape/words.ts';
import { isFloat, type WrittenOf } from './document.ts';

/*
 * This file owns the scalars of NMState, which the shapes of its documents are made of, and the words for
 * findings.
 */

/** A fact about one value of a document. */
export type NetworkFinding = {
  /** Path of the value from the root of the document: `interfaces[0].mtu`; empty for the document. */
  readonly path: string;
  /** Name of the interface to which the value belongs. */
  readonly owner?: string | undefined;
  readonly problem: string;
  readonly hint?: string | undefined;
  /** True if the value may be secret, because its member is unknown. */
  readonly hidesValue?: boolean;
  /** True if the owner is an interface that the MAC map lacks. */
  readonly isUnmapped?: boolean;
};

export type NetworkFindings = {
  readonly problems: NetworkFinding[];
  /** Members that nmstate knows, and that are not translated here. */
  readonly untranslated: NetworkFinding[];
};

/** Place of a part of a document, which is read by itself. */
export type NetworkPlace = {
  readonly path: Path;
  readonly owner?: string;
  readonly found: NetworkFindings;
  readonly writtenOf: WrittenOf;
};

export const below = (place: NetworkPlace, ...steps: Path): NetworkPlace => ({
  ...place,
  path: [...place.path, ...steps],
});

/** Reads a part of a document; undefined after a problem that leaves no value. */
export function readAlong<T>(shape: Shape<T>, value: unknown, place: NetworkPlace): T | undefined {
  const { path, owner, found, writtenOf } = place;
  const decoded = decode(shape, value, { ...YAML_RULES, path, writtenOf });
  for (const finding of decoded.findings) {
    const list = finding.code === 'noted' ? found.untranslated : found.problems;
    const about = { path: formatSteps(finding.path), owner };
    list.push({ ...about, ...explain(finding, writtenOf(about.path)) });
  }
  return decoded.value;
}

export const join = (path: string, name: string): string =>
  path === '' ? name : `${path}.${name}`;

type Explained = Pick<NetworkFinding, 'problem' | 'hint' | 'hidesValue'> & {
  readonly path?: string;
};

function explain(finding: ShapeFinding, written: string | undefined): Explained {
  const { code, path, shape, found, why } = finding;
  const name = String(path.at(-1));
  if (why !== undefined) return { problem: why };
  if (code === 'unknown') return explainUnknown(name, shape);
  if (code === 'missing') {
    return { path: formatSteps(path.slice(0, -1)), problem: `missing field '${name}'` };
  }
  const core = coreOf(shape);
  if (core.kind === 'parsed' && core.takesNull && isWrittenAsFloat(found, written)) {
    return { problem: `${written} is not written as a whole number` };
  }
  const isBare = core.kind === 'text' && code === 'type' && typeof found !== 'object';
  return { problem: `${expected(found, nameOf(core))}${isBare ? ': put it in quotes' : ''}` };
}

const nameOf = (shape: Shape): string =>
  shape.kind === 'choice'
    ? listWords(shape.words.map(String))
    : (shape.description ?? nameShape(shape));

/** Members of other tools, with what to write instead. */
const FOREIGN_WORDS: Readonly<Record<string, string>> = {
  ...spread('gateway gateway4 gateway6 via', 'write it as the next-hop-address of a route'),
  ...spread('dns nameserver nameservers', 'write it below dns-resolver.config.server'),
  ...spread('to dst', 'write it as the destination of a route'),
  ...spread('dev', 'write it as the next-hop-interface of a route'),
  ...spread('netmask', 'write prefix-length instead'),
  ...spread('addresses', 'write address instead'),
  ...spread('from', 'write ip-from instead'),
  ...spread('slaves', 'write port instead'),
  ...spread('bridge vlan link-aggregation vrf', 'set the type of the interface that has it'),
};

function spread(words: string, hint: string): Readonly<Record<string, string>> {
  return Object.fromEntries(words.split(' ').map((word) => [word, hint]));
}

function explainUnknown(name: string, shape: Shape): Explained {
  const { members = {}, aliases = {} } = shape.kind === 'record' ? shape : {};
  const known = [...Object.keys(members), ...Object.keys(aliases)];
  const spelling = (word: string): string => word.toLowerCase().replaceAll(/[-_]/g, '');
  const same = known.find((word) => spelling(word) === spelling(name));
  const hint =
    (same !== undefined && `did you mean "${same}"?`) ||
    (Object.hasOwn(FOREIGN_WORDS, name) ? FOREIGN_WORDS[name] : suggestName(name, known));
  return { problem: `unknown field "${name}"`, hint, hidesValue: true };
}

export const text = (pattern: RegExp, what: string): Shape<string> =>
  described(matching(pattern), what);

/** Reads a text that needs no quotes even if it is like a number: nmstate keeps only interfaces as JSON. */
export const unquoted = (of: Shape<string>): Shape<string> =>
  parsed(nameOf(coreOf(of)), (value, written) => {
    const isText = typeof value !== 'number' && typeof value !== 'boolean';
    return decode(of, isText ? value : (written ?? String(value))).value;
  });

const isWrittenAsFloat = (value: unknown, written: string | undefined): written is string =>
  Number.isInteger(value) && isFloat(written);

/** A number or a flag, for which nmstate has readers of its own: they refuse null and floats. */
const ofNumbers = <T>(what: string, parse: (value: unknown) => T | undefined): Shape<T> =>
  parsed(
    what,
    (value, written) => (isWrittenAsFloat(value, written) ? undefined : parse(value)),
    true,
  );

/** Reads a word, or its number from 0, as the kernel counts the values of an option. */
export const choice = <T extends string>(
  words: readonly T[],
  aliases: Readonly<Record<string, T>> = {},
): Shape<T> =>
  ofNumbers(listWords(words), (value) => {
    const written = typeof value === 'number' ? String(value) : value;
    return (
      words.find((each, at) => written === each || written === String(at)) ??
      (typeof written === 'string' && Object.hasOwn(aliases, written)
        ? aliases[written]
        : undefined)
    );
  });

/** Reads one of these words; the untranslated ones need nmstate, and have no value here. */
export const word = <const T extends string>(
  words: readonly T[],
  untranslated: readonly string[] = [],
): Shape<T | undefined> =>
  transform(
    noted(oneOf(...words, ...untranslated), (written) =>
      untranslated.includes(written)
        ? `is ${JSON.stringify(written)}, which needs nmstate`
        : undefined,
    ),
    (written) => words.find((each) => each === written),
  );

const listWords = (words: readonly string[]): string =>
  words.length === 1 ? String(words[0]) : `one of ${words.join(', ')}`;

/** Reads a flag in every spelling that nmstate accepts. */
export const flag: Shape<boolean> = ofNumbers('true or false', (value) => {
  const written = describeValue(value).toLowerCase();
  if (/^(?:1|true|yes|on|y)$/.test(written)) return true;
  return /^(?:0|false|no|off|n)$/.test(written) ? false : undefined;
});

/** Reads a whole number, also as a string; hexadecimal only if it cannot be negative. */
export const integer = (least: number, most: number): Shape<number> =>
  ofNumbers(`a whole number from ${least} to ${most}`, (value) => {
    const form = least < 0 ? /^[-+]?\d+$/ : /^(?:\+?\d+|0x[\da-fA-F]+)$/;
    const number = typeof value === 'string' && form.test(value) ? Number(value) : value;
    const isWithin = Number.isInteger(number) && Number(number) >= least && Number(number) <= most;
    return isWithin ? Number(number) : undefined;
  });

/** Reads a text by a function; undefined if the text is not `what`. */
export const parsedText = <T>(what: string, parse: (text: string) => T | undefined): Shape<T> =>
  parsed(what, (value) => (typeof value === 'string' ? parse(value) : undefined));

/** Reads an IP address without a zone. */
export const ip: Shape<IpAddress> = parsedText('an IP address', parseAddress);

/** The value if it can be translated, else what it needs. */
export const untranslated = <T>(of: Shape<T>): Shape<T> => noted(of, () => 'needs nmstate');

/** A value that only nmstate can translate; it is not checked. */
export const foreign = untranslated(FREE);

// eslint-disable-next-line @typescript-eslint/no-empty-object-type -- members without a type
type NoMembers = {};

/** Members with these names that only nmstate can translate. Their values have no use, and so no types. */
export const foreignMembers = (names: string): NoMembers =>
  Object.fromEntries(names.split(' ').map((each) => [each, optional(foreign)]));

export const expected = (value: unknown, what: string): string => `${quote(value)} is not ${what}`;

const MOST_QUOTED = 60;

export function quote(value: unknown): string {
  if (typeof value !== 'string') return toPrintable(describeValue(value));
  const shown = value.length > MOST_QUOTED ? `${value.slice(0, MOST_QUOTED)}...` : value;
  return toPrintable(JSON.stringify(shown));
}

/** A finding with its place, interface and member: `net.yaml:4: interface "eth0": mtu: ...`. */
export function formatFinding({ path, owner, problem }: NetworkFinding, place = ''): string {
  const member = owner === undefined ? path : path.replace(/^interfaces\[\d+\]\.?/, '');
  const who = owner === undefined ? '' : `interface "${toPrintable(owner)}"`;
  return [place, who, toPrintable(member), problem].filter((part) => part !== '').join(': ');
}
