import { resolve } from 'node:path';
import { withoutUndefined } from '../base/lists.ts';
import { Secret } from '../base/secret.ts';
import { parseDuration } from '../base/text/words.ts';
import { type LocalCatalog, parseLocalCatalog } from '../fbc/index.ts';
import { readTexts, type View } from '../shape/document.ts';
import { readSchema, type SchemaNode } from '../shape/json-schema.ts';
import { parseSize } from './rules.ts';
import type { Secrets } from './secrets.ts';

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
  /** True to keep every version of the selected packages. */
  readonly full: boolean;
  readonly targetCatalog?: string;
  readonly targetTag?: string;
  /** Absent: `warn`. */
  readonly dependencies?: 'add' | 'warn';
  readonly packages: readonly ({
    readonly name: string;
    readonly defaultChannel?: string;
    readonly channels: readonly ({ readonly name: string } & VersionRange)[];
    /** Names of bundles to leave out; absent when the list is empty. */
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
  /** Absent: set by an environment variable, otherwise by what the release needs. */
  readonly disableImagePolicy?: boolean;
  /** A folder or a file with signatures of releases. */
  readonly signatures?: string;
  /** Public keys that sign releases; absent: Red Hat's keys. */
  readonly signatureKeys?: string;
  /** True if nightlies and CI builds are accepted without a signature. */
  readonly allowUnsigned: boolean;
  readonly concurrency?: number;
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

/** The typed configuration of a document that has passed its checks. Defaults come from the schema. */
export function applyDefaults(view: View, secrets: Secrets): ApplianceConfig {
  const flag = (path: string): boolean => view.flag(path) ?? findDefault(path) === true;
  const text = (path: string): string =>
    view.text(path) ?? (findDefault(path) as string | undefined) ?? '';
  const url = view.text('ocpRelease.url');
  const pullSecret = secrets.values.get('pullSecret');
  const sshKey = secrets.values.get('sshKey');
  const corePass = secrets.values.get('userCorePass');
  const mirrorPath = view.text('mirrorPath');
  const diskSizeGB = view.number('diskSizeGB');
  const skipLocalRegistry = view.flag('skipLocalRegistry');
  return {
    ocpRelease: {
      version: text('ocpRelease.version'),
      channel: text('ocpRelease.channel') as ReleaseChannel,
      ...readArchitecture(view, url ?? mirrorPath),
      ...withoutUndefined({ url }),
    },
    ...(pullSecret !== undefined && { pullSecret: new Secret(pullSecret) }),
    ...withoutUndefined({ sshKey }),
    ...(corePass !== undefined && { userCorePass: new Secret(corePass) }),
    imageRegistry: {
      uri: text('imageRegistry.uri'),
      port: view.number('imageRegistry.port') ?? Number(findDefault('imageRegistry.port')),
      useBinary: flag('imageRegistry.useBinary'),
    },
    enableDefaultSources: flag('enableDefaultSources'),
    enableFips: flag('enableFips'),
    stopLocalRegistry: flag('stopLocalRegistry'),
    ...withoutUndefined({ skipLocalRegistry }),
    createPinnedImageSets: flag('createPinnedImageSets'),
    enableInteractiveFlow: flag('enableInteractiveFlow'),
    useDefaultSourceNames: flag('useDefaultSourceNames'),
    disableSigstoreRegistries: listTexts(view, 'disableSigstoreRegistries'),
    additionalImages: view.items('additionalImages').map((path) => ({
      name: view.text(`${path}.name`) ?? '',
      ...readPresent(view, path, ['targetRepo', 'targetTag']),
    })),
    blockedImages: listTexts(view, 'blockedImages', '.name').map((name) => ({ name })),
    operators: view.items('operators').map((path) => readCatalog(view, path)),
    ...(mirrorPath !== undefined && {
      mirrorPath: resolve(view.directoryOf('mirrorPath'), mirrorPath),
    }),
    ...withoutUndefined({ diskSizeGB }),
    build: readBuild(view, secrets),
  };
}

function readBuild(view: View, secrets: Secrets): BuildSettings {
  const ignition = view.text('build.ignition');
  const concurrency = view.number('build.concurrency');
  const maxSize = view.text('build.maxSize');
  const ignitionArea = view.text('build.ignitionArea');
  const disableImagePolicy = view.flag('build.disableImagePolicy');
  const retryFor = parseDuration(view.text('build.retryFor') ?? '');
  const embedded = secrets.values.get('build.embed.pullSecret');
  return {
    ...readBaseIso(view),
    ...readPaths(view),
    ...(ignition !== undefined && { ignition: ignition as 'installer' | 'embedded' }),
    kernelArguments: listTexts(view, 'build.kernelArguments'),
    allArchitectures: view.flag('build.allArchitectures') === true,
    allowUnsigned: view.flag('build.allowUnsigned') === true,
    ...withoutUndefined({ disableImagePolicy, concurrency }),
    ...(maxSize !== undefined && { maxSize: parseSize(maxSize) }),
    ...(ignitionArea !== undefined && { ignitionArea: parseSize(ignitionArea) }),
    ...withoutUndefined({ retryFor }),
    insecureRegistries: listTexts(view, 'build.insecureRegistries'),
    registryData: (view.text('build.registryData') ??
      findDefault('build.registryData')) as BuildSettings['registryData'],
    embed: embedded === undefined ? {} : { pullSecret: new Secret(embedded) },
  };
}

function readBaseIso(view: View): Partial<BuildSettings> {
  const baseIso = view.text('build.baseIso');
  const baseIsoSha256 = view.text('build.baseIsoSha256');
  if (baseIso === undefined) return {};
  const isUrl = baseIso.startsWith('https://');
  return {
    baseIso: isUrl ? baseIso : resolve(view.directoryOf('build.baseIso'), baseIso),
    ...withoutUndefined({ baseIsoSha256 }),
  };
}

/** The architecture, unless the payload or mirror that is `given` determines it. */
function readArchitecture(view: View, given = ''): { readonly cpuArchitecture?: CpuArchitecture } {
  const path = 'ocpRelease.cpuArchitecture';
  const text = view.text(path) ?? (given === '' ? findDefault(path) : undefined);
  return text === undefined ? {} : { cpuArchitecture: text as CpuArchitecture };
}

function readPaths(view: View): Partial<BuildSettings> {
  const names = [
    'installer',
    'caBundle',
    'registriesConf',
    'nmstate',
    'signatures',
    'signatureKeys',
  ];
  return Object.fromEntries(
    names.flatMap((name) => {
      const path = `build.${name}`;
      const text = view.text(path);
      return text === undefined ? [] : [[name, resolve(view.directoryOf(path), text)]];
    }),
  );
}

function readCatalog(view: View, path: string): CatalogSettings {
  const catalog = view.text(`${path}.catalog`) ?? '';
  const local = parseLocalCatalog(catalog, view.directoryOf(`${path}.catalog`));
  return {
    catalog,
    ...(local && { local }),
    full: view.flag(`${path}.full`) ?? false,
    ...readPresent(view, path, ['targetCatalog', 'targetTag']),
    ...(view.text(`${path}.dependencies`) === 'add' && { dependencies: 'add' as const }),
    packages: view.items(`${path}.packages`).map((item) => ({
      name: view.text(`${item}.name`) ?? '',
      channels: view.items(`${item}.channels`).map((channel) => ({
        name: view.text(`${channel}.name`) ?? '',
        ...readPresent(view, channel, RANGE),
      })),
      ...readPresent(view, item, ['defaultChannel', ...RANGE]),
      ...readSkipped(view, item),
    })),
  };
}

function readSkipped(view: View, item: string): { readonly skipBundles?: readonly string[] } {
  const skipBundles = listTexts(view, `${item}.skipBundles`);
  return skipBundles.length === 0 ? {} : { skipBundles };
}

const RANGE = ['minVersion', 'maxVersion', 'minBundle'] as const satisfies (keyof VersionRange)[];

/** The keys among `names` that the document has, each with its value. */
function readPresent<Name extends string>(
  view: View,
  path: string,
  names: readonly Name[],
): Readonly<Partial<Record<Name, string>>> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const text = view.text(`${path}.${name}`);
      return text === undefined ? [] : [[name, text]];
    }),
  ) as Readonly<Partial<Record<Name, string>>>;
}

const listTexts = (view: View, list: string, member = ''): readonly string[] =>
  readTexts(view, list, member).map(({ text }) => text);

function findDefault(path: string): unknown {
  let node: SchemaNode | undefined = readSchema();
  for (const name of path.split('.')) node = node?.properties?.[name];
  return node?.default;
}
