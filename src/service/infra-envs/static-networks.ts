import type { StaticNetwork } from './infra-env.ts';

type MacMap = NonNullable<StaticNetwork['mac_interface_map']>;

/** As assisted-service numbers hosts: by the text of their network, then by their interfaces. */
export const sortNetworks = (hosts: readonly StaticNetwork[]): readonly StaticNetwork[] =>
  hosts
    .map((host) => ({ ...host, mac_interface_map: sortMap(host.mac_interface_map ?? []) }))
    .sort(
      (a, b) =>
        compare(a.network_yaml ?? '', b.network_yaml ?? '') ||
        compareMaps(a.mac_interface_map, b.mac_interface_map),
    );

const sortMap = (map: MacMap): MacMap => map.toSorted(compareEntries);

const compareMaps = (a: MacMap, b: MacMap): number =>
  a.length - b.length ||
  a.reduce((order, entry, i) => order || compareEntries(entry, b[i] ?? {}), 0);

const compareEntries = (a: MacMap[number], b: MacMap[number]): number =>
  compare(a.logical_nic_name ?? '', b.logical_nic_name ?? '') ||
  compare(a.mac_address ?? '', b.mac_address ?? '');

const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b));
