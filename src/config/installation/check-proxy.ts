import { isIP } from 'node:net';
import { redact } from '../../base/redact.ts';
import { isDomain } from './check-repository.ts';
import type { InstallationProxy } from './installation-config.ts';
import type { Finding } from './rules.ts';

export function checkProxy(proxy: InstallationProxy): Finding[] {
  const { httpProxy = '', httpsProxy = '', noProxy = '' } = proxy;
  const none = 'Required value: must include httpProxy or httpsProxy';
  return [
    ...(httpProxy === '' && httpsProxy === '' ? [{ at: 'proxy', problem: none }] : []),
    ...checkUrl('proxy.httpProxy', httpProxy, ['http']),
    ...checkUrl('proxy.httpsProxy', httpsProxy, ['http', 'https']),
    ...checkNoProxy(noProxy),
  ];
}

/** RFC 3986 3.1, or a path: what may stand in the first line of an HTTP request (RFC 9112 3.2). */
const REQUEST_URI = /^(?:(?<scheme>[A-Za-z][A-Za-z0-9+.-]*):|\/)[^\s\0-\x1f\x7f]*$/;

function checkUrl(at: string, text: string, schemes: readonly string[]): Finding[] {
  if (text === '') return [];
  const shown = JSON.stringify(redact(text));
  const match = REQUEST_URI.exec(text);
  if (match === null || (text.includes('://') && !URL.canParse(text))) {
    const problem = `Invalid value: ${shown}: parse ${shown}: invalid URI for request`;
    return [{ at, problem }];
  }
  const scheme = match.groups?.['scheme']?.toLowerCase() ?? '';
  if (schemes.includes(scheme)) return [];
  const supported = schemes.map((name) => JSON.stringify(name)).join(', ');
  return [
    { at, problem: `Unsupported value: ${JSON.stringify(scheme)}: supported values: ${supported}` },
  ];
}

function checkNoProxy(text: string): Finding[] {
  if (text === '' || text === '*') return [];
  return text.split(',').flatMap((element, index) => {
    const value = element.trim();
    if (
      isIP(value) !== 0 ||
      isCidr(value) ||
      isDomain(value.replace(/^\./, '').replace(/\.$/, ''))
    ) {
      return [];
    }
    const rule =
      'each element of noProxy must be a IP, CIDR or domain without wildcard characters, ' +
      `which is violated by element ${index} ${JSON.stringify(value)}`;
    return [{ at: 'proxy.noProxy', problem: `Invalid value: ${JSON.stringify(text)}: ${rule}` }];
  });
}

function isCidr(text: string): boolean {
  const [address = '', prefix = '', ...more] = text.split('/');
  const family = isIP(address);
  if (family === 0 || more.length > 0 || !/^(?:0|[1-9]\d{0,2})$/.test(prefix)) return false;
  return Number(prefix) <= (family === 4 ? 32 : 128);
}
