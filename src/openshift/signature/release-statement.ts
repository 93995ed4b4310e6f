import { isDigest, type Digest } from '../../base/digest.ts';
import { IntegrityError } from '../../base/errors.ts';
import type { Release } from '../release/release-payload.ts';
import type { SigningKey } from '../../openpgp/keys.ts';
import { verifySignedMessage } from '../../openpgp/message.ts';
import { isObject } from '../../base/lists.ts';

/** What the signature of an image says. */
export type ReleaseStatement = {
  readonly digest: Digest;
  /** How the signer names the image; mirrors have other names. */
  readonly identity: string;
};

/**
 * containers/image atomic-signature.md: the signed JSON, to the letter. Only `optional` may have members
 * that are not known here.
 *
 * @param type of a signature in an OpenPGP message, or of one that cosign made, whose `optional` may be
 * null
 * @throws IntegrityError `signature.malformed`
 */
export function parseReleaseStatement(
  content: Uint8Array,
  type: StatementType = 'atomic container signature',
): ReleaseStatement {
  const text = decodeText(content);
  const whole = readMembers(parseJson(text), ['critical', 'optional'], 'it');
  const isAbsent = whole['optional'] === null && type === 'cosign container image signature';
  if (!isAbsent && !isObject(whole['optional'])) {
    throw malformed('its member optional is not an object');
  }
  checkOptional(isObject(whole['optional']) ? whole['optional'] : {});
  const critical = readMembers(whole['critical'], ['image', 'type', 'identity'], 'critical');
  const image = readMembers(critical['image'], ['docker-manifest-digest'], 'image');
  const identity = readMembers(critical['identity'], ['docker-reference'], 'identity');
  if (critical['type'] !== type) throw malformed(`its type is not "${type}"`);
  const digest = readText(image, 'docker-manifest-digest');
  if (!isDigest(digest)) throw malformed(`its digest "${digest}" is not sha256: and 64 hex digits`);
  const reference = readText(identity, 'docker-reference');
  // It is shown to people, who must not take a part of it for what the program says.
  if (!/^[\x21-\x7e]+$/.test(reference)) throw malformed('its docker-reference is not a reference');
  return { digest, identity: reference };
}

/** Members that readers know have one type. */
function checkOptional({ creator = '', timestamp = 0 }: Readonly<Record<string, unknown>>): void {
  if (typeof creator !== 'string') throw malformed('its creator is not a text');
  if (!Number.isInteger(timestamp)) throw malformed('its timestamp is not a whole number');
}

type StatementType = 'atomic container signature' | 'cosign container image signature';

const malformed = (reason: string): IntegrityError =>
  new IntegrityError(
    'signature.malformed',
    `what is signed is not the signature of an image: ${reason}`,
  );

function decodeText(content: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content);
  } catch {
    throw malformed('it is not UTF-8');
  }
}

function parseJson(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw malformed('it is not JSON');
  }
  checkUnique(text);
  return value;
}

/** Of two members with one name, readers take different ones: neither is accepted. */
function checkUnique(text: string): void {
  const open: Set<string>[] = [];
  for (const [token, quoted, colon] of text.matchAll(/[{}]|("(?:[^"\\]|\\.)*")(\s*:)?/g)) {
    if (token === '{') open.push(new Set());
    else if (token === '}') open.pop();
    else if (quoted !== undefined && colon !== undefined) {
      const name = JSON.parse(quoted) as string;
      if (open.at(-1)?.has(name)) throw malformed(`it has the member "${name}" twice`);
      open.at(-1)?.add(name);
    }
  }
}

/** An object with exactly these members. */
function readMembers(
  value: unknown,
  names: readonly string[],
  what: string,
): Readonly<Record<string, unknown>> {
  if (!isObject(value)) throw malformed(`${what} is not an object`);
  const found = Object.keys(value).sort().join(', ');
  const expected = [...names].sort().join(', ');
  if (found === expected) return value;
  throw malformed(`${what} should have the members ${expected}, but has ${found || 'none'}`);
}

function readText(of: Readonly<Record<string, unknown>>, name: string): string {
  const value = of[name];
  if (typeof value === 'string' && value.trim() !== '') return value;
  throw malformed(`its ${name} is empty`);
}

/**
 * Verifies a signed message of a release: who signed it, and then that it speaks of this digest. The
 * identity is the signer's name for the release, and not compared: mirrors have other names.
 *
 * @param now seconds since 1970
 * @throws IntegrityError `signature.other-digest`; what `verifySignedMessage` and `parseReleaseStatement`
 * throw
 */
export function verifyReleaseMessage(
  message: Uint8Array,
  digest: Digest,
  { keys, now }: { readonly keys: readonly SigningKey[]; readonly now: number },
): { readonly key: string; readonly identity: string } {
  const { content, key } = verifySignedMessage(message, keys, now);
  const statement = parseReleaseStatement(content);
  if (statement.digest === digest) {
    return { key: key.fingerprint, identity: statement.identity };
  }
  throw new IntegrityError('signature.other-digest', 'it is the signature of another image', {
    expected: digest,
    found: statement.digest,
  });
}

/** Base64; empty for what is not verified. */
export const signaturesOf = ({ signature }: Release): readonly string[] =>
  signature?.status === 'verified' ? signature.messages : [];

export const isUnsigned = ({ signature }: Release): boolean => signature?.status === 'unsigned';
