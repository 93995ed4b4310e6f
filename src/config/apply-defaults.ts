import { resolve } from 'node:path';
import { parseDuration } from '../base/text/words.ts';
import { parseLocalCatalog } from '../fbc/source.ts';
import { withoutUndefined } from '../base/lists.ts';
import type {
  ApplianceConfig,
  BuildSettings,
  CatalogSettings,
  CpuArchitecture,
  ReleaseChannel,
  VersionRange,
} from './appliance-config.ts';
import { parseSize } from './check-shapes.ts';
import type { Secrets } from './secret/resolve-secrets.ts';
import { readSchema, type SchemaNode } from '../shape/document.ts';
import { Secret } from '../base/secret.ts';
import { readTexts, type View } from '../shape/document.ts';

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

/** What is given in place of the update graph says for which architecture it is. */
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

/** Those of the keys that are written. */
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
