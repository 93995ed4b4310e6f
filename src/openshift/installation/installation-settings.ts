/** What of the user's configuration reaches an installation ISO. An empty text is nothing. */
export type InstallationSettings = {
  /** PEM, one certificate or more. */
  readonly additionalTrustBundle: string;
  /** For coreos-installer. */
  readonly coreosInstallerArgs: readonly string[];
  readonly extraPartitionLabel: string;
  readonly extraPartitionNumber: number;
  readonly extraPartitionStart: string;
  readonly imageDigestSources: readonly {
    readonly source: string;
    readonly mirrors: readonly string[];
    readonly sourcePolicy?: string;
  }[];
  readonly installationDisk: string;
  /** An nmstate document in its normal form. */
  readonly networkConfig?: string;
  readonly proxy?: {
    readonly httpProxy?: string;
    readonly httpsProxy?: string;
    readonly noProxy?: string;
  };
  readonly releaseRegistry: string;
  readonly seedImage: string;
  readonly seedVersion: string;
  readonly shutdown: boolean;
  readonly skipDiskCleanup: boolean;
  readonly sshKey: string;
};
