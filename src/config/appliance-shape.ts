import { IMAGE_TAG, REPOSITORY } from '../registry/index.ts';
import {
  defaulted,
  described,
  FILLED,
  FLAG,
  FREE,
  integerFrom,
  list,
  mapping,
  matching,
  oneOf,
  optional,
  record,
  TEXT,
} from '../shape/shape.ts';
import { BUILD } from './build-shape.ts';

/*
 * Owns the keys of appliance-config.yaml. The editors' schema and docs/configuration.md are made from them.
 */

const REGISTRY = record({
  uri: defaulted(
    TEXT,
    () => '',
    'Reference of an image of the distribution registry; empty takes the one of the release payload, and before 4.21 the one of the newest 4.21 payload.',
  ),
  port: defaulted(
    integerFrom(1024, 65535),
    () => 5005,
    'Kept for existing files: no registry runs while building, so nothing listens on it.',
  ),
  useBinary: defaulted(
    FLAG,
    () => false,
    'Kept for existing files: no registry runs while building, as a process or as a container.',
  ),
});

export const TARGETS = {
  targetCatalog: REPOSITORY,
  targetRepo: REPOSITORY,
  targetTag: IMAGE_TAG,
} as const;

const RANGE = {
  minVersion: optional(TEXT, 'Oldest version to keep.'),
  maxVersion: optional(TEXT, 'Newest version to keep.'),
};

const PACKAGE = record({
  name: described(FILLED, 'Name of the package.'),
  defaultChannel: optional(
    FILLED,
    "Channel that becomes the package's default, when its own is not selected.",
  ),
  skipBundles: defaulted(
    list(FILLED, true),
    () => [],
    'Names of bundles to leave out, as if they had never been published: a bundle that replaced one of them replaces its predecessor instead, and skips it.',
  ),
  channels: defaulted(
    list(
      record({
        name: described(FILLED, 'Name of the channel.'),
        ...RANGE,
        minBundle: optional(
          FILLED,
          'Name of the oldest bundle to keep, with all bundles on the upgrade paths from it to the head of the channel. For bundles without a version; not together with `minVersion` or `maxVersion`.',
        ),
      }),
    ),
    () => [],
    'Channels to keep; without any, all channels of the package are kept.',
  ),
  ...RANGE,
  minBundle: optional(
    FILLED,
    'Like `minBundle` of a channel, for all channels of the package that have the bundle; others are left out.',
  ),
});

const CATALOG = record({
  catalog: described(
    FILLED,
    'Reference of the catalog image, `oci:DIRECTORY[:TAG]` of an OCI image layout, or `file:DIRECTORY` of file-based catalog files.',
  ),
  full: defaulted(
    FLAG,
    () => false,
    'Keeps every version of the selected packages, not only the heads of channels.',
  ),
  dependencies: defaulted(
    oneOf('add', 'warn'),
    () => 'warn',
    'Action for bundles that selected bundles require (`olm.package.required`, `olm.gvk.required`, `olm.constraint`) but that are not selected: `add` carries them too, from any catalog of this list, with the bundles that they require in turn; `warn` names them.',
  ),
  targetCatalog: optional(
    matching(TARGETS.targetCatalog),
    'Repository that the catalog image gets on the media; absent keeps its own path, or the last name of its directory.',
  ),
  targetTag: optional(
    matching(TARGETS.targetTag),
    'Tag that the catalog image gets on the media; absent keeps its own, or `latest` for a directory.',
  ),
  packages: defaulted(
    list(PACKAGE),
    () => [],
    'Packages to keep; without any, the whole catalog is kept.',
  ),
});

