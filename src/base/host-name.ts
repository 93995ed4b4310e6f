import { parseAddress } from './ip-address.ts';

/** RFC 1035, 2.3.4. */
export const LONGEST_LABEL = 63;

/**
 * Longest name of a host: Kubernetes writes it into the label `kubernetes.io/hostname`, whose value
 * has at most 63 characters.
 */
export const LONGEST_HOST_NAME = 63;

const LABEL = /^[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?$/;

/**
 * True for a name that DNS can have (RFC 1123, 2.1): labels of 63 octets, 253 in all. The last
 * label is not a number, since then the text is meant to be an address.
 */
export function isHostName(name: string): boolean {
  const labels = name.split('.');
  return (
    name.length <= 253 &&
    labels.every((label) => label.length <= LONGEST_LABEL && LABEL.test(label)) &&
    !/^\d+$/.test(labels.at(-1) ?? '')
  );
}

/** True for an address, or a name that may end in a dot: what a time server is named by. */
export const isAddressOrHostName = (text: string): boolean =>
  parseAddress(text) !== undefined || isHostName(text.replace(/(?<=[A-Za-z0-9])\.$/, ''));
