import { objectOrEmpty, withoutUndefined } from '../../base/lists.ts';
import { maskLogin } from '../../base/text/redact.ts';
import { joinProblem, printable } from '../../base/text/words.ts';
import { type IgnitionConfig, isInstalled, type Unit } from '../../ignition/index.ts';
import { parse } from '../../shape/parse-text.ts';
import { type ImagePolicy, readImagePolicies } from '../release/image-policy.ts';
import {
  explainRegistryName,
  parseRegistriesConf,
  type RegistriesConf,
  type RegistryEntry,
} from '../../registry/index.ts';

/* Reads back what `registry.ts`, `mirror-sets.ts` and `bootstrap.ts` write for nodes. */

/** The registry that a live system starts, by its own unit and scripts. */
export type StartedRegistry = {
  /** Name that the host gives itself for it, and the name in its certificate. */
  readonly domain?: string;
  readonly certifiedFor?: string;
  readonly port?: string;
  /** True if the unit starts another program of the image than its own entrypoint. */
  readonly hasEntrypoint: boolean;
  /** Absent if nothing starts it. */
  readonly unit?: { readonly isEnabled: boolean };
  /** Files that the unit cannot do without, and that no config writes. */
  readonly missing: readonly string[];
  /** Name of the image that the script loads, if the unit runs another one. */
  readonly unusedImage?: string;
};

const REGISTRY_UNIT = 'start-local-registry.service';

/** `files` has the contents of the files of a config. */
export function readStartedRegistry(
  { systemd }: IgnitionConfig,
  files: ReadonlyMap<string, Buffer>,
): StartedRegistry {
  const unit = systemd?.units?.find(({ name }) => name === REGISTRY_UNIT);
  const text = unit?.contents ?? '';
  const loaded = readSetting(files, 'load-local-registry-image.sh', 'image');
  return {
    missing: [...text.matchAll(/^EnvironmentFile=(\/\S+)$/gm)].flatMap(([, path = '']) =>
      files.has(path) ? [] : [path],
    ),
    hasEntrypoint: text.includes('--entrypoint='),
    ...withoutUndefined({
      domain: readSetting(files, 'setup-local-registry.sh', 'domain'),
      certifiedFor: readSetting(files, 'certify-local-registry.sh', 'domain'),
      port: /REGISTRY_HTTP_ADDR=:(\d+)/.exec(text)?.[1],
      unit: unit && unit.mask !== true ? { isEnabled: isStarted(unit) } : undefined,
      unusedImage: loaded !== undefined && text.includes(` ${loaded}`) ? undefined : loaded,
    }),
  };
}

const isStarted = (unit: Unit): boolean => unit.enabled === true && isInstalled(unit);

/** True if the clusters of a medium accept images of OpenShift without a signature. */
export const hasDisabledPolicy = (files: ReadonlyMap<string, Buffer>): boolean =>
  readSetting(files, 'set-env-files.sh', 'disable_image_policy') === 'yes';

/** Bytes of the registry that installed hosts copy to their disk; undefined if they do not copy. */
export function readCopyPlan(files: ReadonlyMap<string, Buffer>): number | undefined {
  const size = readSetting(files, 'copy-registry-data.sh', 'tree_size');
  const isCopied = readSetting(files, 'copy-registry-data.sh', 'registry_data') === 'copy';
  return size !== undefined && isCopied ? Number(size) : undefined;
}

/** A constant of one of our scripts, `readonly name='value'`. */
function readSetting(
  files: ReadonlyMap<string, Buffer>,
  script: string,
  name: string,
): string | undefined {
  const text = files.get(`/usr/local/bin/${script}`)?.toString('utf8') ?? '';
  return new RegExp(`^readonly ${name}='([^']*)'$`, 'm').exec(text)?.[1];
}

/**
 * Undefined if the live system has no registries.conf.
 *
 * @throws ConfigError `registries-conf.malformed`
 */
export function readLiveRegistriesConf(
  files: ReadonlyMap<string, Buffer>,
): RegistriesConf | undefined {
  const text = files.get('/etc/containers/registries.conf')?.toString('utf8');
  return text === undefined ? undefined : parseRegistriesConf(text, 'registries.conf');
}

