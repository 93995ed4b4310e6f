import type { DocumentProblem } from '../base/errors.ts';
import type { Redaction } from '../base/text/redact.ts';
import { readSecretSource, type SecretReading, isReference } from '../config/secrets.ts';
import { decodeMade, decodeYaml, type ConfigDocument } from '../shape/document.ts';
import {
  FLAG,
  FREE,
  INTEGER,
  list,
  listMemberNames,
  mapping,
  otherwise,
  partial,
  TEXT,
  type Shape,
  type TypeOf,
} from '../shape/shape.ts';
import type { SiteFile } from './site.ts';

/*
 * Owns the shapes of install-config.yaml and image-based-config.yaml, and the `file:` and `env:`
 * references in them.
 */

/** A list whose items may be null, which Go reads as empty. */
const listOf = <T>(of: Shape<T>): Shape<readonly (T | undefined)[]> =>
  list(otherwise(of, undefined));

const TEXTS = mapping(otherwise(TEXT, ''));

/** Kubernetes' type and object metadata: accepted and, except for the name, not checked. */
export const OBJECT = {
  apiVersion: TEXT,
  kind: TEXT,
  metadata: partial({
    name: TEXT,
    generateName: TEXT,
    namespace: TEXT,
    selfLink: TEXT,
    uid: TEXT,
    resourceVersion: TEXT,
    generation: INTEGER,
    creationTimestamp: TEXT,
    deletionTimestamp: TEXT,
    deletionGracePeriodSeconds: INTEGER,
    labels: TEXTS,
    annotations: TEXTS,
    ownerReferences: FREE,
    finalizers: listOf(TEXT),
    managedFields: FREE,
  }),
};

const CLUSTER_NETWORKS = listOf(
  partial({ cidr: TEXT, hostPrefix: INTEGER, hostSubnetLength: INTEGER }),
);

export const MACHINE_POOL = partial({
  name: TEXT,
  replicas: INTEGER,
  architecture: TEXT,
  hyperthreading: TEXT,
  platform: FREE,
  fencing: FREE,
  diskSetup: FREE,
  management: FREE,
  osImageStream: TEXT,
});

/** Only the presence of another platform matters; its members do not. */
export const PLATFORM = partial({
  aws: FREE,
  azure: FREE,
  baremetal: FREE,
  external: FREE,
  gcp: FREE,
  ibmcloud: FREE,
  none: partial({}),
  nutanix: FREE,
  openstack: FREE,
  powervc: FREE,
  powervs: FREE,
  vsphere: FREE,
});

const IMAGE_SOURCES = listOf(partial({ source: TEXT, mirrors: listOf(TEXT), sourcePolicy: TEXT }));

/** install-config.yaml, with the deprecated networking keys that are still converted. */
export const INSTALL_CONFIG = partial({
  ...OBJECT,
  additionalTrustBundle: TEXT,
  additionalTrustBundlePolicy: TEXT,
  sshKey: TEXT,
  baseDomain: TEXT,
  networking: partial({
    networkType: TEXT,
    machineNetwork: listOf(partial({ cidr: TEXT })),
    clusterNetwork: CLUSTER_NETWORKS,
    serviceNetwork: listOf(TEXT),
    clusterNetworkMTU: INTEGER,
    ovnKubernetesConfig: FREE,
    machineCIDR: TEXT,
    type: TEXT,
    serviceCIDR: TEXT,
    clusterNetworks: CLUSTER_NETWORKS,
  }),
  controlPlane: MACHINE_POOL,
  arbiter: MACHINE_POOL,
  compute: listOf(MACHINE_POOL),
  platform: PLATFORM,
  pullSecret: TEXT,
  proxy: partial({ httpProxy: TEXT, httpsProxy: TEXT, noProxy: TEXT }),
  imageContentSources: listOf(partial({ source: TEXT, mirrors: listOf(TEXT) })),
  imageDigestSources: IMAGE_SOURCES,
  publish: TEXT,
  operatorPublishingStrategy: FREE,
  fips: FLAG,
  cpuPartitioningMode: TEXT,
  credentialsMode: TEXT,
  bootstrapInPlace: partial({ installationDisk: TEXT }),
  capabilities: partial({
    baselineCapabilitySet: TEXT,
    additionalEnabledCapabilities: listOf(TEXT),
  }),
  featureSet: TEXT,
  featureGates: listOf(TEXT),
  osImageStream: TEXT,
});

/** install-config.yaml as the user wrote it, without any default. */
export type WrittenInstallConfig = TypeOf<typeof INSTALL_CONFIG>;

