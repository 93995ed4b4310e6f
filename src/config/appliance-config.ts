import { resolve } from 'node:path';
import { withoutUndefined } from '../base/lists.ts';
import { Secret } from '../base/secret.ts';
import { parseDuration, parseSize } from '../base/text/words.ts';
import { type LocalCatalog, parseLocalCatalog } from '../fbc/index.ts';
import { decode, YAML_RULES } from '../shape/decode.ts';
import type { View } from '../shape/document.ts';
import type { TypeOf } from '../shape/shape.ts';
import { COMPLETE_APPLIANCE } from './appliance-shape.ts';
import { cutTransport, readRegistryHost } from './rules.ts';
import type { SecretPath, Secrets } from './secrets.ts';

/* Owns the typed configuration of an appliance, with its defaults. */

export type ReleaseChannel = 'stable' | 'fast' | 'candidate' | 'eus';
export type CpuArchitecture = 'x86_64' | 'aarch64' | 'ppc64le';

/** The versions of a channel or package to keep. */
export type VersionRange = {
  readonly minVersion?: string;
  readonly maxVersion?: string;
  readonly minBundle?: string;
};

export type CatalogSettings = {
  /** Catalog as written. */
  readonly catalog: string;
  /** Present when the catalog is on this machine. */
  readonly local?: LocalCatalog;
  readonly full: boolean;
  readonly targetCatalog?: string;
  readonly targetTag?: string;
  readonly dependencies: 'add' | 'warn';
  readonly packages: readonly ({
    readonly name: string;
    readonly defaultChannel?: string;
    readonly channels: readonly ({ readonly name: string } & VersionRange)[];
    readonly skipBundles: readonly string[];
  } & VersionRange)[];
};

/** Our own settings, all optional. Paths are absolute: relative ones start at the configuration file. */
export type BuildSettings = {
  /** A path or an https URL; a URL always comes with `baseIsoSha256`. */
  readonly baseIso?: string;
  /** 64 lower-case hex digits. */
  readonly baseIsoSha256?: string;
  readonly installer?: string;
  readonly ignition: 'installer' | 'embedded';
  /** Appended to every karg area, in this order. */
  readonly kernelArguments: readonly string[];
  readonly caBundle?: string;
  readonly registriesConf?: string;
  readonly allArchitectures: boolean;
  /** Absent: set by an environment variable, otherwise by what the release needs. */
  readonly disableImagePolicy?: boolean;
  /** A folder or a file with signatures of releases. */
  readonly signatures?: string;
  /** Public keys that sign releases; absent: Red Hat's keys. */
  readonly signatureKeys?: string;
  /** True if nightlies and CI builds are accepted without a signature. */
  readonly allowUnsigned: boolean;
  readonly concurrency: number;
  /** Milliseconds without a byte after which a host is considered unreachable. */
  readonly retryFor?: number;
  /** Bytes. */
  readonly maxSize?: number;
  /** Bytes. */
  readonly ignitionArea?: number;
  /** Hosts, with port as in references, whose TLS certificate is not verified. */
  readonly insecureRegistries: readonly string[];
  /** Private contents of the media. */
  readonly embed: { readonly pullSecret?: Secret };
  readonly nmstate?: string;
  /** How installed hosts get the registry: copied to their disk, or always read from the medium. */
  readonly registryData: 'copy' | 'medium';
};

