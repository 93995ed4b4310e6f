import { isPlaceholder, PLACEHOLDER_PROBLEM } from '../../config/secrets.ts';

/** Stands for a value that is nobody's business. */
export const HIDDEN = 'Invalid value: "[redacted]"';

/**
 * What is wrong with a pull secret. Nothing of it is repeated but the names of its registries.
 */
export function explainPullSecret(text: string): readonly string[] {
  return isPlaceholder(text) ? [PLACEHOLDER_PROBLEM] : explainJson(text);
}

function explainJson(text: string): readonly string[] {
  const parsed = parseJson(text);
  if (parsed === undefined) {
    const why = text.trim() === '' ? 'unexpected end of JSON input' : 'not valid JSON';
    return [`${HIDDEN}: ${why}`];
  }
  // JSON's null is an empty object to Go.
  if (!isMapping(parsed ?? {})) return [`${HIDDEN}: json: cannot unmarshal it into an object`];
  const { auths } = isMapping(parsed) ? parsed : {};
  if (isMapping(auths) && Object.keys(auths).length > 0) return explainAuths(auths);
  const why = isMapping(auths ?? {}) ? 'auths required' : 'json: auths must be an object';
  return [`${HIDDEN}: ${why}`];
}

function explainAuths(auths: Mapping): readonly string[] {
  return Object.entries(auths).flatMap(([host, entry]) => {
    const isUsable =
      isMapping(entry) && (isPresent(entry['auth']) || isPresent(entry['credsStore']));
    return isUsable ? [] : [`${HIDDEN}: "${host}" requires either auth or credsStore`];
  });
}

/** The registries that a pull secret has an entry for; none when it is not a pull secret. */
export function listPullSecretHosts(text: string): ReadonlySet<string> {
  const parsed = parseJson(text);
  const auths = isMapping(parsed) ? parsed['auths'] : undefined;
  return new Set(isMapping(auths) ? Object.keys(auths) : []);
}

type Mapping = Readonly<Record<string, unknown>>;

const isPresent = (value: unknown): boolean => value !== undefined && value !== null;

const isMapping = (value: unknown): value is Mapping =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
