import { isObject, objectOrEmpty } from '../../base/lists.ts';
import { decodeUserInfo, type UserInfo } from '../../base/http/basic.ts';
import { decodeBase64 } from '../../base/text/base64.ts';
import { readJsonText, TYPED_JSON, type JsonFault } from '../../shape/json-text.ts';

/* Owns the reading of pull secrets. No result repeats a value of one. */

/** Fault of a text that is not a pull secret. */
export type PullSecretFault =
  | 'empty'
  | 'not-json'
  | 'repeated'
  | 'not-an-object'
  | 'no-auths'
  | 'no-entries'
  | 'auths-not-an-object';

/** Fault of an entry's `auth`. */
export type AuthFault = 'absent' | 'empty' | 'not-a-text' | 'not-base64' | 'not-a-pair';

export type PullSecretEntry = {
  readonly registry: string;
  /** True if it names a credential helper, which only clients on this machine can ask. */
  readonly hasStore: boolean;
  readonly fault?: AuthFault;
};

export type PullSecret = {
  readonly fault?: PullSecretFault;
  /** The words for the fault `repeated`, with the name and line of the member. */
  readonly repeated?: string;
  readonly entries: readonly PullSecretEntry[];
};

/** Judges each `auth` as assisted-service does: base64 of `user:password`, neither of them empty. */
export function readPullSecret(text: string): PullSecret {
  if (text.trim() === '') return { fault: 'empty', entries: [] };
  const read = readJsonText(text, TYPED_JSON);
  if (read.why !== undefined) return refuseJson(read);
  const { value } = read;
  // Go reads JSON's null as an empty object.
  if (!isObject(value ?? {})) return { fault: 'not-an-object', entries: [] };
  const auths = objectOrEmpty(value)['auths'] ?? undefined;
  if (auths === undefined) return { fault: 'no-auths', entries: [] };
  if (!isObject(auths)) return { fault: 'auths-not-an-object', entries: [] };
  const entries = Object.entries(auths).map(([registry, entry]) => readEntry(registry, entry));
  return entries.length === 0 ? { fault: 'no-entries', entries } : { entries };
}

const refuseJson = ({ why, isRepeated }: JsonFault): PullSecret =>
  isRepeated
    ? { fault: 'repeated', repeated: why, entries: [] }
    : { fault: 'not-json', entries: [] };

type FaultWords = Readonly<Record<Exclude<PullSecretFault, 'repeated'>, string>>;

/** The fault of a whole pull secret in the words of a caller. */
export function explainPullSecretFault(
  { fault, repeated = '' }: PullSecret,
  words: FaultWords,
): string | undefined {
  if (fault === undefined) return undefined;
  return fault === 'repeated' ? repeated : words[fault];
}

const FAULTS: FaultWords = {
  'empty': 'is empty',
  'not-json': 'is not JSON',
  'not-an-object': 'must be a JSON object',
  'no-auths': 'must have at least one entry in "auths"',
  'no-entries': 'must have at least one entry in "auths"',
  'auths-not-an-object': 'must have at least one entry in "auths"',
};

/**
 * Problems of a pull secret, each a sentence without its value. An `auth` that is not
 * `user:password` is refused, since no node can read it. At least one entry must have `auth` or
 * `credsStore`; on hosts, which have no credential helpers, each must have `auth`.
 */
export function judgePullSecret(
  text: string,
  { isForHosts = false }: { readonly isForHosts?: boolean } = {},
): readonly string[] {
  const read = readPullSecret(text);
  const why = explainPullSecretFault(read, FAULTS);
  if (why !== undefined) return [why];
  const { entries } = read;
  const isEmpty = ({ fault }: PullSecretEntry): boolean => fault === 'absent' || fault === 'empty';
  const isHelpful = entries.some((entry) => !isEmpty(entry) || entry.hasStore);
  return entries
    .filter((entry) => !isEmpty(entry) || isForHosts || !isHelpful)
    .flatMap((entry) => explainAuth(entry) ?? []);
}

const AUTH_FAULTS: Readonly<Record<AuthFault, string>> = {
  'absent': 'has no "auth"',
  'empty': 'has an empty "auth"',
  'not-a-text': 'has an "auth" that is not a text',
  'not-base64': 'has an "auth" that is not base64',
  'not-a-pair': 'has an "auth" that is not the base64 form of a user, a colon and a password',
};

/** Explains the fault of an entry without its value; undefined if there is no fault. */
export function explainAuth({ registry, hasStore, fault }: PullSecretEntry): string | undefined {
  if (fault === undefined) return undefined;
  const why = fault === 'absent' && !hasStore ? NEITHER : AUTH_FAULTS[fault];
  return `entry ${JSON.stringify(registry)} ${why}`;
}

const NEITHER = 'has neither "auth" nor "credsStore"';

function readEntry(registry: string, entry: unknown): PullSecretEntry {
  const { auth, credsStore } = isObject(entry) ? entry : {};
  const fault = judgeAuth(auth);
  const hasStore = credsStore !== undefined && credsStore !== null;
  return { registry, hasStore, ...(fault !== undefined && { fault }) };
}

function judgeAuth(auth: unknown): AuthFault | undefined {
  if (auth === undefined || auth === null) return 'absent';
  if (auth === '') return 'empty';
  if (typeof auth !== 'string') return 'not-a-text';
  const decoded = decodeAuth(auth);
  if (typeof decoded === 'string') return decoded;
  return decoded.password === '' ? 'not-a-pair' : undefined;
}

/** Decodes an `auth` (containers-auth.json(5)) as Go's clients do. */
export function decodeAuth(auth: string): UserInfo | 'not-base64' | 'not-a-pair' {
  const bytes = decodeBase64(auth);
  if (bytes === undefined) return 'not-base64';
  const colon = bytes.indexOf(':');
  if (colon < 1) return 'not-a-pair';
  let end = bytes.length;
  while (end > colon + 1 && bytes[end - 1] === 0) end -= 1;
  return decodeUserInfo(bytes.subarray(0, colon), bytes.subarray(colon + 1, end));
}
