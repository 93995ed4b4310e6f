import { ConfigError } from '../../base/errors.ts';
import { findRepeated } from '../../base/lists.ts';
import { type File, textFile } from '../../ignition/index.ts';
import {
  type HostNetwork,
  type Keyfile,
  profilesOf,
  readNetworkText,
} from '../../nmstate/index.ts';
import { formatManifest } from '../node/manifests.ts';

/** The values that a site adds to a bootable medium; an absent one stays as the medium has it. */
export type CustomValues = {
  /** Texts of authorized_keys, for the user core; each may have several lines. */
  readonly sshKeys?: readonly string[];
  /** JSON text. */
  readonly pullSecret?: string;
  /** IPv4 or IPv6 address of the host that installs the cluster. */
  readonly rendezvousIp?: string;
  readonly hosts?: readonly HostNetwork[];
  readonly proxy?: ProxyValues;
  /** Time servers beside those of the medium. */
  readonly ntpSources?: readonly string[];
  /** Time servers that replace those of the medium. */
  readonly exclusiveNtpSources?: readonly string[];
  /** PEM certificates. */
  readonly trustBundle?: string;
  readonly hostnames?: readonly { readonly macAddress: string; readonly name: string }[];
  /** JSON text of an Ignition config, merged over everything else. */
  readonly ignitionOverride?: string;
  readonly kargs?: {
    readonly append?: readonly string[];
    /** Arguments as they are written, removed before others are appended. */
    readonly remove?: readonly string[];
    /** `KEY=OLD=NEW`, after others are appended. */
    readonly replace?: readonly string[];
  };
  /** Network profiles that the initramfs copies into the live system. */
  readonly keyfiles?: readonly Keyfile[];
  readonly installer?: InstallerValues;
  /** JSON text: members of install-config, merged over those that the medium describes the cluster with. */
  readonly installOverrides?: string;
  /** Manifests for the cluster, by file name. */
  readonly manifests?: readonly { readonly name: string; readonly text: string }[];
  /** The release that the values are for: a medium with another release is refused. */
  readonly releaseImage?: string;
  /** Members of the InfraEnv on the medium that the values above do not represent. */
  readonly infraEnv?: {
    readonly metadata?: Readonly<Record<string, unknown>>;
    readonly spec?: Readonly<Record<string, unknown>>;
  };
};

export type NamedFile = { readonly name: string; readonly bytes: Uint8Array };

/** Values for the live system and for coreos-installer, which it runs if one of them is for an installation. */
export type InstallerValues = {
  readonly liveIgnition?: readonly NamedFile[];
  /** PEM certificates of authorities that Ignition trusts. */
  readonly ignitionCa?: readonly NamedFile[];
  readonly destIgnition?: readonly NamedFile[];
  readonly destDevice?: string;
  /** Consoles in the form of `console=`: `ttyS0,115200n8`. */
  readonly destConsole?: readonly string[];
  readonly destKargsAppend?: readonly string[];
  readonly destKargsDelete?: readonly string[];
  readonly preInstall?: readonly NamedFile[];
  readonly postInstall?: readonly NamedFile[];
  /** Files of parameters, YAML. */
  readonly installerConfig?: readonly NamedFile[];
};

export type ProxyValues = {
  readonly httpProxy?: string;
  readonly httpsProxy?: string;
  readonly noProxy?: string;
};

/** Directory of the profiles of hosts on a medium, each host in a folder with its number. */
export const HOST_NETWORKS = '/etc/assisted/network/';

/** Hosts find their own profiles by the addresses of their interfaces. */
export const planHostNetworks = (hosts: readonly HostNetwork[]): readonly File[] =>
  planNetworkFiles(hosts).map(({ path, text }) => textFile(path, text, 0o600));

export function planNetworkFiles(
  hosts: readonly HostNetwork[],
): readonly { readonly path: string; readonly text: string }[] {
  return sortHosts(hosts).flatMap((host, index) => {
    requireInterfaces(host, index);
    const directory = `${HOST_NETWORKS}host${index}`;
    const map = host.interfaces.map(({ macAddress, name }) => `${macAddress}=${name}`);
    return [
      ...profilesOf(host).map(({ name, content }) => ({
        path: `${directory}/${name}`,
        text: content,
      })),
      { path: `${directory}/mac_interface.ini`, text: map.toSorted().join('\n') },
    ];
  });
}

/** The hosts in the installer's order, which numbers them: by configuration, then by addresses. */
function sortHosts(hosts: readonly HostNetwork[]): readonly HostNetwork[] {
  const keyOf = (host: HostNetwork): readonly string[] => [
    formatManifest((host.value ?? readNetworkText(host.networkConfig).value) as object),
    String(host.interfaces.length).padStart(6, '0'),
    ...host.interfaces.map(({ name, macAddress }) => `${name}=${macAddress}`).toSorted(),
  ];
  return hosts
    .map((host) => ({ host, key: keyOf(host).join('\0') }))
    .toSorted((a, b) => (a.key < b.key ? -1 : Number(a.key > b.key)))
    .map(({ host }) => host);
}

/** Refuses a host that could not find its network; the addresses themselves were judged with the network. */
function requireInterfaces({ interfaces, source }: HostNetwork, index: number): void {
  if (interfaces.length === 0 && source !== undefined) {
    throw refuse(
      `no interface in ${source} has a mac-address, by which a host finds its network`,
      'add mac-address to the interfaces, or give an NMStateConfig',
    );
  }
  if (interfaces.length === 0) {
    throw refuse(`at least one interface for host ${index} must be provided`);
  }
  const lists = [interfaces.map(({ name }) => name), interfaces.map((each) => each.macAddress)];
  if (lists.some((each) => findRepeated(each).length > 0)) {
    throw refuse(`MACs and interfaces for host ${index} must be unique`);
  }
}

const refuse = (
  problem: string,
  hint = 'correct spec.interfaces of the NMStateConfig',
): ConfigError => new ConfigError('nmstate.interfaces', problem, { hint });