/** A manifest of a cluster, as far as it says where nodes pull images. */
type Parsed = Readonly<Record<string, unknown>>;

const SETS = [
  { kind: 'ImageDigestMirrorSet', member: 'imageDigestMirrors', rule: 'digest-only' },
  { kind: 'ImageTagMirrorSet', member: 'imageTagMirrors', rule: 'tag-only' },
] as const;

/**
 * As the machine config operator makes it of mirror sets: one entry for each source, with the mirrors of all
 * sets in their order.
 *
 * @param texts manifests as YAML, in the order of their names
 */
export function readNodeRegistriesConf(texts: readonly string[]): RegistriesConf {
  const sources = new Map<string, { isBlocked: boolean; readonly mirrors: Map<string, Mirror> }>();
  for (const document of texts.map(parseManifest)) {
    for (const { member, rule } of SETS.filter(({ kind }) => kind === document['kind'])) {
      for (const { source, mirrors, isBlocked } of listMirrors(document, member)) {
        const known = sources.get(source) ?? { isBlocked: false, mirrors: new Map() };
        sources.set(source, known);
        known.isBlocked ||= isBlocked;
        for (const location of mirrors) {
          const mirror = { location, insecure: false, pullFromMirror: rule };
          known.mirrors.set(`${rule} ${location}`, mirror); // where it stood first
        }
      }
    }
  }
  const registries = [...sources].map(([source, { isBlocked, mirrors }]) => ({
    prefix: source,
    location: source,
    insecure: false,
    blocked: isBlocked,
    mirrors: [...mirrors.values()],
  }));
  return { registries };
}

type Mirror = RegistryEntry['mirrors'][number];

function listMirrors(
  { spec }: Parsed,
  member: string,
): readonly {
  readonly source: string;
  readonly mirrors: readonly string[];
  readonly isBlocked: boolean;
}[] {
  const list = objectOrEmpty(spec)[member];
  return (Array.isArray(list) ? list.map(objectOrEmpty) : []).flatMap((entry) => {
    const { source, mirrors = [], mirrorSourcePolicy } = entry;
    if (typeof source !== 'string' || !Array.isArray(mirrors)) return [];
    return {
      source,
      mirrors: mirrors.filter((one) => typeof one === 'string'),
      isBlocked: mirrorSourcePolicy === 'NeverContactSource',
    };
  });
}

/** Names in mirror sets that no registry can have, and for which the cluster refuses the set; each with the reason. */
export const explainMirrorNames = (texts: readonly string[]): readonly string[] =>
  texts.map(parseManifest).flatMap((document) =>
    SETS.filter(({ kind }) => kind === document['kind'])
      .flatMap(({ member }) => listMirrors(document, member))
      .flatMap(({ source, mirrors }) => [source.replace(/^\*\./, ''), ...mirrors])
      .flatMap((name) => {
        const why = explainRegistryName(name.replace(/^[\w-]+(?=\/)/, '$&:1')); // no dot is needed
        return why === undefined
          ? []
          : [joinProblem(`mirror set: "${printable(maskLogin(name))}"`, why)];
      }),
  );

export const listCatalogImages = (texts: readonly string[]): readonly string[] =>
  texts.map(parseManifest).flatMap(({ kind, spec }) => {
    const { image } = objectOrEmpty(spec);
    return kind === 'CatalogSource' && typeof image === 'string' ? image : [];
  });

/** @throws IntegrityError `release.manifest-unreadable` */
export const listImagePolicies = (texts: readonly string[]): readonly ImagePolicy[] =>
  readImagePolicies(
    texts.map((text) => ({ path: 'of an image policy', document: parseManifest(text) })),
  );

/** A manifest that is not YAML is reported by those who apply it. */
function parseManifest(text: string): Parsed {
  try {
    return objectOrEmpty(parse(text, { version: '1.1', prettyErrors: false, logLevel: 'error' }));
  } catch {
    return {};
  }
}
