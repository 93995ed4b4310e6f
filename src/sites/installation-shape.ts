import {
  defaulted,
  described,
  FLAG,
  FREE,
  integerFrom,
  list,
  mapping,
  optional,
  otherwise,
  record,
  TEXT,
} from '../shape/shape.ts';

/*
 * Owns the keys of image-based-installation-config.yaml with their meanings and defaults. The
 * schema for editors and docs/installation-configuration.md are written from them.
 */

/** Rules report a missing text in words of their own. */
const WORD = otherwise(TEXT, '');

export const INSTALLATION = described(
  record({
    apiVersion: optional(TEXT, 'By convention `v1beta1`; not checked.'),
    kind: optional(TEXT, 'By convention `ImageBasedInstallationConfig`; not checked.'),
    metadata: optional(mapping(FREE), 'Accepted and ignored.'),
    additionalTrustBundle: optional(
      TEXT,
      'One or more certificates in PEM that the live system trusts, or `file:PATH` or `env:NAME`.',
    ),
    architecture: defaulted(TEXT, () => 'amd64', '`amd64` or `arm64`.'),
    coreosInstallerArgs: optional(
      list(WORD),
      'Arguments for coreos-installer: `--append-karg`, `--delete-karg`, `--save-partlabel` and `--save-partindex`, each followed by its value as the next element.',
    ),
    extraPartitionLabel: defaulted(
      TEXT,
      () => 'var-lib-containers',
      'Label of the partition for container storage.',
    ),
    extraPartitionNumber: defaulted(
      integerFrom(0),
      () => 5,
      'Number of the partition for container storage.',
    ),
    extraPartitionStart: defaulted(
      TEXT,
      () => '-40G',
      'Where that partition starts: `0`, or a number with an optional sign and one of K, M, G, T, P; a negative number counts from the end of the disk.',
    ),
    ignitionConfigOverride: optional(
      TEXT,
      'An Ignition configuration of specification 3.0 to 3.2 as JSON text, merged into the config of the live system, or `file:PATH` or `env:NAME`.',
    ),
    imageDigestSources: optional(
      list(
        record({
          source: optional(TEXT, 'Repository that references name.'),
          mirrors: optional(list(WORD), 'Repositories that have the same images.'),
          sourcePolicy: optional(TEXT, '`NeverContactSource` pulls from the mirrors only.'),
        }),
      ),
      'Repositories whose images are pulled from mirrors.',
    ),
    installationDisk: described(WORD, 'Disk to install on.'),
    networkConfig: optional(mapping(FREE), 'An nmstate document for the live system.'),
    proxy: optional(
      record({
        httpProxy: optional(TEXT, 'URL for HTTP requests.'),
        httpsProxy: optional(TEXT, 'URL for HTTPS requests.'),
        noProxy: optional(
          TEXT,
          'IP addresses, CIDRs and domains without a proxy, separated by commas; `*` for all.',
        ),
      }),
      'Proxies of the live system.',
    ),
    pullSecret: described(
      WORD,
      'Credentials for the seed image and the release images, as JSON text, or `file:PATH` or `env:NAME`. They are on the ISO.',
    ),
    releaseRegistry: optional(TEXT, 'Registry that the release images are precached from.'),
    seedImage: described(WORD, 'Reference of the seed image.'),
    seedVersion: described(
      WORD,
      'OpenShift version of the seed image; compared with the seed when it is installed.',
    ),
    shutdown: defaulted(FLAG, () => false, 'Power off after the installation.'),
    skipDiskCleanup: defaulted(
      FLAG,
      () => false,
      'Keep the data on the disk before the installation.',
    ),
    sshKey: optional(
      TEXT,
      'Public key for the user core, as a line of authorized_keys, or `file:PATH` or `env:NAME`.',
    ),
  }),
  'What an image-based installation ISO installs, and where. Unknown keys are refused.',
);
