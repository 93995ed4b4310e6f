import { objectOrEmpty, withoutUndefined } from '../../base/lists.ts';
import {
  decodeFileContent,
  type File,
  type IgnitionConfig,
  parseIgnition,
  resolveConfig,
  type Unresolved,
} from '../../ignition/index.ts';
import type { ReadableIso } from '../../iso/index.ts';
import {
  CHRONY_CONFIG,
  DOCKER_CONFIG,
  EXTRA_MANIFESTS,
  HOSTNAMES,
  NETWORK_UNIT,
  PROXY_CONFIG,
  TRUST_ANCHOR,
} from '../../openshift/agent/configure.ts';
import {
  INFRA_ENV,
  parseLiveManifest,
  PULL_SECRET_MANIFEST,
} from '../../openshift/agent/live-manifest.ts';
import { findHost, RENDEZVOUS, readRendezvousIp } from '../../openshift/agent/rendezvous.ts';
import { HOST_NETWORKS } from '../../openshift/agent/values.ts';
import { decodeEmbedded, overlayRead, readOptionalKargs } from '../areas.ts';
import { listIgnitionParts, type IgnitionPart } from '../compare-configs.ts';
import { BUILT_MEMBER } from '../built.ts';
import { type HeldImage, readHeldImage } from '../held-image.ts';
import { judgeAreas, summarizeAreas } from '../judge-areas.ts';
import { planContents } from '../area-values.ts';
import { isOfOthers, type Medium, type MediumAreas, readMedium } from '../medium.ts';

/** Site values found in an ISO. Secrets are reported as present, but not shown. */
export type Customisation = {
  /** True if an area has other contents than the build left. */
  readonly customised: boolean;
  /** True if the values of the build were taken off; absent otherwise. */
  readonly bare?: boolean;
  /** True if the copy of what the build left holds values that other users must not read. */
  readonly builtSecrets: boolean;
  readonly ignition: {
    /** Bytes of the area. */
    readonly size: number;
    /** Size up to the last byte that is not zero. */
    readonly used: number;
    readonly sshKeys: readonly string[];
    readonly pullSecret: boolean;
    readonly rendezvousIp?: string;
    /** The host whose networks have the rendezvous IP: the interfaces by which it is known, `MAC=name`. */
    readonly rendezvousHost?: readonly string[];
    readonly proxy?: {
      readonly httpProxy?: string;
      readonly httpsProxy?: string;
      readonly noProxy?: string;
    };
    readonly ntpSources: readonly string[];
    readonly trustBundle: boolean;
    readonly hostnames: Readonly<Record<string, string>>;
    /** Network profiles, for hosts or for the initramfs. */
    readonly networkFiles: readonly string[];
    /** Names of manifests for the cluster. */
    readonly manifests: readonly string[];
    /** Paths of files that the original config lacks or has with other content. */
    readonly files: readonly string[];
    /** Parts that the members above do not cover: of an Ignition override, or of another tool. */
    readonly others: readonly IgnitionPart[];
    /** Configs that the config merges and whose contents are not on the ISO; absent without such configs. */
    readonly notRead?: readonly Unresolved[];
  };
  /** Absent if the ISO has no room for kernel arguments. */
  readonly kernelArguments?: { readonly now: string; readonly default: string };
  /** The configuration image of a site; absent without one. */
  readonly configImage?: HeldImage;
};

/**
 * The differences of the areas from their contents without values.
 *
 * @throws IntegrityError if the areas cannot be read, or do not hold an Ignition config
 */
export async function readCustomisation(iso: ReadableIso): Promise<Customisation> {
  const medium = await readMedium(iso);
  const found = await readValues(iso, medium);
  const { areas } = medium;
  if (!areas.built || !(await hasCopy(areas))) return { ...found, builtSecrets: false };
  const parts = planContents(areas, areas.built, 'built');
  const built = { ...iso, readBytes: overlayRead(iso.readBytes, parts) };
  const before = await readValues(built, await readMedium(built));
  return { ...found, builtSecrets: hasSecrets({ ...before, builtSecrets: false }) };
}

/** In a file, or inside the archive that replaced it. */
async function hasCopy({ embed, now }: MediumAreas): Promise<boolean> {
  const copy = now.find(({ kind }) => kind === 'built');
  if (copy) return copy.bytes.some((byte) => byte !== 0);
  return (await decodeEmbedded(embed.bytes)).others?.has(BUILT_MEMBER) === true;
}