/** image-based-config.yaml. Two of its keys are written with underscores. */
export const IMAGE_BASED_CONFIG = partial({
  ...OBJECT,
  additionalNTPSources: listOf(TEXT),
  hostname: TEXT,
  networkConfig: FREE,
  releaseRegistry: TEXT,
  cluster_id: TEXT,
  infra_id: TEXT,
  nodeLabels: TEXTS,
});

export type WrittenImageBasedConfig = TypeOf<typeof IMAGE_BASED_CONFIG>;

export type SiteDocument<S> = ConfigDocument<TypeOf<S>>;

/** The places in which `file:` and `env:` are looked up. */
export type ReferenceSource = {
  /**
   * Base of relative paths; for tables, the template's folder. An archive has no folder on this
   * machine, and its author may not be the user: it cannot name files.
   */
  readonly directory?: string | undefined;
  readonly env: NodeJS.ProcessEnv;
  /** Masks pull secrets. */
  readonly redaction: Redaction;
};

/** Values of references, by key: part of the inputs that a document gives. Secrets are among them. */
export type References = ReadonlyMap<string, string>;

/** Names of platforms, in alphabetical order. */
export const PLATFORMS: readonly string[] = Object.keys(PLATFORM.members);

/** Reads strictly: unknown and duplicate keys are problems. */
export const readSiteDocument = <S extends Shape>(
  file: SiteFile,
  shape: S,
  publicKeys = PUBLIC_KEYS,
): SiteDocument<S> =>
  file.made
    ? decodeMade(file.made, shape)
    : decodeYaml({ text: file.bytes, file: file.shownAs, publicKeys }, shape);

/** Keys of the network configuration whose values may be shown in a problem. */
const NETWORK_KEYS = [
  'interfaces name type state mtu mac-address identifier ipv4 ipv6 address ip prefix-length enabled',
  'dhcp autoconf routes config destination next-hop-address next-hop-interface metric table-id',
  'dns-resolver server search link-aggregation mode options port ports vlan base-iface id bridge',
  'controller cidr hostprefix none route-rules ip-from ip-to route-table priority fwmark fwmask family',
  'action iif source weight cwnd route-type auto-dns auto-gateway auto-routes auto-route-table-id',
  'auto-route-metric profile-name min-mtu max-mtu wait-ip copy-mac-from accept-all-mac-addresses lldp',
  'ethernet speed duplex auto-negotiation veth peer protocol vrf route-table-id vxlan remote local',
  'destination-port mac-vlan mac-vtap promiscuous infiniband miimon primary running hostname',
]
  .join(' ')
  .split(' ');

/** Keys that may be shown, in lower case. A key that is not among them may be a misspelt secret. */
export const PUBLIC_KEYS: ReadonlySet<string> = new Set([
  ...[INSTALL_CONFIG, IMAGE_BASED_CONFIG]
    .flatMap(listMemberNames)
    .map((name) => name.toLowerCase()),
  ...NETWORK_KEYS,
]);

/** Keys whose value may be in a file or a variable. */
const KEYS = ['pullSecret', 'sshKey', 'additionalTrustBundle', 'ignitionConfigOverride'];

/**
 * Replaces `file:PATH` and `env:NAME` in a document with the values they name. Values written in the
 * document itself stay as they are. No problem shows a value.
 */
export function resolveReferences<Value>(
  document: ConfigDocument<Value>,
  { directory, env, redaction }: ReferenceSource,
): { readonly document: ConfigDocument<Value>; readonly references: References } {
  const references = new Map<string, string>();
  const problems: DocumentProblem[] = [];
  const members = new Map<string, unknown>(Object.entries(document.value ?? {}));
  for (const key of KEYS) {
    const text = members.get(key);
    if (typeof text !== 'string') continue;
    if (key === 'pullSecret') redaction.add(text);
    if (!isReference(text)) continue;
    const reading = readReference(text, { directory, env });
    if (reading.kind === 'value') {
      references.set(key, reading.value);
      if (key === 'pullSecret') redaction.add(reading.value);
    } else {
      const hint = reading.kind === 'absent' ? reading.hint : undefined;
      problems.push(document.report(key, reading.problem, { hint }));
    }
  }
  return {
    references,
    document: {
      ...document,
      value: { ...document.value, ...Object.fromEntries(references) },
      problems: [...document.problems, ...problems],
    },
  };
}

const IN_ARCHIVE = {
  kind: 'absent',
  problem: 'a file: reference cannot be used inside an archive',
  hint: 'write env:NAME, or unpack the archive',
} as const;

function readReference(
  text: string,
  { directory, env }: Omit<ReferenceSource, 'redaction'>,
): SecretReading {
  return directory === undefined && text.startsWith('file:')
    ? IN_ARCHIVE
    : readSecretSource(text, { directory: directory ?? '', env });
}
