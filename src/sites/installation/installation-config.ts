import type { Secret } from '../../config/secret/secret.ts';

/** Repositories that mirror one source; the form of install-config.yaml. */
export type DigestSource = {
  readonly source: string;
  readonly mirrors: readonly string[];
  /** `NeverContactSource`, or nothing that matters here. */
  readonly sourcePolicy?: string;
};

export type InstallationProxy = {
  readonly httpProxy?: string;
  readonly httpsProxy?: string;
  readonly noProxy?: string;
};

/** image-based-installation-config.yaml, complete: what the user left out has its default. */
export type InstallationConfig = {
  /** PEM, as written. */
  readonly additionalTrustBundle: string;
  readonly architecture: 'amd64' | 'arm64';
  readonly coreosInstallerArgs: readonly string[];
  readonly extraPartitionLabel: string;
  readonly extraPartitionNumber: number;
  readonly extraPartitionStart: string;
  /** Ignition JSON, which may hold passwords. */
  readonly ignitionConfigOverride?: Secret;
  readonly imageDigestSources: readonly DigestSource[];
  readonly installationDisk: string;
  /** The nmstate document in its normal form; absent when there is none. */
  readonly networkConfig?: string;
  readonly proxy?: InstallationProxy;
  readonly pullSecret: Secret;
  readonly releaseRegistry: string;
  readonly seedImage: string;
  readonly seedVersion: string;
  readonly shutdown: boolean;
  readonly skipDiskCleanup: boolean;
  readonly sshKey: string;
};