async function readValues(
  iso: ReadableIso,
  medium: Medium,
): Promise<Omit<Customisation, 'builtSecrets'>> {
  const { embed, bare } = medium.areas;
  const state = summarizeAreas(await judgeAreas(medium.areas));
  const kargs = await readOptionalKargs(iso);
  const { config, keyfiles } = await decodeEmbedded(embed.bytes);
  const stored = isOfOthers(medium) ? undefined : bare?.archive;
  const before = stored && (await decodeEmbedded(stored)).config;
  const { config: now, unresolved = [] } = readOptional(config);
  const earlier = readOptional(before).config;
  const filesBefore = filesOf(earlier);
  const own = [...filesOf(now)].filter(([path, text]) => filesBefore.get(path) !== text);
  const namesBelow = (folder: string): readonly string[] =>
    own.flatMap(([path]) => (path.startsWith(folder) ? [path.slice(folder.length)] : []));
  return {
    customised: state === 'customised',
    ...(state === 'bare' && !isOfOthers(medium) && { bare: true }),
    ignition: {
      size: embed.bytes.length,
      used: embed.bytes.findLastIndex((byte) => byte !== 0) + 1,
      ...describe(now ?? {}, new Map(own)),
      networkFiles: [
        ...namesBelow(HOST_NETWORKS).map((name) => `${HOST_NETWORKS}${name}`),
        ...keyfiles.map(({ name }) => name),
      ],
      manifests: namesBelow(EXTRA_MANIFESTS),
      files: own.map(([path]) => path),
      others: listOthers(now, earlier),
      ...(unresolved.length > 0 && { notRead: unresolved }),
    },
    ...(kargs && { kernelArguments: { now: kargs.text, default: kargs.default } }),
    ...withoutUndefined({ configImage: await readHeldImage(medium.areas) }),
  };
}

const readOptional = (config: string | undefined): Partial<ReturnType<typeof resolveConfig>> =>
  config === undefined ? {} : resolveConfig(parseIgnition(config, 'the embedded Ignition config'));

const filesOf = (config: IgnitionConfig | undefined): ReadonlyMap<string, string> =>
  new Map(
    (config?.storage?.files ?? []).map((file) => [
      file.path,
      decodeFileContent(file)?.toString('utf8') ??
        decodeAppended(file)?.toString('utf8') ??
        JSON.stringify(file),
    ]),
  );

/** The text that a config adds to a file of the live system. */
function decodeAppended({ append = [] }: File): Buffer | undefined {
  const parts = append.map((contents) => decodeFileContent({ contents }));
  return parts.length > 0 && parts.every((part) => part !== undefined)
    ? Buffer.concat(parts)
    : undefined;
}

type Described = Pick<
  Customisation['ignition'],
  | 'sshKeys'
  | 'pullSecret'
  | 'rendezvousIp'
  | 'rendezvousHost'
  | 'proxy'
  | 'ntpSources'
  | 'trustBundle'
  | 'hostnames'
>;

type Contents = Pick<IgnitionConfig, 'passwd' | 'storage'>;

function describe(config: Contents, own: ReadonlyMap<string, string>): Described {
  const core = config.passwd?.users?.find(({ name }) => name === 'core');
  const spec = objectOrEmpty(parseLiveManifest(INFRA_ENV, own.get(INFRA_ENV) ?? '')['spec']);
  const files = config.storage?.files ?? [];
  const address = own.has(RENDEZVOUS) ? readRendezvousIp(files) : undefined;
  const names = [...own].filter(([path]) => path.startsWith(HOSTNAMES));
  return {
    sshKeys: (core?.sshAuthorizedKeys ?? [])
      .flatMap((text) => text.split('\n'))
      .filter((line) => line.trim() !== ''),
    pullSecret: own.has(DOCKER_CONFIG),
    ...withoutUndefined({
      rendezvousIp: address,
      rendezvousHost: findInterfaces(config, own, address),
      proxy: describeProxy(spec['proxy'], own),
    }),
    ntpSources: readServers(spec['ntpSources'] ?? spec['additionalNTPSources'], own),
    trustBundle: own.has(TRUST_ANCHOR),
    hostnames: Object.fromEntries(
      names.map(([path, name]) => [path.slice(HOSTNAMES.length), name]),
    ),
  };
}

