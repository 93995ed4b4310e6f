import { readOptions } from './ssh-options.ts';

/* Owns the lines of authorized_keys (sshd(8)): comments, options, type, key blob. */

export type SshKey = {
  /** The algorithm that the key itself names, such as `ssh-ed25519`. */
  readonly algorithm: string;
  /** The line of authorized_keys, without the blanks around it. */
  readonly line: string;
};

export type SshKeys = {
  readonly keys: readonly SshKey[];
  /** The first fault; it repeats no part of the text, which may be a private key. */
  readonly problem?: string;
};

const HOW_TO_CONVERT =
  'give the line that PuTTYgen shows for authorized_keys, or that "ssh-keygen -i -f FILE" prints';

/** Reads authorized_keys as sshd does: `[options] type base64 [comment]`, empty lines, comment lines. */
export function readSshKeys(text: string): SshKeys {
  if (/PRIVATE KEY|^PuTTY-User-Key-File-/m.test(text)) {
    return { keys: [], problem: 'is a private key; give the public key' };
  }
  if (text.includes('BEGIN SSH2 PUBLIC KEY')) {
    return { keys: [], problem: `is in the format of RFC 4716; ${HOW_TO_CONVERT}` };
  }
  const lines = text.split('\n').map((line) => line.replace(/^[ \t]+|(?<![ \t\r])[ \t\r]+$/g, ''));
  const entries = lines.flatMap((line, index) =>
    line === '' || line.startsWith('#') ? [] : [{ line, number: index + 1 }],
  );
  if (entries.length === 0) return { keys: [], problem: 'has no key' };
  const keys: SshKey[] = [];
  for (const { line, number } of entries) {
    const read = readLine(line);
    if ('problem' in read) {
      const place = lines.length > 1 && entries.length > 1 ? `line ${number} ` : '';
      return { keys, problem: place + read.problem };
    }
    keys.push({ ...read, line });
  }
  return { keys };
}

type Reading = { readonly algorithm: string } | { readonly problem: string };

function readLine(line: string): Reading {
  const odd = findOddCharacter(line);
  if (odd !== undefined) return { problem: odd };
  const words = line.split(/[ \t]+/);
  if (isType(words[0])) return readKey(words);
  const options = readOptions(line);
  if ('problem' in options) return options;
  const rest = options.rest.split(/[ \t]+/);
  if (isType(rest[0])) return readKey(rest);
  return { problem: `has no key type such as ${SSH_KEY_TYPES.slice(0, 4).join(', ')}, ...` };
}

