import type { ConfigProblem } from '../../../config/document/problem.ts';
import { invalid, type Report } from '../../document/report.ts';
import { flagOf, listOf, mapOf, textOf, type FreeMap } from '../free.ts';
import type { NetworkInterface } from '../interfaces.ts';
import { parseAddress, type Family } from '../ip-address.ts';

/** Name servers are addresses, and an interface of their family keeps them. */
export function checkResolver(
  report: Report,
  network: FreeMap,
  interfaces: readonly NetworkInterface[],
): readonly ConfigProblem[] {
  const { server } = mapOf(mapOf(network['dns-resolver'])['config']);
  const families = ([4, 6] as const).filter((family) =>
    interfaces.some((each) => isKeeper(each, family)),
  );
  return listOf(server).flatMap((item, index) => {
    const why = explainServer(textOf(item) ?? '', interfaces, families);
    return why === undefined
      ? []
      : [report(`networkConfig.dns-resolver.config.server[${index}]`, why)];
  });
}

function explainServer(
  text: string,
  interfaces: readonly NetworkInterface[],
  families: readonly Family[],
): string | undefined {
  // A link-local server may carry its interface as a zone (RFC 4007 11).
  const [, local = text, zone] = /^(fe80:[^%]*)%(.+)$/i.exec(text) ?? [];
  const address = parseAddress(local);
  if (!address) return invalid(text, 'a name server is an IP address');
  if (zone !== undefined) {
    return interfaces.some(({ name }) => name === zone)
      ? undefined
      : invalid(text, `no interface above has the name "${zone}"`);
  }
  return families.includes(address.family)
    ? undefined
    : invalid(text, `no interface has IPv${address.family}, and so nmstate cannot store it`);
}

/** Interfaces that the kernel does not have, or that nmstate stores no name server with. */
const OTHERS = ['ipsec', 'loopback', 'ovs-bridge'];

function isKeeper({ value, type }: NetworkInterface, family: Family): boolean {
  const settings = mapOf(value[`ipv${family}`]);
  const isOn = (name: string): boolean => flagOf(settings[name]) === true;
  if (!isOn('enabled') || value['state'] === 'absent' || OTHERS.includes(type)) return false;
  return isOn('dhcp') || isOn('autoconf') || listOf(settings['address']).length > 0;
}
