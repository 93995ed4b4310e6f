import { isDeepStrictEqual } from 'node:util';
import { withoutUndefined } from '../../../base/lists.ts';
import { unlessEmpty } from '../../../base/text/words.ts';
import type { MadeValue, WrittenPlace } from '../../../shape/document.ts';
import type { AgentConfigDocument, WrittenAgentHost } from '../../agent/documents.ts';
import {
  type ClusterParts,
  type HostResource,
  listNamedAddresses,
  type NetworkResource,
  placeIn,
} from './parts.ts';

/*
 * Owns the agent-config.yaml of a cluster that resources describe: hosts of a file beside them, NMStateConfigs and
 * BareMetalHosts are joined by their addresses.
 */

/** A host, and the place of each part of it. */
type Joined = {
  readonly given?: { readonly host: WrittenAgentHost; readonly place: WrittenPlace } | undefined;
  network?: NetworkResource;
  metal?: HostResource;
};

export type GivenHosts = {
  /** agent-config.yaml beside the resources. */
  readonly agent?: AgentConfigDocument | undefined;
  /** Hosts in the overrides; those of the file go before them. */
  readonly ofOverrides: readonly WrittenAgentHost[];
  readonly overrides: WrittenPlace;
};

/** Undefined if the file beside the resources says it all. */
export function makeAgentConfig(parts: ClusterParts, given: GivenHosts): MadeValue | undefined {
  const { agent, ofOverrides } = given;
  const written = agent?.value ?? {};
  const joined = joinHosts(parts, given);
  const hosts = joined.map(mapHost);
  const sources = chooseSources(parts, written.additionalNTPSources);
  const ofFile = written.hosts ?? ofOverrides;
  if (agent && isSame([hosts, sources], [ofFile, written.additionalNTPSources ?? []])) {
    return undefined;
  }
  const value = {
    apiVersion: 'v1beta1',
    kind: 'AgentConfig',
    metadata: { name: parts.deployment.spec.clusterName ?? '' },
    ...written,
    ...(sources.length > 0 && { additionalNTPSources: sources }),
    ...(!isSame(hosts, ofOverrides) && { hosts }),
  };
  return { value, placeOf: createPlacing(parts, joined, agent) };
}

type Sources = AgentConfigDocument['value']['additionalNTPSources'];

function chooseSources({ infraEnvs, problems }: ClusterParts, written: Sources = []): Sources & {} {
  const [{ spec, document }] = infraEnvs;
  const { additionalNTPSources: own = [] } = spec;
  if (own.length === 0) return written;
  if (written.length > 0 && !isSame(written, own)) {
    const why = 'agent-config.yaml has other time servers';
    problems.push(document.report('spec.additionalNTPSources', why));
  }
  return own;
}

function joinHosts(parts: ClusterParts, given: GivenHosts): readonly Joined[] {
  const joined = listGiven(given);
  for (const network of parts.networks) joinNetwork(joined, network, parts.problems);
  for (const metal of parts.hosts) joinMetal(joined, metal, parts.problems);
  return joined;
}

function listGiven({ agent, ofOverrides, overrides }: GivenHosts): Joined[] {
  const { hosts = [] } = agent?.value ?? {};
  return agent && hosts.length > 0
    ? hosts.map((host = {}, index) => ({
        given: { host, place: { document: agent, path: `hosts[${index}]` } },
      }))
    : ofOverrides.map((host) => ({ given: { host, place: overrides } }));
}

function joinNetwork(
  joined: Joined[],
  network: NetworkResource,
  problems: ClusterParts['problems'],
): void {
  const [host, other] = joined.filter((each) => meets(each, listNamedAddresses(network.spec)));
  const known = host?.network?.resource.name;
  if (!host) joined.push({ network });
  else if (other || known !== undefined) {
    const whose = known === undefined ? 'two hosts' : `NMStateConfig "${known}", too`;
    problems.push(network.document.report('spec.interfaces', `has addresses of ${whose}`));
  } else {
    host.network = network;
    requireSameNetwork(host, network, problems);
  }
}

function requireSameNetwork(
  { given }: Joined,
  { spec, document }: NetworkResource,
  problems: ClusterParts['problems'],
): void {
  const { networkConfig } = given?.host ?? {};
  if (networkConfig === undefined || isSame(networkConfig, spec.config)) return;
  const why = 'is not the network of the host with this address in agent-config.yaml';
  problems.push(document.report('spec.config', why));
}

