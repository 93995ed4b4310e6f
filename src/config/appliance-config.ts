import type { LocalCatalog } from '../fbc/source.ts';
import type { Secret } from '../base/secret.ts';

export type ReleaseChannel = 'stable' | 'fast' | 'candidate' | 'eus';
export type CpuArchitecture = 'x86_64' | 'aarch64' | 'ppc64le';

/** A channel or package of a catalog, with the versions to keep. */
export type VersionRange = {
  readonly minVersion?: string;
  readonly maxVersion?: string;
  readonly minBundle?: string;
};

export type CatalogSettings = {
  /** As written. */
  readonly catalog: string;
  /** Present when the catalog is on this machine. */
  readonly local?: LocalCatalog;
  /** Every version of what is selected. */
  readonly full: boolean;
  readonly targetCatalog?: string;
  readonly targetTag?: string;
  /** Absent: `warn`. */
  readonly dependencies?: 'add' | 'warn';
  readonly packages: readonly ({
    readonly name: string;
    readonly defaultChannel?: string;
    readonly channels: readonly ({ readonly name: string } & VersionRange)[];
    /** Names of bundles to leave out; absent when there are none. */
    readonly skipBundles?: readonly string[];
  } & VersionRange)[];
};

/** Our own settings, all optional. Paths are absolute: relative ones start at the configuration file. */
export type BuildSettings = {
  /** A path or an https URL; a URL always comes with `baseIsoSha256`. */
  readonly baseIso?: string;
  /** 64 lower-case hex digits. */
  readonly baseIsoSha256?: string;
  readonly installer?: string;
  readonly ignition?: 'installer' | 'embedded';
  /** Appended to every karg area, in this order. */
  readonly kernelArguments: readonly string[];
  readonly caBundle?: string;
  readonly registriesConf?: string;
  readonly allArchitectures: boolean;
  /** Absent: as the environment says, and else as the release needs. */
  readonly disableImagePolicy?: boolean;
  /** A folder or a file with signatures of releases. */
  readonly signatures?: string;
  /** Public keys that sign releases; absent: those of Red Hat. */
  readonly signatureKeys?: string;
  /** Whether nightlies and CI builds are accepted without a signature. */
  readonly allowUnsigned: boolean;
  readonly concurrency?: number;
  /** Milliseconds without a byte after which a host is given up. */
  readonly retryFor?: number;
  /** Bytes. */
  readonly maxSize?: number;
  /** Bytes. */
  readonly ignitionArea?: number;
  /** Hosts, with port as in references, whose TLS certificate is not verified. */
  readonly insecureRegistries: readonly string[];
  /** What goes on the media besides public things. */
  readonly embed: { readonly pullSecret?: Secret };
  readonly nmstate?: string;
  /** Whether installed hosts copy the registry to their disk, or read it from the medium for good. */
  readonly registryData: 'copy' | 'medium';
};

/** appliance-config.yaml after its checks and defaults. */
export type ApplianceConfig = {
  readonly ocpRelease: {
    /** As written: `4.20` stays `4.20`, quoted or not. */
    readonly version: string;
    readonly channel: ReleaseChannel;
    /** Absent: that of the payload, which is given then. */
    readonly cpuArchitecture?: CpuArchitecture;
    readonly url?: string;
  };
  /** Absent where all images are in a mirror on this machine. */
  readonly pullSecret?: Secret;
  readonly sshKey?: string;
  readonly userCorePass?: Secret;
  readonly imageRegistry: {
    readonly uri: string;
    readonly port: number;
    readonly useBinary: boolean;
  };
  readonly enableDefaultSources: boolean;
  readonly enableFips: boolean;
  readonly stopLocalRegistry: boolean;
  /** Absent: as the release has it. */
  readonly skipLocalRegistry?: boolean;
  readonly createPinnedImageSets: boolean;
  readonly enableInteractiveFlow: boolean;
  readonly useDefaultSourceNames: boolean;
  readonly disableSigstoreRegistries: readonly string[];
  readonly additionalImages: readonly {
    readonly name: string;
    readonly targetRepo?: string;
    readonly targetTag?: string;
  }[];
  readonly blockedImages: readonly { readonly name: string }[];
  readonly operators: readonly CatalogSettings[];
  /** Absolute path of an oc-mirror workspace: the only source of images. */
  readonly mirrorPath?: string;
  /** GiB. */
  readonly diskSizeGB?: number;
  readonly build: BuildSettings;
};