/** Characters that come with copying from a document or a shell, and that sshd does not skip. */
function findOddCharacter(line: string): string | undefined {
  if (line.startsWith('\ufeff')) return 'begins with a byte order mark (U+FEFF); remove it';
  const blank = /(?![ \t])[\p{Z}\p{Cc}\p{Cf}]/u.exec(withoutComment(line))?.[0];
  if (blank !== undefined) {
    const code = (blank.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
    return `has the character U+${code}${blank === '\u00a0' ? ', a no-break space,' : ''} instead of a space`;
  }
  return /^["'\u2018-\u201f]/.test(line) ? 'begins with a quotation mark; remove it' : undefined;
}

/** A comment may have any character: sshd does not read it. */
const withoutComment = (line: string): string =>
  /^(?:.*[ \t])?[a-z0-9@.-]+[ \t]+AAAA[A-Za-z0-9+/]+={0,2}(?=[ \t])/.exec(line)?.[0] ?? line;

const isType = (word = ''): boolean =>
  SSH_KEY_TYPES.includes(word) || word.endsWith('-cert-v01@openssh.com');

function readKey([type = '', blob = '']: readonly string[]): Reading {
  if (type.endsWith('-cert-v01@openssh.com')) {
    return { problem: 'is a certificate, by which sshd lets no user in; give the public key' };
  }
  if (/["']$/.test(blob)) return { problem: 'ends with a quotation mark; remove it' };
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(blob))
    return { problem: `has no base64 text after "${type}"` };
  const bytes = Buffer.from(blob, 'base64');
  if (blob.length % 4 !== 0) return { problem: 'is cut short: its base64 text is incomplete' };
  const problem = judgeBlob(type, splitStrings(bytes));
  return problem === undefined ? { algorithm: type } : { problem };
}

/** Strings after their lengths in four bytes (RFC 4251, 5); `isWhole`: the last one is complete. */
function splitStrings(blob: Buffer): {
  readonly strings: readonly Buffer[];
  readonly isWhole: boolean;
} {
  const strings: Buffer[] = [];
  let at = 0;
  while (at + 4 <= blob.length) {
    const end = at + 4 + blob.readUInt32BE(at);
    if (end > blob.length) break;
    strings.push(blob.subarray(at + 4, end));
    at = end;
  }
  return { strings, isWhole: at === blob.length };
}

type FieldRule = (field: Buffer) => string | undefined;

/** A positive number (RFC 4251, 5) in its shortest form. */
const number: FieldRule = (field) =>
  field.length === 0 || (field[0] ?? 0) > 127 || (field[0] === 0 && (field[1] ?? 0) < 128)
    ? 'has a malformed number'
    : undefined;

const MODULUS_BITS = 1024;

const modulus: FieldRule = (field) =>
  number(field) ??
  (field.length * 8 < MODULUS_BITS ? `has fewer than ${MODULUS_BITS} bits` : undefined);

const exponent: FieldRule = (field) =>
  number(field) ?? (((field.at(-1) ?? 0) & 1) === 0 ? 'has an even exponent' : undefined);

const sized =
  (size: number): FieldRule =>
  (field) =>
    field.length === size ? undefined : `has ${field.length} bytes of key instead of ${size}`;

/** An uncompressed point of a curve (SEC 1, 2.3.3). */
const point =
  (size: number): FieldRule =>
  (field) =>
    field[0] === 4 ? sized(1 + 2 * size)(field) : 'has a malformed point';

const word =
  (text: string): FieldRule =>
  (field) =>
    field.toString('latin1') === text ? undefined : 'names another curve than its type';

const any: FieldRule = () => undefined;

/**
 * The fields after the algorithm's name: RFC 4253, 6.6; RFC 5656, 3.1; RFC 8709, 4; OpenSSH's PROTOCOL.u2f.
 */
const FIELDS: ReadonlyMap<string, readonly FieldRule[]> = new Map([
  ['ssh-rsa', [exponent, modulus]],
  ['ssh-dss', [number, number, number, number]],
  ['ssh-ed25519', [sized(32)]],
  ['ecdsa-sha2-nistp256', [word('nistp256'), point(32)]],
  ['ecdsa-sha2-nistp384', [word('nistp384'), point(48)]],
  ['ecdsa-sha2-nistp521', [word('nistp521'), point(66)]],
  ['sk-ssh-ed25519@openssh.com', [sized(32), any]],
  ['sk-ecdsa-sha2-nistp256@openssh.com', [word('nistp256'), point(32), any]],
]);

/** Types of keys that sshd knows, the usual ones first. */
const SSH_KEY_TYPES: readonly string[] = [...FIELDS.keys()];

function judgeBlob(
  type: string,
  { strings, isWhole }: ReturnType<typeof splitStrings>,
): string | undefined {
  const [name, ...fields] = strings;
  if (name !== undefined && name.toString('latin1') !== type)
    return `says "${type}", but its base64 text contains another key type`;
  const rules = FIELDS.get(type) ?? [];
  if (fields.length < rules.length) return 'is cut short: its base64 text ends within the key';
  if (fields.length > rules.length || !isWhole) return 'has bytes after the key';
  return rules.map((rule, index) => rule(fields[index] ?? Buffer.of())).find(Boolean);
}
