import { withoutUndefined } from '../../base/lists.ts';
import type { Plain } from '../../shape/shape.ts';
import { flagOf, listOf, mapOf, numberOf, textOf, type FreeMap } from './free.ts';
import {
  createCidr,
  parseAddress,
  widthOf,
  type Cidr,
  type Family,
} from '../../base/ip-address.ts';

/** An address of an interface, with its subnet. */
export type InterfaceAddress = {
  /** Of the address in the document. */
  readonly path: string;
  readonly text: string;
  readonly subnet: Cidr;
};

/** What of an interface the checks look at. */
export type NetworkInterface = {
  readonly path: string;
  readonly name: string;
  readonly type: string;
  /** Not `absent`, `down` or `ignore`. */
  readonly isUp: boolean;
  /** In lower case, with colons. */
  readonly mac?: string;
  readonly addresses: readonly InterfaceAddress[];
  /** Families whose addresses come from DHCP or router advertisements. */
  readonly dynamic: readonly Family[];
  readonly value: FreeMap;
};

/** The interfaces of an nmstate document; invalid addresses are omitted. */
export const readInterfaces = (network: Plain | undefined): readonly NetworkInterface[] =>
  listOf(mapOf(network)['interfaces']).map((item, index) => {
    const value = mapOf(item);
    const path = `networkConfig.interfaces[${index}]`;
    const mac = textOf(value['mac-address'])?.toLowerCase().replaceAll('-', ':');
    return {
      path,
      value,
      name: textOf(value['name']) ?? '',
      type: textOf(value['type']) ?? '',
      isUp: !['absent', 'down', 'ignore'].includes(textOf(value['state']) ?? 'up'),
      ...withoutUndefined({ mac }),
      addresses: ([4, 6] as const).flatMap((family) => readAddresses(value, path, family)),
      dynamic: ([4, 6] as const).filter((family) => isDynamic(mapOf(value[`ipv${family}`]))),
    };
  });

function readAddresses(value: FreeMap, path: string, family: Family): readonly InterfaceAddress[] {
  const settings = mapOf(value[`ipv${family}`]);
  if (flagOf(settings['enabled']) !== true) return [];
  return listOf(settings['address']).flatMap((item, index) => {
    const { ip, 'prefix-length': prefix } = mapOf(item);
    const text = textOf(ip) ?? '';
    const address = parseAddress(text);
    const length = numberOf(prefix) ?? -1;
    if (address?.family !== family || length < 0 || length > widthOf(family)) return [];
    const at = `${path}.ipv${family}.address[${index}].ip`;
    return [{ path: at, text, subnet: createCidr(address, length, `${text}/${length}`) }];
  });
}

const isDynamic = (settings: FreeMap): boolean =>
  flagOf(settings['enabled']) === true &&
  (flagOf(settings['dhcp']) === true || flagOf(settings['autoconf']) === true);
