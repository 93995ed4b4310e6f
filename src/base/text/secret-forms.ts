/* Owns the forms in which programs print a secret; redact.ts masks them. */

/** A text that represents a secret in an output, and the way to find it there. */
export type SecretForm = {
  readonly text: string;
  /**
   * `word`: only if no letter or digit is next to it, because it may be part of a word. `name`: only if no
   * character of paths and hosts is next to it, either. `run`: with all base64 characters around it.
   */
  readonly match: 'text' | 'word' | 'name' | 'run';
};

/** Shorter texts are parts of words everywhere. */
const LONG = 8;

/** Characters of the longest text that a program prints as a whole. */
const LONGEST = 64 * 1024;
const LONGEST_NAME = 1024;

/**
 * Every form in which programs print a secret: as it is, escaped as JSON (once, twice, as Go
 * does), in quotes of YAML, percent-encoded (RFC 3986, forms), and in base64 of it or of any text
 * with it inside. Empty for a text over 64 KiB.
 */
export function listSecretForms(given: string): readonly SecretForm[] {
  if (given.length > LONGEST) return [];
  const value = Buffer.from(given).toString(); // halves of surrogate pairs have no percent-encoding
  const match = value.length < LONG ? 'word' : 'text';
  const json = escapeJson(value);
  const go = escapeGo(value);
  // A pull secret is JSON, is a text in YAML or JSON, and is printed in JSON.
  const bases = [
    value,
    json,
    escapeJson(json),
    escapeJson(escapeJson(json)),
    go,
    escapeJson(go),
    escapeGo(json),
    escapeGo(go),
  ];
  const different = [...new Set(bases)];
  const texts = different.flatMap(listQuoted);
  const encoded = different.flatMap((text) => listBase64(Buffer.from(text)));
  return [
    ...[...new Set(texts)].map((text) => ({ text, match }) as const),
    ...[...new Set(encoded)].map((text) => ({ text, match: 'run' }) as const),
  ];
}

function listQuoted(text: string): readonly string[] {
  const percent = encodeURIComponent(text);
  return [
    text,
    text.replaceAll('/', String.raw`\/`),
    text.replaceAll("'", "''"),
    percent,
    lowerEscapes(percent),
    encodeRest(percent),
    lowerEscapes(encodeRest(percent)),
    encodeURI(text),
    new URLSearchParams({ a: text }).toString().slice(2),
  ];
}

/** Forms of a user name: plain words are left out, because `admin` reveals nothing and is in many texts. */
export function listNameForms(name: string): readonly SecretForm[] {
  if (name.length < 4 || name.length > LONGEST_NAME || /^[a-z]+$/.test(name)) return [];
  return listSecretForms(name).map((form) =>
    form.match === 'run' || !/^[\w-]+$/.test(name) ? form : { ...form, match: 'name' },
  );
}

const escapeJson = (text: string): string => JSON.stringify(text).slice(1, -1);

/** Go's encoding/json escapes the characters that have a meaning in HTML. */
const escapeGo = (text: string): string =>
  escapeJson(text)
    .replaceAll('&', String.raw`\u0026`)
    .replaceAll('<', String.raw`\u003c`)
    .replaceAll('>', String.raw`\u003e`);

const lowerEscapes = (text: string): string =>
  text.replaceAll(/%[0-9A-F]{2}/g, (escape) => escape.toLowerCase());

/** encodeURIComponent leaves these characters as they are, other programs do not. */
const encodeRest = (text: string): string =>
  text.replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );

/**
 * RFC 4648: the base64 text of the bytes for each place of their first byte in a group of three,
 * without the characters that depend on the bytes next to them. In both alphabets.
 */
function listBase64(bytes: Buffer): readonly string[] {
  if (bytes.length < LONG) return bytes.length === 0 ? [] : [bytes.toString('base64')];
  const texts = [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64');
    return text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6));
  });
  return [...new Set([...texts, ...texts.map((t) => t.replaceAll('+', '-').replaceAll('/', '_'))])];
}
