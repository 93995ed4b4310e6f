import { renderSeedReconfiguration } from './seed-reconfiguration.ts';
import type { RetainedIdentity } from '../identity/retained/retain-identity.ts';
import type { SiteIdentity } from '../identity/site-identity.ts';
import type { DigestSource } from '../../openshift/installation/mirrors.ts';
import type { Site } from '../site.ts';
import { formatGoJson, omitEmpty } from '../../shape/go-json.ts';

/** What the files of a configuration ISO are made of; a checked site has all of it. */
export type ConfiguredSite = Omit<Site, 'name'>;

/** Paths are absolute. */
export type ConfigTree = {
  /** Those that are there even when empty: the lifecycle agent stops without `manifests`. */
  readonly directories: readonly string[];
  readonly files: readonly ConfigFile[];
};

export type ConfigFile = {
  readonly path: string;
  readonly bytes: Uint8Array;
  /** Permission bits. */
  readonly mode: number;
};

/** What `lsblk` must call the medium. */
export const CONFIG_VOLUME_ID = 'cluster-config';

export const MANIFEST_PATH = '/cluster-configuration/manifest.json';
const MIRRORS_PATH = '/cluster-configuration/manifests/image-digest-mirror-set.json';
const EXTRA_MANIFESTS = '/extra-manifests';
const DIRECTORIES = [
  '/cluster-configuration',
  '/cluster-configuration/manifests',
  EXTRA_MANIFESTS,
] as const;
/** The manifest holds keys: whoever copies the tree with its modes keeps them to himself. */
const SECRET = 0o600;
const PLAIN = 0o644;

/**
 * The exact tree of a configuration ISO.
 *
 * @param retained mirrors of an earlier producer, for a site that has none of its own
 */
export function planConfigTree(
  site: ConfiguredSite,
  identity: SiteIdentity,
  retained: Pick<RetainedIdentity, 'imageDigestSources'> = {},
): ConfigTree {
  const { imageDigestSources = retained.imageDigestSources } = site.install;
  const text = renderSeedReconfiguration(site, identity);
  const manifest = textFile(MANIFEST_PATH, text, SECRET);
  const mirrors = imageDigestSources && [
    textFile(MIRRORS_PATH, renderDigestMirrorSet(imageDigestSources), PLAIN),
  ];
  const extra = site.extraManifests.map(({ name, bytes }) => ({
    path: `${EXTRA_MANIFESTS}/${name}`,
    bytes,
    mode: PLAIN,
  }));
  return { directories: DIRECTORIES, files: [manifest, ...(mirrors ?? []), ...extra] };
}

const textFile = (path: string, text: string, mode: number): ConfigFile => ({
  path,
  bytes: Buffer.from(text, 'utf8'),
  mode,
});

/** ImageDigestMirrorSet on one line, entries in the order of `sources` and none merged. */
export function renderDigestMirrorSet(sources: readonly DigestSource[]): string {
  const mirrors = sources.map(({ source, mirrors, sourcePolicy }) => [
    ['source', source] as const,
    ...omitEmpty([
      ['mirrors', mirrors],
      ['mirrorSourcePolicy', sourcePolicy],
    ]),
  ]);
  return formatGoJson(
    new Map<string, Parameters<typeof formatGoJson>[0]>([
      ['kind', 'ImageDigestMirrorSet'],
      ['apiVersion', 'config.openshift.io/v1'],
      ['metadata', new Map([['name', 'image-digest-mirror']])],
      ['spec', new Map([['imageDigestMirrors', mirrors.map((members) => new Map(members))]])],
      ['status', new Map<string, string>()],
    ]),
  );
}
