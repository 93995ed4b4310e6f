import type { Plain } from '../../shape/shape.ts';

/* Owns the type of a cluster as the agent-based installer describes it to its services, defaults filled in. */

type Members = Readonly<Record<string, unknown>>;

/** Roles in the order in which hosts without a role fill them. */
export const AGENT_ROLES = ['master', 'arbiter', 'worker'] as const;

export type AgentRole = (typeof AGENT_ROLES)[number];

export type AgentHost = {
  /** Absent: the host has the name that DHCP or DNS gives it. */
  readonly hostname?: string;
  /** Absent: any role. */
  readonly role?: AgentRole;
  /** As in a BareMetalHost; absent if the first disk that fits is taken. */
  readonly rootDeviceHints?: Members;
  /** At least one; the host is known by any of the addresses. */
  readonly interfaces: readonly { readonly name?: string; readonly macAddress: string }[];
  /** An nmstate document, as text in its normal form, made when it is read, and as it was written; absent: DHCP. */
  readonly network?: { readonly text: string; readonly value: Plain };
  /** Members of a BMC as in `platform.baremetal.hosts[].bmc`. */
  readonly bmc?: Members;
};

/** Access to the management controller that switches off the other node of two. */
export type FencingCredential = Readonly<
  Record<'hostName' | 'username' | 'password' | 'address', string>
> & { readonly certificateVerification?: string };

/** A platform and what it adds to the description of a cluster. */
export type AgentPlatform =
  | { readonly kind: 'none' }
  | {
      readonly kind: 'external';
      readonly platformName: string;
      readonly cloudControllerManager: string;
    }
  | {
      readonly kind: 'baremetal';
      /** One or two, IPv4 or IPv6. */
      readonly apiVIPs: readonly string[];
      readonly ingressVIPs: readonly string[];
      /** Members of the provisioning network, which hosts with a BMC need. */
      readonly provisioning: Members;
    };

export type AgentCluster = {
  readonly name: string;
  /** `metadata.namespace` of install-config; no program on a host compares it. */
  readonly namespace?: string;
  readonly baseDomain: string;
  /** Lines of authorized_keys; may be empty. */
  readonly sshKey: string;
  /** JSON text. */
  readonly pullSecret: string;
  /** `amd64`, `arm64`, `ppc64le` or `s390x`. */
  readonly architecture: string;
  readonly networkType: string;
  /** CIDRs. */
  readonly machineNetwork: readonly string[];
  readonly clusterNetwork: readonly { readonly cidr: string; readonly hostPrefix: number }[];
  readonly serviceNetwork: readonly string[];
  readonly replicas: Readonly<Record<AgentRole, number>>;
  readonly platform: AgentPlatform;
  readonly proxy?: {
    readonly httpProxy?: string;
    readonly httpsProxy?: string;
    readonly noProxy?: string;
  };
  readonly trustBundle?: string;
  readonly ntpSources?: readonly string[];
  /** Members of the AgentClusterInstall without a counterpart in install-config. */
  readonly installMembers?: Members;
  /** Release image that the resources of the cluster name; the image of the cluster has that of its medium. */
  readonly release?: string;
  /** Members of install-config that only its overrides carry, in the order in which Go writes them. */
  readonly overrides: Members;
  readonly fencing: readonly FencingCredential[];
  readonly hosts: readonly AgentHost[];
  /** In the spelling of RFC 5952. */
  readonly rendezvousIp: string;
  /** Repositories and their mirrors, without tags and digests. */
  readonly mirrors: readonly { readonly source: string; readonly mirrors: readonly string[] }[];
  /** Gives agent-config.yaml as it was written. */
  readonly agentConfig?: () => Uint8Array;
  /** Manifests for the cluster, by file name. */
  readonly manifests: readonly { readonly name: string; readonly bytes: Uint8Array }[];
};
