import { withoutUndefined } from '../../base/lists.ts';
import { parseMacAddress } from '../../base/mac-address.ts';
import { Secret } from '../../base/secret.ts';
import type { ServiceKey, StoredRecord } from '../state/state.ts';

/* Owns the record of an InfraEnv: its members, and the encryption of the private ones. */

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
  readonly network_discovery_delay_seconds?: number;
};

export type InfraEnvParams = InfraEnvSettings & {
  readonly name?: string;
  readonly pull_secret?: string;
  readonly cluster_id?: string;
  readonly cpu_architecture?: string;
};

/** Members of an InfraEnv that can be read without the key. */
type InfraEnvHead = {
  readonly name: string;
  readonly cluster_id?: string;
  readonly openshift_version?: string;
  readonly cpu_architecture: string;
  readonly user_name: string;
  readonly created_at: string;
  readonly updated_at: string;
};

/** Stored InfraEnv: a proxy, a network or an Ignition config may hold passwords, so they are sealed. */
type InfraEnvBody = InfraEnvHead & {
  /** Members outside the head as JSON, encrypted for this InfraEnv. */
  readonly sealed: string;
};

export type InfraEnv = InfraEnvHead &
  InfraEnvSettings & {
    readonly id: string;
    readonly tenant: string;
    readonly revision: number;
    readonly pull_secret: Secret;
  };

type Sealed = Omit<InfraEnvSettings, 'openshift_version'> & { readonly pull_secret: string };

type MacMap = NonNullable<StaticNetwork['mac_interface_map']>;

/** True if the InfraEnv is bound to this cluster; nothing is decrypted. */
export const isBoundTo = ({ body }: StoredRecord, cluster: string): boolean =>
  (body as InfraEnvBody).cluster_id === cluster;

/** @throws IntegrityError `service.key-wrong` */
export function toInfraEnv(
  key: ServiceKey,
  { id, tenant, revision, body }: StoredRecord,
): InfraEnv {
  const { sealed, ...head } = body as InfraEnvBody;
  const { pull_secret, ...settings } = JSON.parse(key.open(sealed, ownerOf(id))) as Sealed;
  return { ...settings, ...head, id, tenant, revision, pull_secret: new Secret(pull_secret) };
}

export function toRecord(key: ServiceKey, infraEnv: InfraEnv): StoredRecord {
  const { id, tenant, revision, pull_secret, ...all } = infraEnv;
  const { name, cluster_id, openshift_version, cpu_architecture, ...others } = all;
  const { user_name, created_at, updated_at, ...settings } = others;
  const sealed: Sealed = { ...settings, pull_secret: pull_secret.reveal() };
  const body: InfraEnvBody = {
    ...withoutUndefined({ cluster_id, openshift_version }),
    name,
    cpu_architecture,
    user_name,
    created_at,
    updated_at,
    sealed: key.seal(JSON.stringify(sealed), ownerOf(id)),
  };
  return { id, tenant, revision, body };
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

const ownerOf = (id: string): string => `InfraEnv ${id}`;

const sortMap = (map: MacMap): MacMap => map.toSorted(compareEntries);

const compareMaps = (a: MacMap, b: MacMap): number =>
  a.length - b.length ||
  a.reduce((order, entry, i) => order || compareEntries(entry, b[i] ?? {}), 0);

const compareEntries = (a: MacMap[number], b: MacMap[number]): number =>
  compare(a.logical_nic_name ?? '', b.logical_nic_name ?? '') ||
  compare(a.mac_address ?? '', b.mac_address ?? '');

const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b));
