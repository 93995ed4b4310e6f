/** What a site adds to a medium that boots. Every member may be absent: it then stays as the medium has it. */
export type CustomValues = {
  /** Lines of authorized_keys, for the user core. */
  readonly sshKeys?: readonly string[];
  /** JSON text. */
  readonly pullSecret?: string;
  /** IPv4 or IPv6 address of the host that installs the cluster. */
  readonly rendezvousIp?: string;
  readonly hosts?: readonly HostNetwork[];
  readonly proxy?: ProxyValues;
  readonly ntpSources?: readonly string[];
  /** PEM certificates. */
  readonly trustBundle?: string;
  readonly hostnames?: readonly { readonly macAddress: string; readonly name: string }[];
  /** JSON text of an Ignition config, merged over everything else. */
  readonly ignitionOverride?: string;
  readonly kargs?: {
    readonly append?: readonly string[];
    /** Arguments as they are written, removed before others are appended. */
    readonly remove?: readonly string[];
  };
  /** For the cluster, by file name. */
  readonly manifests?: readonly { readonly name: string; readonly text: string }[];
  /** The release that the values are for: another one on the medium is refused. */
  readonly releaseImage?: string;
  /** Members of the InfraEnv on the medium that the values above do not stand for. */
  readonly infraEnv?: {
    readonly metadata?: Readonly<Record<string, unknown>>;
    readonly spec?: Readonly<Record<string, unknown>>;
  };
};

export type ProxyValues = {
  readonly httpProxy?: string;
  readonly httpsProxy?: string;
  readonly noProxy?: string;
};

/** The network of one host, as an NMStateConfig has it. */
export type HostNetwork = {
  /** nmstate, as YAML text. */
  readonly networkConfig: string;
  /** The file that it is the whole of, for messages; absent where a resource names the interfaces. */
  readonly source?: string;
  /** Names of the configuration, by the address of the interface that each stands for. */
  readonly interfaces: readonly { readonly name: string; readonly macAddress: string }[];
  /** As nmstate itself made them of the configuration; absent: they are made here. */
  readonly keyfiles?: readonly Keyfile[];
};

/** A connection profile of NetworkManager. */
export type Keyfile = { readonly name: string; readonly content: string };