/** appliance-config.yaml after its checks and defaults. */
export type ApplianceConfig = {
  readonly ocpRelease: {
    /** Version as written: `4.20` stays `4.20`, quoted or not. */
    readonly version: string;
    readonly channel: ReleaseChannel;
    /** Absent: the architecture of the payload, which `url` or `mirrorPath` then gives. */
    readonly cpuArchitecture?: CpuArchitecture;
    readonly url?: string;
  };
  /** Absent if all images are in a mirror on this machine. */
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
  /** Absent: as the release does by default. */
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

type Given = TypeOf<typeof COMPLETE_APPLIANCE>;

/** Applies the defaults of the shape to a document without problems. An empty text counts as absent. */
export function applyDefaults(view: View, secrets: Secrets): ApplianceConfig {
  const sections = { imageRegistry: {}, build: {}, ...(view.document.value as object) };
  const { value } = decode(COMPLETE_APPLIANCE, sections, YAML_RULES);
  if (value === undefined) throw new Error('the configuration has not passed its checks');
  const [pullSecret, userCorePass] = [
    readSecret('pullSecret', secrets),
    readSecret('userCorePass', secrets),
  ];
  return {
    ocpRelease: readRelease(value, view),
    ...withoutUndefined({ pullSecret, userCorePass, sshKey: secrets.values.get('sshKey') }),
    imageRegistry: value.imageRegistry,
    enableDefaultSources: value.enableDefaultSources,
    enableFips: value.enableFips,
    stopLocalRegistry: value.stopLocalRegistry,
    createPinnedImageSets: value.createPinnedImageSets,
    enableInteractiveFlow: value.enableInteractiveFlow,
    useDefaultSourceNames: value.useDefaultSourceNames,
    disableSigstoreRegistries: value.disableSigstoreRegistries.flatMap(
      (text) => readRegistryHost(text) ?? [],
    ),
    additionalImages: value.additionalImages.map((image) => ({
      ...image,
      name: cutTransport(image.name),
    })),
    blockedImages: value.blockedImages,
    operators: value.operators.map((catalog, index) =>
      readCatalog(catalog, view.directoryOf(`operators[${index}].catalog`)),
    ),
    ...withoutUndefined({
      mirrorPath: resolvePath('mirrorPath', view),
      diskSizeGB: value.diskSizeGB,
      skipLocalRegistry: value.skipLocalRegistry,
    }),
    build: readBuild(value.build, view, secrets),
  };
}

function readSecret(path: SecretPath, { values }: Secrets): Secret | undefined {
  const text = values.get(path);
  return text === undefined ? undefined : new Secret(text);
}

function resolvePath(path: string, view: View): string | undefined {
  const text = view.text(path);
  return text === undefined ? undefined : resolve(view.directoryOf(path), text);
}

/** The payload or the mirror determines the architecture, unless it is written. */
function readRelease(
  { ocpRelease, mirrorPath = '' }: Given,
  view: View,
): ApplianceConfig['ocpRelease'] {
  const { cpuArchitecture, ...release } = withoutEmptyTexts(ocpRelease);
  const isGiven = (release.url ?? mirrorPath) !== '';
  const isWritten = view.text('ocpRelease.cpuArchitecture') !== undefined;
  return { ...release, ...((isWritten || !isGiven) && { cpuArchitecture }) };
}

function readBuild(given: Given['build'], view: View, secrets: Secrets): BuildSettings {
  const pullSecret = readSecret('build.embed.pullSecret', secrets);
  const sizeOf = (text: string | undefined): number | undefined =>
    text === undefined ? undefined : parseSize(text);
  return {
    ...readBaseIso(given, view),
    ...withoutUndefined(
      Object.fromEntries(PATHS.map((name) => [name, resolvePath(`build.${name}`, view)])),
    ),
    ignition: given.ignition,
    kernelArguments: given.kernelArguments,
    allArchitectures: given.allArchitectures,
    allowUnsigned: given.allowUnsigned,
    concurrency: given.concurrency,
    insecureRegistries: given.insecureRegistries,
    registryData: given.registryData,
    ...withoutUndefined({
      disableImagePolicy: given.disableImagePolicy,
      maxSize: sizeOf(given.maxSize),
      // The base ISO and the host have defaults of their own for an absent value.
      ignitionArea: sizeOf(view.text('build.ignitionArea')),
      retryFor: parseDuration(view.text('build.retryFor') ?? ''),
    }),
    embed: withoutUndefined({ pullSecret }),
  };
}

function readBaseIso(
  { baseIso, baseIsoSha256 }: Given['build'],
  view: View,
): Partial<BuildSettings> {
  if (baseIso === undefined) return {};
  const isUrl = baseIso.startsWith('https://');
  return withoutUndefined({
    baseIso: isUrl ? baseIso : resolvePath('build.baseIso', view),
    baseIsoSha256,
  });
}

const PATHS = ['installer', 'caBundle', 'registriesConf', 'nmstate', 'signatures', 'signatureKeys'];

function readCatalog(given: Given['operators'][number], directory: string): CatalogSettings {
  const catalog = cutTransport(given.catalog);
  const local = parseLocalCatalog(catalog, directory);
  return {
    ...given,
    catalog,
    ...(local && { local }),
    packages: given.packages.map(({ channels, ...item }) => ({
      ...withoutEmptyTexts(item),
      channels: channels.map(withoutEmptyTexts),
    })),
  };
}

const withoutEmptyTexts = <T extends object>(given: T): T =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== '')) as T;
