import type { DocumentProblem } from '../../../base/errors.ts';
import type { Report } from '../../../shape/report.ts';
import { invalid, required } from '../../../shape/report.ts';
import { flagOf, listOf, mapOf, textOf, type FreeMap } from '../free.ts';
import type { NetworkInterface } from '../interfaces.ts';

/** An interface is the port of one bond or bridge, never of two, and has no addresses of its own. */
export function checkPorts(
  report: Report,
  interfaces: readonly NetworkInterface[],
): readonly DocumentProblem[] {
  const owners = new Map<string, string>();
  const ports = interfaces.filter(({ isUp }) => isUp).flatMap(listPorts);
  return [
    ...ports.flatMap(({ name, path, owner }) => {
      const known = owners.get(name);
      owners.set(name, owner.name);
      if (name === owner.name && owner.type !== 'ovs-bridge') {
        return [report(path, invalid(name, 'an interface cannot be its own port'))];
      }
      return known === undefined
        ? []
        : [report(path, invalid(name, `this is a port of ${known} already`))];
    }),
    ...checkPortAddresses(report, interfaces, ports),
    ...checkPortNames(report, interfaces),
  ];
}

type Port = {
  readonly name: string;
  readonly path: string;
  readonly owner: NetworkInterface;
};

/** Ports of bonds stand as names, those of bridges as objects; older names are still read. */
export const listPorts = (owner: NetworkInterface): readonly Port[] =>
  ['link-aggregation', 'bridge', 'vrf'].flatMap((member) =>
    listNamed(mapOf(owner.value[member]), `${owner.path}.${member}`).map((port) => ({
      ...port,
      owner,
    })),
  );

function listNamed(settings: FreeMap, path: string): readonly Omit<Port, 'owner'>[] {
  const key = ['port', 'ports', 'slaves'].find((each) => Array.isArray(settings[each])) ?? 'port';
  return listOf(settings[key]).flatMap((port, index) => {
    const at = `${path}.${key}[${index}]`;
    // A bond of Open vSwitch is a port that has ports.
    const bond = mapOf(port)['link-aggregation'];
    if (bond !== undefined) return listNamed(mapOf(bond), `${at}.link-aggregation`);
    const name = textOf(port) ?? textOf(mapOf(port)['name']);
    return name === undefined ? [] : [{ name, path: at }];
  });
}

/** Ports of a VRF keep their addresses, and so do internal ports of Open vSwitch. */
function checkPortAddresses(
  report: Report,
  interfaces: readonly NetworkInterface[],
  ports: readonly Port[],
): readonly DocumentProblem[] {
  const owners = new Map(
    ports.filter(({ owner }) => owner.type !== 'vrf').map(({ name, owner }) => [name, owner.name]),
  );
  return interfaces
    .filter(({ isUp, type }) => isUp && type !== 'ovs-interface' && type !== 'ovs-bridge')
    .flatMap(({ name, path, value }) => {
      const owner = owners.get(name);
      const family = ([4, 6] as const).find((each) => hasAddresses(mapOf(value[`ipv${each}`])));
      if (owner === undefined || owner === name || family === undefined) return [];
      const why = `a port of ${owner} cannot have addresses of its own`;
      return [report(`${path}.ipv${family}`, why)];
    });
}

const hasAddresses = (settings: FreeMap): boolean =>
  flagOf(settings['enabled']) === true &&
  (flagOf(settings['dhcp']) === true ||
    flagOf(settings['autoconf']) === true ||
    listOf(settings['address']).length > 0);

/** Ports of bridges are objects, and each has its name. */
const checkPortNames = (
  report: Report,
  interfaces: readonly NetworkInterface[],
): readonly DocumentProblem[] =>
  interfaces
    .filter(({ isUp, type }) => isUp && type.endsWith('-bridge'))
    .flatMap(({ path, value }) =>
      listOf(mapOf(value['bridge'])['port']).flatMap((port, index) =>
        textOf(mapOf(port)['name']) === undefined
          ? [report(`${path}.bridge.port[${index}]`, required('a port needs a name'))]
          : [],
      ),
    );
