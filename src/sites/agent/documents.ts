import {
  FLAG,
  FREE,
  INTEGER,
  list,
  listMemberNames,
  optional,
  otherwise,
  partial,
  record,
  TEXT,
  type TypeOf,
} from '../../shape/shape.ts';
import {
  INSTALL_CONFIG,
  MACHINE_POOL,
  OBJECT,
  PLATFORM,
  PUBLIC_KEYS,
  type SiteDocument,
} from '../documents.ts';

/*
 * Owns the shapes of agent-config.yaml, and of install-config.yaml with the platforms of clusters that agents
 * install (installer: pkg/types/agent, pkg/types/baremetal).
 */

const BMC = partial({
  username: TEXT,
  password: TEXT,
  address: TEXT,
  disableCertificateVerification: FLAG,
});

const HINTS = partial({
  deviceName: TEXT,
  hctl: TEXT,
  model: TEXT,
  vendor: TEXT,
  serialNumber: TEXT,
  minSizeGigabytes: INTEGER,
  wwn: TEXT,
  wwnWithExtension: TEXT,
  wwnVendorExtension: TEXT,
  rotational: FLAG,
});

/** A list whose items may be null, which Go reads as empty. */
const INTERFACES = list(otherwise(partial({ name: TEXT, macAddress: TEXT }), undefined));

const HOST = partial({
  hostname: TEXT,
  role: TEXT,
  rootDeviceHints: HINTS,
  interfaces: INTERFACES,
  networkConfig: FREE,
  BMC,
});

/** agent-config.yaml. */
export const AGENT_CONFIG = partial({
  ...OBJECT,
  rendezvousIP: TEXT,
  bootArtifactsBaseURL: TEXT,
  minimalISO: FLAG,
  additionalNTPSources: list(otherwise(TEXT, undefined)),
  hosts: list(otherwise(HOST, undefined)),
});

export type AgentConfigDocument = SiteDocument<typeof AGENT_CONFIG>;

export type WrittenAgentConfig = TypeOf<typeof AGENT_CONFIG>;

export type WrittenAgentHost = TypeOf<typeof HOST>;

const TEXTS = list(otherwise(TEXT, ''));

const BAREMETAL = partial({
  apiVIP: TEXT,
  apiVIPs: TEXTS,
  ingressVIP: TEXT,
  ingressVIPs: TEXTS,
  additionalNTPServers: TEXTS,
  clusterProvisioningIP: TEXT,
  provisioningNetwork: TEXT,
  provisioningNetworkInterface: TEXT,
  provisioningNetworkCIDR: TEXT,
  provisioningDHCPRange: TEXT,
  loadBalancer: partial({ type: TEXT }),
  dnsRecordsType: TEXT,
  hosts: list(
    otherwise(
      partial({
        name: TEXT,
        bmc: BMC,
        role: TEXT,
        bootMACAddress: TEXT,
        hardwareProfile: TEXT,
        rootDeviceHints: HINTS,
        bootMode: TEXT,
        networkConfig: FREE,
      }),
      undefined,
    ),
  ),
  libvirtURI: TEXT,
  clusterOSImage: TEXT,
  externalBridge: TEXT,
  externalMACAddress: TEXT,
  provisioningBridge: TEXT,
  provisioningMACAddress: TEXT,
  provisioningHostIP: TEXT,
  provisioningDHCPExternal: FLAG,
  bootstrapProvisioningIP: TEXT,
  bootstrapOSImage: TEXT,
  bootstrapExternalStaticIP: TEXT,
  bootstrapExternalStaticGateway: TEXT,
  bootstrapExternalStaticDNS: TEXT,
  defaultMachinePlatform: FREE,
});

export type WrittenBaremetal = TypeOf<typeof BAREMETAL>;

const EXTERNAL = partial({ platformName: TEXT, cloudControllerManager: TEXT });

const CREDENTIAL = partial({
  hostName: TEXT,
  username: TEXT,
  password: TEXT,
  address: TEXT,
  certificateVerification: TEXT,
});

const CONTROL_PLANE = record({
  ...MACHINE_POOL.members,
  fencing: optional(partial({ credentials: list(otherwise(CREDENTIAL, undefined)) })),
});

/** install-config.yaml of a cluster that agents install. */
export const AGENT_INSTALL_CONFIG = record({
  ...INSTALL_CONFIG.members,
  controlPlane: optional(CONTROL_PLANE),
  platform: optional(
    record({
      ...PLATFORM.members,
      baremetal: optional(BAREMETAL),
      external: optional(EXTERNAL),
    }),
  ),
});

export type AgentInstallDocument = SiteDocument<typeof AGENT_INSTALL_CONFIG>;

export type WrittenAgentInstall = TypeOf<typeof AGENT_INSTALL_CONFIG>;

/** Keys whose values may be shown, in lower case. */
export const AGENT_PUBLIC_KEYS: ReadonlySet<string> = new Set([
  ...PUBLIC_KEYS,
  ...[AGENT_CONFIG, AGENT_INSTALL_CONFIG]
    .flatMap(listMemberNames)
    .map((name) => name.toLowerCase()),
]);
