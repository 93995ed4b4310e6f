import { withoutUndefined } from '../../base/lists.ts';
import { Secret } from '../../base/secret.ts';
import type { Identity } from '../auth/identity.ts';
import type { Cluster } from '../clusters.ts';
import { toTime, type Service } from '../context.ts';
import { createShortId } from '../images/short-url.ts';
import { toArchitecture } from '../openapi.ts';
import {
  type InfraEnv,
  type InfraEnvParams,
  type InfraEnvSettings,
  sortNetworks,
  withUsualMacs,
} from './infra-env.ts';
import { IMAGE_TYPE } from './rules.ts';

/* Owns the InfraEnv that a request asks for, before it is stored. */

type Clock = Pick<Service, 'now'>;

type Owner = { readonly identity: Identity; readonly cluster: Cluster | undefined };

export function draftNew(
  { now }: Clock,
  params: InfraEnvParams,
  { identity, cluster }: Owner,
): InfraEnv {
  const time = toTime(now());
  return {
    ...mergeSettings({}, params),
    id: createShortId(),
    tenant: identity.tenant,
    revision: 1,
    name: params.name ?? '',
    cpu_architecture: toArchitecture(params.cpu_architecture) ?? 'x86_64',
    ...(cluster && { cluster_id: cluster.id }),
    ...(cluster &&
      !isFilled(params.openshift_version) && { openshift_version: cluster.openshift_version }),
    pull_secret: new Secret(params.pull_secret ?? ''),
    user_name: identity.user,
    created_at: time,
    updated_at: time,
  };
}

export function draftChange({ now }: Clock, params: InfraEnvParams, before: InfraEnv): InfraEnv {
  const { id, tenant, revision, name, cpu_architecture, user_name, created_at } = before;
  const { pull_secret: secret } = params;
  return {
    ...mergeSettings(before, params),
    ...withoutUndefined({ cluster_id: before.cluster_id }),
    id,
    tenant,
    revision: revision + 1,
    name,
    cpu_architecture,
    pull_secret: isFilled(secret) ? new Secret(secret) : before.pull_secret,
    user_name,
    created_at,
    updated_at: toTime(now()),
  };
}

export const isFilled = (value: string | undefined): value is string =>
  value !== undefined && value !== '';

type TextSetting =
  | 'openshift_version'
  | 'ssh_authorized_key'
  | 'additional_ntp_sources'
  | 'ntp_sources'
  | 'additional_trust_bundle'
  | 'rendezvous_ip'
  | 'ignition_config_override'
  | 'config_image';

/** Merges settings: absent members stay, an empty text clears. */
function mergeSettings(before: InfraEnvSettings, given: InfraEnvSettings): InfraEnvSettings {
  const text = (name: TextSetting): string | undefined => {
    const value = given[name] ?? before[name] ?? '';
    return value === '' ? undefined : value;
  };
  return withoutUndefined({
    image_type: IMAGE_TYPE,
    openshift_version: text('openshift_version'),
    ssh_authorized_key: text('ssh_authorized_key'),
    // Each of the two replaces the other.
    additional_ntp_sources: isFilled(given.ntp_sources)
      ? undefined
      : text('additional_ntp_sources'),
    ntp_sources: isFilled(given.additional_ntp_sources) ? undefined : text('ntp_sources'),
    additional_trust_bundle: text('additional_trust_bundle'),
    rendezvous_ip: text('rendezvous_ip'),
    ignition_config_override: text('ignition_config_override'),
    config_image: text('config_image'),
    proxy: given.proxy ?? before.proxy,
    // An argument without a value appends nothing.
    kernel_arguments:
      given.kernel_arguments?.filter(({ value }) => isFilled(value)) ?? before.kernel_arguments,
    static_network_config: given.static_network_config
      ? sortNetworks(given.static_network_config.map(withUsualMacs))
      : before.static_network_config,
    network_discovery_delay_seconds:
      given.network_discovery_delay_seconds ?? before.network_discovery_delay_seconds,
  });
}
