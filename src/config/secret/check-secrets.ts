import { isPlaceholder, PLACEHOLDER_PROBLEM } from './placeholder.ts';

/**
 * What is wrong with a pull secret as a whole, each a sentence without its value: it must be a JSON
 * object whose `auths` has an entry with `auth` or `credsStore`. Others matter only where they are used.
 */
export function checkPullSecret(text: string): readonly string[] {
  if (isPlaceholder(text)) return [PLACEHOLDER_PROBLEM];
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    // The parser's own words quote the text, which is the secret.
    if (error instanceof SyntaxError) return ['is not JSON'];
    throw error;
  }
  if (!isObject(parsed)) return ['must be a JSON object'];
  const auths = parsed['auths'];
  if (!isObject(auths) || Object.keys(auths).length === 0)
    return ['must have "auths" with entries'];
  const empty = Object.entries(auths).filter(
    ([, entry]) => !isObject(entry) || !(hasText(entry, 'auth') || hasText(entry, 'credsStore')),
  );
  return empty.length < Object.keys(auths).length
    ? []
    : empty.map(([host]) => `entry ${JSON.stringify(host)} has neither "auth" nor "credsStore"`);
}

const KEY_TYPES = [
  'ssh-rsa',
  'ssh-dss',
  'ssh-ed25519',
  'ecdsa-sha2-nistp256',
  'ecdsa-sha2-nistp384',
  'ecdsa-sha2-nistp521',
  'sk-ssh-ed25519@openssh.com',
  'sk-ecdsa-sha2-nistp256@openssh.com',
];

/** One line of an authorized_keys file (sshd(8)): options, type, base64 (RFC 4253 6.6), comment. */
export function checkSshKey(text: string): string | undefined {
  if (text.includes('PRIVATE KEY')) return 'is a private key; the public one belongs here';
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '' && !line.startsWith('#'));
  const [line] = lines;
  if (line === undefined || lines.length > 1) return `must be one line, but has ${lines.length}`;
  return checkKeyFields(splitOutsideQuotes(line));
}

function checkKeyFields(fields: readonly string[]): string | undefined {
  const at = fields.findIndex((field) => KEY_TYPES.includes(field));
  if (at !== 0 && at !== 1) return `names no key type of ${KEY_TYPES.slice(0, 4).join(', ')}, ...`;
  const type = fields[at] ?? '';
  const blob = fields[at + 1] ?? '';
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(blob)) return `has no base64 text after "${type}"`;
  const bytes = Buffer.from(blob, 'base64');
  const inner = bytes.length < 4 ? '' : bytes.toString('latin1', 4, 4 + bytes.readUInt32BE(0));
  if (inner !== type) return `is called "${type}", but its base64 text holds another key type`;
  return bytes.length > 4 + type.length ? undefined : 'is cut off after its type';
}

function splitOutsideQuotes(line: string): readonly string[] {
  return line.match(/(?:"(?:\\.|[^"\\])*"|[^\s"])+/g) ?? [];
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const hasText = (value: Readonly<Record<string, unknown>>, key: string): boolean =>
  typeof value[key] === 'string' && value[key] !== '';
