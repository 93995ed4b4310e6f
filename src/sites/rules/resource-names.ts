import { parseAddress, parseCidr } from '../../base/ip-address.ts';

const SUBDOMAIN = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;

/** What is wrong with a DNS-1123 subdomain in the words of Kubernetes, or undefined. */
export function explainSubdomain(text: string): string | undefined {
  if (text.length > 253) return 'must be no more than 253 characters';
  return SUBDOMAIN.test(text)
    ? undefined
    : "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', " +
        'and must start and end with an alphanumeric character';
}

/** A domain name may end in a dot. */
export const explainDomain = (text: string): string | undefined =>
  explainSubdomain(text.replace(/\.$/, ''));

export const isAddressOrDomain = (text: string): boolean =>
  parseAddress(text) !== undefined || explainDomain(text) === undefined;

/** An element of noProxy: one dot may lead and one may trail a domain. */
export const isNoProxyElement = (text: string): boolean =>
  parseAddress(text) !== undefined ||
  parseCidr(text) !== undefined ||
  explainSubdomain(text.replace(/^\./, '').replace(/\.$/, '')) === undefined;
