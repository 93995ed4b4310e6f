import { variableOf } from '../environment.ts';
import { ConfigError } from '../errors.ts';
import type { Redaction } from '../text/redact.ts';
import { encodeBarePercents, isCutOff, parseNoProxy, readUserInfo } from './address.ts';

/* Owns the proxy of a URL. */

/** The address of the proxy that a URL is requested through; undefined if it is requested directly. */
export type ProxyOf = (url: URL) => string | undefined;

/**
 * HTTPS_PROXY for https, HTTP_PROXY for http, and NO_PROXY; lower case first, as in curl. A proxy
 * without a scheme is an http one. This machine is never asked through a proxy.
 */
export function readProxies(env: NodeJS.ProcessEnv, redaction: Redaction): ProxyOf {
  const http = readProxy(env, 'HTTP_PROXY', redaction);
  const https = readProxy(env, 'HTTPS_PROXY', redaction);
  const isProxied = parseNoProxy(readEither(env, 'NO_PROXY'));
  return (url) => {
    const proxy = url.protocol === 'https:' ? https : http;
    return proxy !== '' && isProxied(url) ? proxy : undefined;
  };
}

const SCHEMES = ['http:', 'https:', 'socks5:', 'socks:'];

/** curl's name for a SOCKS 5 proxy that looks names up itself, as every proxy does here. */
const SOCKS5H = /^socks5h(?=:\/\/)/i;

/** Reads a proxy's address. The value may hold a password: no error repeats it. */
function readProxy(env: NodeJS.ProcessEnv, name: string, redaction: Redaction): string {
  const text = readEither(env, name);
  if (text === '') return '';
  const address = (text.includes('://') ? text : `http://${text}`).replace(SOCKS5H, 'socks5');
  const url = URL.canParse(address) ? new URL(address) : undefined;
  const user = url && readUserInfo(url, redaction); // masked from now on
  if (url && SCHEMES.includes(url.protocol) && !isCutOff(url))
    return user ? withUserInfo(url, redaction) : address;
  throw new ConfigError('proxy.malformed', `${name} is not the address of a proxy`, {
    expected: 'an address such as http://proxy.example.com:3128; https and socks5 as well',
    hint: `correct or unset ${name}; write #, /, ? and \\ in a password as %23, %2F, %3F and %5C`,
  });
}

/** The address with its user and password in percent-encoding: a bare % in them would not be one. */
function withUserInfo(url: URL, redaction: Redaction): string {
  const encoded = new URL(url);
  encoded.username = encodeBarePercents(url.username);
  encoded.password = encodeBarePercents(url.password);
  readUserInfo(encoded, redaction); // in this form as well
  return encoded.href;
}

const readEither = (env: NodeJS.ProcessEnv, name: string): string =>
  variableOf(env, name.toLowerCase(), name) ?? '';