function joinMetal(
  joined: Joined[],
  metal: HostResource,
  problems: ClusterParts['problems'],
): void {
  const host = joined.find((each) => meets(each, [addressOf(metal)]));
  if (!host) joined.push({ metal });
  else if (host.metal) {
    const why = `is the address of BareMetalHost "${host.metal.resource.name}", too`;
    problems.push(metal.document.report('spec.bootMACAddress', why));
  } else host.metal = metal;
}

const addressOf = ({ spec }: HostResource): string => spec.bootMACAddress?.toLowerCase() ?? '';

const meets = ({ given, network, metal }: Joined, addresses: readonly string[]): boolean => {
  const own = [
    ...listNamedAddresses(given?.host ?? {}),
    ...listNamedAddresses(network?.spec ?? {}),
    ...(metal ? [addressOf(metal)] : []),
  ];
  return addresses.some((address) => address !== '' && own.includes(address));
};

/** Regardless of the order of members. */
const isSame = (some: unknown, other: unknown): boolean =>
  isDeepStrictEqual(copyPlain(some), copyPlain(other));

const copyPlain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

function mapHost({ given, network, metal }: Joined): WrittenAgentHost {
  const { host = {} } = given ?? {};
  const { interfaces, networkConfig } = network ? mapNetwork(network) : host;
  const ofMetal = metal ? mapMetal(metal) : {};
  return withoutUndefined({
    ...host,
    hostname: unlessEmpty(host.hostname) ?? ofMetal.hostname,
    role: unlessEmpty(host.role) ?? ofMetal.role,
    rootDeviceHints: host.rootDeviceHints ?? ofMetal.rootDeviceHints,
    interfaces: interfaces?.length ? interfaces : ofMetal.interfaces,
    networkConfig,
  });
}

const mapNetwork = ({
  spec: { interfaces, config: networkConfig },
}: NetworkResource): WrittenAgentHost => withoutUndefined({ interfaces, networkConfig });

const OF_HOST = 'bmac.agent-install.openshift.io/';

function mapMetal({ resource, spec, annotations }: HostResource): WrittenAgentHost {
  const annotated = (name: string): string | undefined => {
    const text = annotations[`${OF_HOST}${name}`];
    return typeof text === 'string' ? unlessEmpty(text) : undefined;
  };
  return withoutUndefined({
    hostname: annotated('hostname') ?? resource.name,
    role: annotated('role'),
    rootDeviceHints: spec.rootDeviceHints,
    interfaces: [{ name: 'boot', ...withoutUndefined({ macAddress: spec.bootMACAddress }) }],
  });
}

/** Values of no host are at the file, else at the AgentClusterInstall. */
function createPlacing(
  { install, infraEnvs }: ClusterParts,
  joined: readonly Joined[],
  agent: AgentConfigDocument | undefined,
): MadeValue['placeOf'] {
  const placeOther = (path: string): WrittenPlace => {
    if (path.startsWith('additionalNTPSources')) return placeIn(infraEnvs[0], `spec.${path}`);
    if (agent) return { document: agent, path };
    return placeIn(install, path === 'hosts' ? 'spec.provisionRequirements' : 'spec');
  };
  return (path) => {
    const found = /^hosts\[(\d+)\](?:\.(\w+)(.*))?$/.exec(path);
    const [, number = '', member = '', rest = ''] = found ?? [];
    const host = found ? joined[Number(number)] : undefined;
    return (host && placeOfHost(host, member, rest)) ?? placeOther(path);
  };
}

/** Members of a host that an NMStateConfig has, and those that a BareMetalHost has. */
const OF_NETWORK: Readonly<Record<string, string>> = {
  interfaces: 'spec.interfaces',
  networkConfig: 'spec.config',
};
const OF_METAL: Readonly<Record<string, string>> = {
  hostname: 'metadata.name',
  role: `metadata.annotations.${OF_HOST}role`,
  rootDeviceHints: 'spec.rootDeviceHints',
  interfaces: 'spec.bootMACAddress',
};

function placeOfHost(
  { given, network, metal }: Joined,
  member: string,
  rest: string,
): WrittenPlace | undefined {
  const { [member]: ofNetwork } = OF_NETWORK;
  const { [member]: ofMetal } = OF_METAL;
  if (network && ofNetwork) return placeIn(network, `${ofNetwork}${rest}`);
  if (given && (member in given.host || !metal || !ofMetal)) return placeGiven(given, member, rest);
  if (metal) return placeIn(metal, ofMetal ?? 'spec');
  return network && placeIn(network, 'spec');
}

/** The overrides are one text. */
function placeGiven(
  { place: { document, path } }: NonNullable<Joined['given']>,
  member: string,
  rest: string,
): WrittenPlace {
  const isMember = member !== '' && path.startsWith('hosts');
  return { document, path: isMember ? `${path}.${member}${rest}` : path };
}
