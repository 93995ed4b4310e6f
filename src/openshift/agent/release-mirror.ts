import { findReleaseImage, type LiveSystem } from './live-system.ts';

/*
 * Owns what the services are told about mirrors (installer: pkg/asset/agent/mirror): where the release is, and
 * for which registries a pull secret needs no entry.
 */

type Mirrors = readonly { readonly source: string; readonly mirrors: readonly string[] }[];

/** Hosts of the sources that have mirrors, each once; without mirrors, the registry of the releases. */
export function listPublicRegistries(mirrors: Mirrors): readonly string[] {
  const hosts = mirrors.map(({ source }) => source.replace(/\/.*/, ''));
  return hosts.length === 0 ? ['quay.io'] : [...new Set(hosts)];
}

/** The release in the first mirror of its repository; undefined without a mirror. */
export function findReleaseMirror(
  mirrors: Mirrors,
  { clusterImageSet }: Pick<LiveSystem, 'clusterImageSet'>,
): string | undefined {
  const image = clusterImageSet && findReleaseImage(clusterImageSet);
  const [, repository, reference = ''] = /^(.+?)((?:@sha256)?:[^/]+)$/.exec(image ?? '') ?? [];
  const [mirror] = mirrors.find(({ source }) => source === repository)?.mirrors ?? [];
  return mirror === undefined ? undefined : `${mirror}${reference}`;
}
