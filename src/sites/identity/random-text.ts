/** So many random bytes. */
export type RandomBytes = (size: number) => Uint8Array;

/**
 * Characters of an alphabet, each equally likely: bytes from the last whole multiple of the
 * alphabet's size on are drawn again, because a remainder alone would favour the first characters.
 */
export function drawText(alphabet: string, count: number, random: RandomBytes): string {
  const limit = 256 - (256 % alphabet.length);
  let text = '';
  while (text.length < count) {
    for (const byte of random(count - text.length)) {
      if (byte < limit) text += alphabet.charAt(byte % alphabet.length);
    }
  }
  return text;
}
