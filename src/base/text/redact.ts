import { decodeUserInfo } from '../http/basic.ts';
import { isObject } from '../lists.ts';

/** A text that represents a secret in an output, and the way to find it there. */
export type SecretForm = {
  readonly text: string;
  /**
   * `word`: only if no letter or digit is next to it, because it may be part of a word. `name`:
   * only if no character of paths and hosts is next to it, either. `run`: with all base64
   * characters around it.
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

/**
 * Forms of a user name: plain words are left out, because `admin` reveals nothing and is in many
 * texts.
 */
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

const SECRET_QUERY = /token|sig|secret|password|credential|auth|key|policy/i;
const MASK = '[redacted]';

/** A URL without user info and with the values of secret-looking query parameters masked. */
export function redactUrl(url: URL | string): string {
  const copy = new URL(url);
  copy.username = '';
  copy.password = '';
  const parameters = [...copy.searchParams];
  // Written once: each change of `searchParams` writes the whole address again.
  if (parameters.some(([name]) => SECRET_QUERY.test(name))) {
    const masked = parameters.map(([name, value]): [string, string] => [
      name,
      SECRET_QUERY.test(name) ? MASK : value,
    ]);
    copy.search = new URLSearchParams(masked).toString();
  }
  return copy.href.replaceAll(encodeURIComponent(MASK), MASK);
}

/**
 * Every form of every secret that this process has read. One list for the whole process: a secret
 * that is read in one place is printed in another, and the code that prints cannot be expected to
 * know it.
 */
const known = new Map<string, SecretForm>();
/** The longest first, so that no part of a secret is left next to a mask. */
let ordered: readonly SecretForm[] | undefined;

/**
 * Characters of the shortest line of a longer secret, such as a key, that is masked when
 * printed alone.
 */
const SHORTEST_LINE = 12;

/**
 * Has `redact` mask a password, token or key in each of its forms from now on; for a pull secret,
 * every credential in it. Texts of one character are not masked: they would hide every other word.
 */
export function rememberSecret(value: string): void {
  const text = value.trim();
  if (text.length < 2 || /^<[\w-]+>$/.test(text)) return; // the placeholder of a template
  if (text.startsWith('{')) rememberPullSecret(text);
  const all = listSecretForms(text);
  const forms = OWN_WORDS.has(text) ? all.filter(({ match }) => match === 'run') : all;
  if (forms.length === 0) return; // too long to be printed, and so are its lines together
  rememberForms(forms);
  const lines = text.split(/[\r\n]+/).map((line) => line.trim());
  for (const line of lines.length > 1 ? lines : []) {
    if (line.length >= SHORTEST_LINE && !line.startsWith('-----')) {
      rememberForms(listSecretForms(line));
    }
  }
}

/**
 * Words of messages. A mask in place of one would reveal a password that is the same word, and hide what
 * the user must do.
 */
const OWN_WORDS: ReadonlySet<string> = new Set(
  (
    'address auth basic bearer certificate cluster config configuration credential credentials default ' +
    'env false file files host hosts http https image images installer key keys name names network node ' +
    'null openshift password passwords port private proxy public registry release secret secrets server ' +
    'site sites token tokens true user username users version'
  ).split(' '),
);

/** Has `redact` mask `user:password`, its parts, and its base64 form as it is written. */
export function rememberCredential(username: string, password: string): void {
  rememberForms(listNameForms(username));
  rememberSecret(password);
  rememberSecret(`${username}:${password}`);
}

function rememberPullSecret(json: string): void {
  let document: unknown;
  try {
    document = JSON.parse(json);
  } catch {
    return; // the whole text is remembered, and the code that needs its parts reports that it is not JSON
  }
  const auths = (document as { auths?: unknown } | null)?.auths;
  if (!isObject(auths)) return;
  for (const entry of Object.values(auths)) if (isObject(entry)) rememberEntry(entry);
}

/** An entry of containers-auth.json(5). */
export function rememberEntry(entry: Readonly<Record<string, unknown>>): void {
  const text = (key: string): string => {
    const value = entry[key];
    return typeof value === 'string' ? value : '';
  };
  for (const key of ['auth', 'password', 'identitytoken', 'registrytoken']) {
    rememberSecret(text(key));
  }
  for (const key of ['username', 'email']) rememberForms(listNameForms(text(key)));
  const pair = Buffer.from(text('auth'), 'base64');
  const colon = pair.indexOf(':');
  const { username, password } = decodeUserInfo(pair.subarray(0, colon), pair.subarray(colon + 1));
  if (colon > 0) rememberCredential(username, password.replace(/(?<!\0)\0+$/, ''));
}

function rememberForms(forms: readonly SecretForm[]): void {
  for (const form of forms) {
    if (known.has(form.text)) continue;
    known.set(form.text, form);
    ordered = undefined;
  }
}

/** A text without the secrets that were read, regardless of the text around them. */
export function redactValues(text: string): string {
  ordered ??= [...known.values()].sort((a, b) => b.text.length - a.text.length);
  return ordered.reduce(mask, text);
}

const BESIDE = {
  text: '',
  word: '[A-Za-z0-9]',
  name: '[\\w./-]',
  run: '',
} as const satisfies Record<SecretForm['match'], string>;

function mask(text: string, { text: form, match }: SecretForm): string {
  if (!text.includes(form)) return text;
  if (match === 'text') return text.replaceAll(form, MASK);
  if (match === 'run') return maskRuns(text, form);
  const beside = BESIDE[match];
  return text.replaceAll(
    new RegExp(
      `(?<!${beside})${form.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')}(?!${beside})`,
      'g',
    ),
    MASK,
  );
}

const BASE64 = /[A-Za-z0-9+/=_-]/;

/**
 * Masks runs of characters. A regular expression would look at a long run again from each of its
 * characters.
 */
function maskRuns(text: string, form: string): string {
  let result = '';
  let done = 0;
  for (let at = text.indexOf(form); at >= 0; at = text.indexOf(form, done)) {
    let [start, end] = [at, at + form.length];
    while (start > done && BASE64.test(text.charAt(start - 1))) start -= 1;
    while (end < text.length && BASE64.test(text.charAt(end))) end += 1;
    result += text.slice(done, start) + MASK;
    done = end;
  }
  return result + text.slice(done);
}

/**
 * User info of addresses other than web addresses: `s3://KEY:SECRET@bucket`, in which a secret may
 * contain slashes, which cannot precede a port. Bounded, so that no text takes long.
 */
const USER_INFO =
  /(?<![A-Za-z0-9+.-])((?!https?:)[A-Za-z][A-Za-z0-9+.-]{0,30}:\/\/)(?!USER:PASSWORD@)(?:[^\s/?#"'<>]{0,1000}@|[^\s/?#:"'<>]{1,200}:(?!\d*[/?#])[^\s@"'<>]{0,1000}@)/g;

/**
 * The form of an address in a message: `http://USER:PASSWORD@HOST:PORT`. Each letter can belong to one
 * part only, so that a long address takes time in proportion to its length.
 */
const OWN_FORM = /^https?:\/\/(?:USER:PASSWORD@)?[A-Z]+(?::[A-Z]+)?(?:\/[/A-Z]*)?[;:,.!?)\]]*$/;

/**
 * A text without the secrets that were read, and with every URL without user info and with the
 * values of secret-looking parameters masked.
 */
export function redact(text: string): string {
  const plain = redactValues(text).replaceAll(USER_INFO, '$1');
  return plain.replaceAll(/https?:\/\/[^\s"'<>]+/g, (match) => {
    if (OWN_FORM.test(match)) return match;
    const marks = /(?<![;:,.!?)\]])[;:,.!?)\]]+$/.exec(match)?.[0] ?? ''; // part of the sentence, not of the URL
    const isMasked = match.slice(0, match.length - marks.length + 1).endsWith(MASK);
    const end = isMasked ? marks.slice(1) : marks;
    const url = match.slice(0, match.length - end.length);
    try {
      const redacted = redactUrl(url);
      return (redacted === new URL(url).href ? url : redacted) + end; // as it was written
    } catch {
      return MASK; // not a URL after all: a text that cannot be parsed is not printed
    }
  });
}
