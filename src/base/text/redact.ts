import { decodeUserInfo } from '../http/basic.ts';
import { isObject } from '../lists.ts';
import { listNameForms, listSecretForms, type SecretForm } from './secret-forms.ts';

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
 * A text that means a host, with a mask in place of `user:password` before it. Digests have no slash, and
 * no host is before them alone.
 */
export function maskLogin(text: string): string {
  const [, password, rest] = /^(?:[a-z]+:\/\/)?[^:@/]*:(?!\/\/)(.*)@([^@]*)$/is.exec(text) ?? [];
  if (password === undefined || rest === undefined) return text;
  return password.includes('/') && !rest.includes('/') ? text : `${MASK}@${rest}`;
}

/**
 * The secrets that a command line has read, in every form in which programs print them. Made once; code
 * that reads a secret gets it and adds to it, and code that prints asks it: a secret that is read in one
 * place is printed in another, which cannot be expected to know it.
 */
export type Redaction = {
  /**
   * Masks a password, token or key from now on; for a pull secret, every credential in it. Texts of one
   * character are not masked: they would hide every other word.
   */
  readonly add: (secret: string) => void;
  /** Masks `user:password`, its parts, and its base64 form as it is written. */
  readonly addLogin: (username: string, password: string) => void;
  /** Masks the credential of an entry of containers-auth.json(5). */
  readonly addEntry: (entry: Entry) => void;
  /** A text without the secrets that were read, regardless of the text around them. */
  readonly maskValues: (text: string) => string;
  /** The same, with addresses masked as by `redactAddresses`. */
  readonly mask: (text: string) => string;
};

export function createRedaction(): Redaction {
  const known = new Map<string, SecretForm>();
  /** The pull secret of a fleet is read with each of its sites. */
  const added = new Set<string>();
  /** The longest first, so that no part of a secret is left next to a mask. */
  let ordered: readonly SecretForm[] | undefined;
  const addForms = (forms: readonly SecretForm[]): void => {
    for (const form of forms) {
      if (known.has(form.text)) continue;
      known.set(form.text, form);
      ordered = undefined;
    }
  };
  const maskValues = (text: string): string => {
    ordered ??= [...known.values()].sort((a, b) => b.text.length - a.text.length);
    return ordered.reduce(maskForm, text);
  };
  return {
    add(secret) {
      if (added.has(secret)) return;
      added.add(secret);
      addForms(formsOfSecret(secret));
    },
    addLogin(username, password) {
      addForms(formsOfLogin(username, password));
    },
    addEntry(entry) {
      addForms(formsOfEntry(entry));
    },
    maskValues,
    mask: (text) => redactAddresses(maskValues(text)),
  };
}

/** Characters of the shortest line of a longer secret, such as a key, that is masked when printed alone. */
const SHORTEST_LINE = 12;

function formsOfSecret(value: string): readonly SecretForm[] {
  const text = value.trim();
  if (text.length < 2 || /^<[\w-]+>$/.test(text)) return []; // the placeholder of a template
  const inner = text.startsWith('{') ? formsOfPullSecret(text) : [];
  const all = listSecretForms(text);
  const forms = OWN_WORDS.has(text) ? all.filter(({ match }) => match === 'run') : all;
  if (forms.length === 0) return inner; // too long to be printed, and so are its lines together
  const lines = text.split(/[\r\n]+/).map((line) => line.trim());
  const alone = lines.filter((line) => line.length >= SHORTEST_LINE && !line.startsWith('-----'));
  return [...inner, ...forms, ...(lines.length > 1 ? alone.flatMap(listSecretForms) : [])];
}

/** A mask in place of one of these words would reveal a password that is the same, and hide what to do. */
const OWN_WORDS: ReadonlySet<string> = new Set(
  (
    'address auth basic bearer certificate cluster config configuration credential credentials default ' +
    'env false file files host hosts http https image images installer key keys name names network node ' +
    'null openshift password passwords port private proxy public registry release secret secrets server ' +
    'site sites token tokens true user username users version'
  ).split(' '),
);

const formsOfLogin = (username: string, password: string): readonly SecretForm[] => [
  ...listNameForms(username),
  ...formsOfSecret(password),
  ...formsOfSecret(`${username}:${password}`),
];

function formsOfPullSecret(json: string): readonly SecretForm[] {
  let document: unknown;
  try {
    document = JSON.parse(json);
  } catch {
    return []; // the whole text is masked, and the code that needs its parts reports that it is not JSON
  }
  const auths = (document as { auths?: unknown } | null)?.auths;
  return isObject(auths) ? Object.values(auths).filter(isObject).flatMap(formsOfEntry) : [];
}

type Entry = Readonly<Record<string, unknown>>;

function formsOfEntry(entry: Entry): readonly SecretForm[] {
  const text = (key: string): string => {
    const value = entry[key];
    return typeof value === 'string' ? value : '';
  };
  const pair = Buffer.from(text('auth'), 'base64');
  const colon = pair.indexOf(':');
  const { username, password } = decodeUserInfo(pair.subarray(0, colon), pair.subarray(colon + 1));
  return [
    ...['auth', 'password', 'identitytoken', 'registrytoken'].flatMap((key) =>
      formsOfSecret(text(key)),
    ),
    ...['username', 'email'].flatMap((key) => listNameForms(text(key))),
    ...(colon > 0 ? formsOfLogin(username, password.replace(/(?<!\0)\0+$/, '')) : []),
  ];
}

const BESIDE = {
  text: '',
  word: '[A-Za-z0-9]',
  name: '[\\w./-]',
  run: '',
} as const satisfies Record<SecretForm['match'], string>;

function maskForm(text: string, { text: form, match }: SecretForm): string {
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
 * Masks runs of characters. A regular expression would look at a long run again from each of its characters.
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

/** A text with every URL without user info and with the values of secret-looking parameters masked. */
export function redactAddresses(text: string): string {
  const plain = text.replaceAll(USER_INFO, '$1');
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
