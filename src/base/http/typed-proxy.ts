import { parseAddress, parseCidr } from '../ip-address.ts';
import { isCutOff } from './address.ts';
import { explainRequestUri } from './request-uri.ts';

/* Owns the rules of the proxies of hosts, and of the hosts that are reached without one, as a user types them. */

/**
 * Explains why hosts cannot use a text as the URL of a proxy, without the text; undefined if they can. systemd would
 * interpret blanks, quotation marks and backslashes in the files that hold it.
 */
export function explainProxyUrl(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (/[\s"\\\p{Cc}]/u.test(text))
    return 'has a space, a control character, a quotation mark or a backslash';
  if (!url || !/^https?:\/\/[^/\\]/i.test(text)) return 'is not an http or https URL';
  const [, userInfo = ''] = /^[a-z]+:\/\/([^/?#]*)@/i.exec(text) ?? [];
  if (isCutOff(url) || !USER_INFO.test(userInfo)) {
    return 'has a character in its user or password that must be percent-encoded: % as %25, # as %23';
  }
  return explainRequestUri(text);
}

/** RFC 3986 3.2.1, as Go reads it on the hosts: it refuses the whole address otherwise. */
const USER_INFO = /^(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})*$/;

/** The name of a host or of a domain; assisted-service allows underscores. */
const NAME = /^[A-Za-z0-9_][A-Za-z0-9_-]{0,62}(?:\.[A-Za-z0-9_][A-Za-z0-9_-]{0,62})*[._]?$/;

const isName = (text: string): boolean => text.length <= 255 && NAME.test(text);

export type NoProxyFault = {
  readonly element: string;
  readonly index: number;
  /** False if the element is right but occurs before it. */
  readonly isMalformed: boolean;
};

/**
 * Finds the wrong elements of a no_proxy list: `*` alone, or addresses, networks and names with or without a
 * dot before them, each once (assisted-service, ValidateNoProxyFormat). Blanks belong to their element.
 *
 * @param accepts names that the consumer takes
 */
export function findNoProxyFaults(
  text: string,
  accepts: (name: string) => boolean = isName,
): readonly NoProxyFault[] {
  if (text === '' || text === '*') return [];
  const seen = new Set<string>();
  return text.split(',').flatMap((element, index) => {
    const isMalformed = !isElement(element, accepts);
    const isTwice = seen.has(element);
    seen.add(element);
    return isMalformed || isTwice ? [{ element, index, isMalformed }] : [];
  });
}

const isElement = (text: string, accepts: (name: string) => boolean): boolean =>
  parseAddress(text) !== undefined ||
  parseCidr(text) !== undefined ||
  (!/^\d+(?:\.\d+)*(?:\/|$)/.test(text) && accepts(text.replace(/^\./, '')));

export function explainNoProxy(text: string): string | undefined {
  const [fault] = findNoProxyFaults(text);
  if (fault === undefined) return undefined;
  const { element, isMalformed } = fault;
  const shown = JSON.stringify(element);
  if (!isMalformed) return `${shown} occurs twice`;
  if (element === '') return 'has an empty element';
  if (element === '*') return '"*" must be alone';
  return `${shown} is neither an address, a network nor a name (no wildcard, no port, no blank)`;
}
