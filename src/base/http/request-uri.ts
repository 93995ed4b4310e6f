/*
 * Owns which texts Go's `url.ParseRequestURI` takes (net/url), which the programs of a cluster call for the
 * addresses of proxies, in its words.
 */

const ESCAPE = /%(?![0-9A-Fa-f]{2}).{0,2}/;
const USER_INFO = /^[A-Za-z0-9\-._~!$&'()*+,;=:%@]*$/;
/** Characters of ASCII that a host may not have (RFC 3986, 3.2.2), except those that Go takes nevertheless. */
const NOT_IN_HOST = /[^A-Za-z0-9\-._~!$&'()*+,;=:[\]<>"%\u0080-\uffff]/;
const PORT = /^(?::\d*)?$/;

/** Explains what is wrong without the text, which may have a password; undefined if nothing is. */
export function explainRequestUri(text: string): string | undefined {
  // eslint-disable-next-line no-control-regex -- these are what it refuses
  if (/[\u0000-\u001f\u007f]/.test(text)) return 'net/url: invalid control character in URL';
  const scheme = /^[A-Za-z][A-Za-z0-9+.-]*:/.exec(text)?.[0] ?? '';
  const rest = text.slice(scheme.length);
  if (rest.startsWith('/')) return explainHierarchy(rest, scheme !== '');
  if (scheme !== '' && rest !== '') return undefined;
  return text.startsWith(':') ? 'missing protocol scheme' : 'invalid URI for request';
}

function explainHierarchy(rest: string, hasScheme: boolean): string | undefined {
  const [path = ''] = rest.split('?', 1);
  if (!hasScheme || !/^\/\/(?!\/)/.test(path)) return explainEscapes(path);
  const [authority = ''] = path.slice(2).split('/', 1);
  return explainAuthority(authority) ?? explainEscapes(path.slice(2 + authority.length));
}

function explainAuthority(authority: string): string | undefined {
  const at = authority.lastIndexOf('@');
  const userInfo = authority.slice(0, Math.max(0, at));
  return (
    explainHost(authority.slice(at + 1)) ??
    (USER_INFO.test(userInfo) ? explainEscapes(userInfo) : 'net/url: invalid userinfo')
  );
}

function explainHost(host: string): string | undefined {
  const isBracketed = host.startsWith('[');
  if (isBracketed && !host.includes(']')) return "missing ']' in host";
  const port = isBracketed
    ? host.slice(host.lastIndexOf(']') + 1)
    : (/:[^:]*$/.exec(host)?.[0] ?? '');
  if (!PORT.test(port)) return `invalid port ${JSON.stringify(port)} after host`;
  const odd = NOT_IN_HOST.exec(host)?.[0];
  if (odd !== undefined) return `invalid character ${JSON.stringify(odd)} in host name`;
  return isBracketed ? undefined : explainAnyEscape(host);
}

/** Escapes stand in a host for zones alone, in brackets. */
const explainAnyEscape = (host: string): string | undefined =>
  explainEscape(/%.{0,2}/.exec(host)?.[0]);

const explainEscapes = (text: string): string | undefined => explainEscape(ESCAPE.exec(text)?.[0]);

const explainEscape = (escape: string | undefined): string | undefined =>
  escape === undefined ? undefined : `invalid URL escape ${JSON.stringify(escape)}`;
