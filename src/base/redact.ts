const SECRET_QUERY = /token|sig|secret|password|credential|auth|key|policy/i;
const MASK = '[redacted]';

/** A URL without user info and with the values of secret-looking query parameters masked. */
export function redactUrl(url: URL | string): string {
  const copy = new URL(url);
  copy.username = '';
  copy.password = '';
  for (const name of new Set(copy.searchParams.keys())) {
    if (SECRET_QUERY.test(name)) copy.searchParams.set(name, MASK);
  }
  return copy.href.replaceAll(encodeURIComponent(MASK), MASK);
}

/** Replaces every URL's secrets and every given secret value inside a text. */
export function redact(text: string, secrets: readonly string[] = []): string {
  let result = text.replaceAll(/https?:\/\/[^\s"'<>]+/g, (match) => {
    const end = /[;:,.!?)\]]*$/.exec(match)?.[0] ?? ''; // of the sentence, not of the URL
    const url = match.slice(0, match.length - end.length);
    try {
      const redacted = redactUrl(url);
      return (redacted === new URL(url).href ? url : redacted) + end; // as it was written
    } catch {
      return MASK; // not a URL after all: what we cannot parse we do not print
    }
  });
  for (const secret of secrets) {
    if (secret.length > 0) result = result.replaceAll(secret, MASK);
  }
  return result;
}
