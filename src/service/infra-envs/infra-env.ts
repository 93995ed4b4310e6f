import { withoutUndefined } from '../../base/lists.ts';
import { parseMacAddress } from '../../base/mac-address.ts';
import { Secret } from '../../base/secret.ts';
import type { StoredRecord } from '../state/state.ts';

/* Owns the record of an InfraEnv. */

export type StaticNetwork = {
  readonly network_yaml?: string;
  readonly mac_interface_map?: readonly {
    readonly mac_address?: string;
    readonly logical_nic_name?: string;
  }[];
};

export type Proxy = {
  readonly http_proxy?: string;
  readonly https_proxy?: string;
  readonly no_proxy?: string;
};

export type KernelArgument = { readonly operation: string; readonly value: string };

/** Settings that a client may change; absent members stay unchanged. */
export type InfraEnvSettings = {
  readonly image_type?: string;
  readonly openshift_version?: string;
  readonly ssh_authorized_key?: string;
  readonly proxy?: Proxy;
  readonly additional_ntp_sources?: string;
  readonly ntp_sources?: string;
  readonly static_network_config?: readonly StaticNetwork[];
  readonly kernel_arguments?: readonly KernelArgument[];
  readonly additional_trust_bundle?: string;
  readonly rendezvous_ip?: string;
  readonly ignition_config_override?: string;
  /** The configuration image of a site, in base64. */
  readonly config_image?: string;
  readonly network_discovery_delay_seconds?: number;
};

export type InfraEnvParams = InfraEnvSettings & {
  readonly name?: string;
  readonly pull_secret?: string;
  readonly cluster_id?: string;
  readonly cpu_architecture?: string;
};

type InfraEnvHead = {
  readonly name: string;
  readonly cluster_id?: string;
  readonly openshift_version?: string;
  readonly cpu_architecture: string;
  readonly user_name: string;
  readonly created_at: string;
  readonly updated_at: string;
};

type InfraEnvBody = InfraEnvHead & InfraEnvSettings & { readonly pull_secret: string };

export type InfraEnv = InfraEnvHead &
  InfraEnvSettings & {
    readonly id: string;
    readonly tenant: string;
    readonly revision: number;
    readonly pull_secret: Secret;
  };

type MacMap = NonNullable<StaticNetwork['mac_interface_map']>;

export function toInfraEnv({ id, tenant, revision, body }: StoredRecord): InfraEnv {
  const { pull_secret, ...others } = body as InfraEnvBody;
  return { ...others, id, tenant, revision, pull_secret: new Secret(pull_secret) };
}

export function toRecord(infraEnv: InfraEnv): StoredRecord {
  const { id, tenant, revision, pull_secret, ...others } = infraEnv;
  const { cluster_id: parent } = infraEnv;
  const body: InfraEnvBody = { ...others, pull_secret: pull_secret.reveal() };
  return { id, tenant, revision, ...withoutUndefined({ parent }), body: body };
}

/** A host with MAC addresses in the form of the kernel, in which they are stored, compared and written. */
export const withUsualMacs = ({
  mac_interface_map: map = [],
  ...host
}: StaticNetwork): StaticNetwork => ({
  ...host,
  mac_interface_map: map.map(({ mac_address: mac = '', ...entry }) => ({
    ...entry,
    mac_address: parseMacAddress(mac) ?? mac,
  })),
});

/** Sorts hosts as assisted-service does: by the text of their network, then by their interfaces. */
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
