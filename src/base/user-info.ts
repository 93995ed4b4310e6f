import { rememberCredential } from './text/redact.ts';

/** User name and password of a URL, decoded, where it has them; both are masked from now on. */
export function readUserInfo({
  username,
  password,
}: URL): { readonly username: string; readonly password: string } | undefined {
  if (username === '' && password === '') return undefined;
  rememberCredential(username, password);
  const decoded = { username: decodeText(username), password: decodeText(password) };
  rememberCredential(decoded.username, decoded.password);
  return decoded;
}

/** What is not percent-encoded stays as it is. */
function decodeText(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