export const APPLIANCE = described(
  record({
    apiVersion: described(oneOf('v1beta1'), 'Version of this format.'),
    kind: optional(TEXT, 'By convention `ApplianceConfig`; not checked.'),
    metadata: optional(mapping(FREE), 'Accepted and ignored.'),
    ocpRelease: described(
      record({
        version: described(
          FILLED,
          '`X.Y` (the newest release of the channel) or `X.Y.Z`, with an optional pre-release part; 4.14 or newer. The text is used as written, so 4.20 stays 4.20; quotes are good style.',
        ),
        channel: defaulted(
          oneOf('stable', 'fast', 'candidate', 'eus'),
          () => 'stable',
          'Channel of the update graph.',
        ),
        cpuArchitecture: defaulted(
          oneOf('x86_64', 'aarch64', 'ppc64le'),
          () => 'x86_64',
          'Architecture of the nodes. If `url` or `mirrorPath` gives the release and this is absent, the architecture of the payload; x86_64 if the payload has several.',
        ),
        url: optional(
          TEXT,
          'Reference of the release payload by tag or digest. The update graph is then not used.',
        ),
      }),
      'The OpenShift release on the media.',
    ),
    diskSizeGB: optional(
      integerFrom(150),
      'Size of the disk image in GiB; without it, the image is as small as possible. ISOs have no use for it.',
    ),
    pullSecret: optional(
      FILLED,
      'Credentials for mirroring: JSON with `auths`, or `file:PATH`, or `env:NAME`. Never placed on the media; see `build.embed.pullSecret`.',
    ),
    sshKey: optional(
      TEXT,
      'Public keys for the user `core`, one a line, or `file:PATH`, or `env:NAME`.',
    ),
    userCorePass: optional(
      TEXT,
      'Console password of the user `core`, or `file:PATH`, or `env:NAME`. Only its hash goes on the media.',
    ),
    imageRegistry: optional(REGISTRY, 'The registry that serves the payload on the nodes.'),
    mirrorPath: optional(
      TEXT,
      'Directory of an oc-mirror workspace: `data/docker`, the storage of the registry that was mirrored to, and `working-dir` next to it; or the archives `mirror_NNNNNN.tar` of mirrorToDisk. It is the only source of images; see "sealift help mirror-path".',
    ),
    enableDefaultSources: defaulted(
      FLAG,
      () => false,
      'Whether the cluster keeps the default catalog sources; disconnected clusters need false.',
    ),
    enableFips: defaulted(
      FLAG,
      () => false,
      'Uses the FIPS build of the installer and boots with `fips=1`. Must agree with the install-config.',
    ),
    stopLocalRegistry: defaulted(
      FLAG,
      () => false,
      'Whether the registry on the nodes stops when the cluster is installed.',
    ),
    skipLocalRegistry: optional(
      FLAG,
      "Whether installed nodes run no appliance registry, because the cluster's own registry takes over. Default: `true` with `enableInteractiveFlow` if every cluster of the release has an InternalReleaseImage (4.22 and newer), otherwise `false`.",
    ),
    createPinnedImageSets: defaulted(
      FLAG,
      () => false,
      'Writes PinnedImageSet manifests; 4.16 or newer. The cluster becomes a technology preview.',
    ),
    enableInteractiveFlow: defaulted(
      FLAG,
      () => false,
      'The nodes are installed from the web interface of the media.',
    ),
    useDefaultSourceNames: defaulted(
      FLAG,
      () => false,
      'Gives catalog sources their default names, for example `redhat-operators`.',
    ),
    disableSigstoreRegistries: defaulted(
      list(described(FILLED, 'A registry host, with port if it has one, or an image of it.')),
      () => [],
      'Registries without usable sigstore signatures.',
    ),
    additionalImages: defaulted(
      list(
        record({
          name: described(
            FILLED,
            'Reference with its registry: `registry.example.com/team/app:1.2`.',
          ),
          targetRepo: optional(
            matching(TARGETS.targetRepo),
            'Repository that the image gets on the media; absent keeps its own path.',
          ),
          targetTag: optional(
            matching(TARGETS.targetTag),
            'Tag that the image gets on the media; absent keeps its own.',
          ),
        }),
      ),
      () => [],
      'Images to carry besides the release.',
    ),
    blockedImages: defaulted(
      list(
        record({
          name: described(
            FILLED,
            'Go regular expression, matched anywhere in source and destination; `(?i)` in front ignores case.',
          ),
        }),
      ),
      () => [],
      'Images to leave out.',
    ),
    operators: defaulted(
      list(CATALOG),
      () => [],
      'Operator catalogs to carry, with the packages to keep of each.',
    ),
    build: optional(
      BUILD,
      'How sealift builds. The only key that the format of openshift/appliance does not have; everything below it is optional. Relative paths start at the directory of this file.',
    ),
  }),
  'Contents of the appliance media. Keys are matched without regard to case; unknown keys are refused.',
);

/** Every section is present: an absent one has its defaults. */
export const COMPLETE_APPLIANCE = record({
  ...APPLIANCE.members,
  imageRegistry: REGISTRY,
  build: BUILD,
});
