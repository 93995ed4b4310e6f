import { SealiftError } from '../../base/errors.ts';
import { isObject } from '../../base/members.ts';
import type { ServiceKey } from '../service-key.ts';
import type { StoredRecord } from '../state/state.ts';

export type StaticNetwork = {
  readonly network_yaml?: string;
  readonly mac_interface_map?: readonly {
    readonly mac_address?: string;
    readonly logical_nic_name?: string;
  }[];
};

export type Proxy = {
  readonly http_proxy?: string | null;
  readonly https_proxy?: string | null;
  readonly no_proxy?: string | null;
};

export type KernelArgument = { readonly operation: string; readonly value: string };

/** What a client may set and set again; what is absent or null is left as it is. */
export type InfraEnvSettings = {
  readonly image_type?: string;
  readonly openshift_version?: string;
  readonly ssh_authorized_key?: string | null;
  readonly proxy?: Proxy;
  readonly additional_ntp_sources?: string | null;
  readonly ntp_sources?: string | null;
  readonly static_network_config?: readonly StaticNetwork[];
  readonly kernel_arguments?: readonly KernelArgument[];
  readonly additional_trust_bundle?: string | null;
  readonly rendezvous_ip?: string | null;
  readonly ignition_config_override?: string | null;
  readonly network_discovery_delay_seconds?: number;
};

export type InfraEnvParams = InfraEnvSettings & {
  readonly name?: string;
  readonly pull_secret?: string;
  readonly cluster_id?: string | null;
  readonly cpu_architecture?: string;
};

/** What is stored of an InfraEnv. */
export type InfraEnvBody = InfraEnvSettings & {
  readonly name: string;
  readonly cluster_id?: string;
  readonly cpu_architecture: string;
  readonly sealed_pull_secret: string;
  readonly user_name: string;
  readonly created_at: string;
  readonly updated_at: string;
};

export type InfraEnv = InfraEnvBody & {
  readonly id: string;
  readonly tenant: string;
  readonly revision: number;
};

export function toInfraEnv({ id, tenant, revision, body }: StoredRecord): InfraEnv {
  if (isObject(body)) return { ...(body as InfraEnvBody), id, tenant, revision };
  throw new TypeError(`the record of ${id} has no members`);
}

export const sealPullSecret = (key: ServiceKey, id: string, secret: string): string =>
  key.seal(secret, `InfraEnv ${id}`);

export const openPullSecret = (
  key: ServiceKey,
  { id, sealed_pull_secret }: Pick<InfraEnv, 'id' | 'sealed_pull_secret'>,
): string => key.open(sealed_pull_secret, `InfraEnv ${id}`);

/** False as well where the key of the service is not that of the secret any more: then a new one is stored. */
export function isPullSecret(key: ServiceKey, infraEnv: InfraEnv, secret: string): boolean {
  try {
    return openPullSecret(key, infraEnv) === secret;
  } catch (error) {
    if (error instanceof SealiftError && error.code === 'service.key-wrong') return false;
    throw error;
  }
}