type Files = ReadonlyMap<string, string>;

function findInterfaces(
  { storage }: Contents,
  own: Files,
  address: string | undefined,
): readonly string[] | undefined {
  const host = address && findHost(storage?.files ?? [], address);
  return host ? own.get(`${HOST_NETWORKS}${host}/mac_interface.ini`)?.split('\n') : undefined;
}

const readServers = (sources: unknown, own: Files): readonly string[] =>
  Array.isArray(sources) ? sources.map(String) : listServers(own);

/** For media without an InfraEnv. */
const listServers = (own: Files): readonly string[] =>
  [...(own.get(CHRONY_CONFIG) ?? '').matchAll(/^server (\S+)/gm)].flatMap(
    ([, server]) => server ?? [],
  );

const PROXY_NAMES = { HTTP_PROXY: 'httpProxy', HTTPS_PROXY: 'httpsProxy', NO_PROXY: 'noProxy' };

/** Without the password that the address may hold. */
function describeProxy(proxy: unknown, own: Files): Readonly<Record<string, string>> | undefined {
  const members = Object.entries(objectOrEmpty(proxy ?? readProxy(own)));
  if (members.length === 0) return undefined;
  return Object.fromEntries(
    members.map(([member, value]) => [member, String(value).replace(/\/\/[^/@]*@/, HIDDEN)]),
  );
}

/** For media without an InfraEnv. */
function readProxy(own: Files): object {
  const text = own.get(PROXY_CONFIG) ?? '';
  const set = Object.entries(PROXY_NAMES).flatMap(([name, member]) => {
    const [, value] = new RegExp(`^DefaultEnvironment=${name}="(.*)"$`, 'm').exec(text) ?? [];
    return value === undefined ? [] : [[member, value] as const];
  });
  return Object.fromEntries(set);
}

const HIDDEN = '//[redacted]@';

/** Described by other members of a `Customisation`; agent services read some values from an InfraEnv. */
const STOOD_FOR = [
  INFRA_ENV,
  PULL_SECRET_MANIFEST,
  DOCKER_CONFIG,
  PROXY_CONFIG,
  RENDEZVOUS,
  TRUST_ANCHOR,
  CHRONY_CONFIG,
  HOST_NETWORKS,
  HOSTNAMES,
  EXTRA_MANIFESTS,
];

function listOthers(
  config: IgnitionConfig | undefined,
  before: IgnitionConfig | undefined,
): readonly IgnitionPart[] {
  const earlier = listParts(before);
  const changed = [...listParts(config)].filter(
    ([key, { content }]) => earlier.get(key)?.content !== content,
  );
  return changed
    .map(([, { item }]) => item)
    .filter(({ kind, name }) =>
      kind === 'file' ? !STOOD_FOR.some((path) => isAt(name, path)) : name !== 'ignition.version',
    );
}

const isAt = (name: string, path: string): boolean =>
  path.endsWith('/') ? name.startsWith(path) : name === path;

/** Lists the parts of a config, except keys of core and the unit that networks need. */
function listParts(config: IgnitionConfig | undefined): ReturnType<typeof listIgnitionParts> {
  if (!config) return new Map();
  const { passwd = {}, systemd = {} } = config;
  const users = (passwd.users ?? []).flatMap((user) => {
    if (user.name !== 'core') return [user];
    const others = Object.entries(user).filter(([member]) => member !== 'sshAuthorizedKeys');
    return others.length === 1 ? [] : [{ ...Object.fromEntries(others), name: user.name }];
  });
  const units = (systemd.units ?? []).filter(({ name }) => name !== NETWORK_UNIT);
  return listIgnitionParts({
    ...config,
    passwd: { ...passwd, users },
    systemd: { ...systemd, units },
  });
}

/** Manifests, network profiles and overrides may hold passwords; a configuration image has private keys. */
export const hasSecrets = ({ ignition, builtSecrets, configImage }: Customisation): boolean =>
  builtSecrets ||
  configImage !== undefined ||
  ignition.pullSecret ||
  ignition.networkFiles.length + ignition.manifests.length + ignition.others.length > 0 ||
  Object.values(ignition.proxy ?? {}).some((address) => address.includes(HIDDEN));
