import { createHash, randomBytes } from 'node:crypto';

const ALPHABET = './0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const ROUNDS = 5000;
const SALT_SIZE = 16;

/**
 * The password as `$6$salt$hash`: Ulrich Drepper's "Unix crypt using SHA-256 and SHA-512", version
 * 0.6, with its 5000 rounds. The salt is the caller's, so that the same inputs give the same medium;
 * 1 to 16 characters of `./0-9A-Za-z`. Takes about 20 ms.
 */
export function hashCorePassword(password: string, salt: string): string {
  if (!/^[./0-9A-Za-z]{1,16}$/.test(salt)) {
    throw new Error(`salt has ${salt.length} characters, or others than ./0-9A-Za-z`);
  }
  const key = Buffer.from(password);
  const saltBytes = Buffer.from(salt);
  const start = mixFirst(key, saltBytes);
  const p = stretch(sha512(repeat(key, key.length)), key.length);
  const s = stretch(sha512(repeat(saltBytes, 16 + (start[0] ?? 0))), saltBytes.length);
  let digest = start;
  for (let round = 0; round < ROUNDS; round++) {
    const isOdd = round % 2 === 1;
    const parts = [isOdd ? p : digest];
    if (round % 3 !== 0) parts.push(s);
    if (round % 7 !== 0) parts.push(p);
    parts.push(isOdd ? digest : p);
    digest = sha512(...parts);
  }
  return `$6$${salt}$${encode(digest)}`;
}

/** 16 of crypt's characters at random: 96 bits. */
export const drawSalt = (): string =>
  [...randomBytes(SALT_SIZE)].map((byte) => ALPHABET[byte & 63]).join('');

/** Steps 1 to 12 of the description. */
function mixFirst(key: Buffer, salt: Buffer): Buffer {
  const alternate = sha512(key, salt, key);
  const parts = [key, salt, stretch(alternate, key.length)];
  for (let bits = key.length; bits > 0; bits >>= 1) {
    parts.push((bits & 1) === 1 ? alternate : key);
  }
  return sha512(...parts);
}

function sha512(...parts: readonly Uint8Array[]): Buffer {
  const hash = createHash('sha512');
  for (const part of parts) hash.update(part);
  return hash.digest();
}

const repeat = (bytes: Buffer, count: number): Buffer =>
  Buffer.concat(Array.from({ length: count }, () => bytes));

/** The digest over and over until it has `size` bytes. */
const stretch = (digest: Buffer, size: number): Buffer => Buffer.alloc(size, digest);

/** Step 22: groups of three bytes, 21 apart and turning, each as four characters, lowest bits first. */
function encode(digest: Buffer): string {
  let text = '';
  for (
    let group = 0, [a, b, c] = [0, 21, 42];
    group < 21;
    group++, [a, b, c] = [b + 1, c + 1, a + 1]
  ) {
    text += encodeBits([digest[a], digest[b], digest[c]], 4);
  }
  return text + encodeBits([0, 0, digest[63]], 2);
}

function encodeBits(bytes: readonly (number | undefined)[], count: number): string {
  const [high = 0, middle = 0, low = 0] = bytes;
  const bits = (high << 16) | (middle << 8) | low;
  return Array.from({ length: count }, (_, index) => ALPHABET[(bits >> (6 * index)) & 63]).join('');
}
