import { parseAddress } from './ip-address.ts';

/** RFC 1035, 2.3.4. */
export const LONGEST_LABEL = 63;

/** Kubernetes writes the name into the label `kubernetes.io/hostname`, whose value has this limit. */
export const LONGEST_HOST_NAME = 63;

const LABEL = /^[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?$/;

/**
 * True for a name that DNS can have (RFC 1123, 2.1): labels of 63 octets, 253 in all. The last
 * label is not a number, since then the text is meant to be an address.
 */
function isHostName(name: string): boolean {
  const labels = name.split('.');
  return (
    name.length <= 253 &&
    labels.every((label) => label.length <= LONGEST_LABEL && LABEL.test(label)) &&
    !/^\d+$/.test(labels.at(-1) ?? '')
  );
}

/** Names that every host has: assisted-service forbids them, and nodes wait for another one. */
const SHARED_NAME = /^localhost[46]?(?:\.|$)/;

/** Undefined if a host can have the name. Numbers are names, too (assisted-service, ValidateHostname). */
export function explainHostName(name: string): string | undefined {
  if (SHARED_NAME.test(name)) return 'is the name of every host; give the host another name';
  if (name !== name.toLowerCase()) return 'has capital letters; write it in lower case';
  if (name.length > LONGEST_HOST_NAME) return `has more than ${LONGEST_HOST_NAME} characters`;
  if (parseAddress(name)) return 'is an address, not the name of a host';
  return name.split('.').every((label) => LABEL.test(label))
    ? undefined
    : 'is not the name of a host: letters, digits and "-" between dots';
}

/** True for an address, or a name that may end in a dot: what a time server is named by. */
export const isAddressOrHostName = (text: string): boolean =>
  parseAddress(text) !== undefined || isHostName(text.replace(/(?<=[A-Za-z0-9])\.$/, ''));
