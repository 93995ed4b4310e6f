import { ConfigError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { parseIgnition } from '../../ignition/config.ts';
import type { IsoImage } from '../../iso/read/open.ts';
import {
  describeLiveSystem,
  findReleaseImage,
  findScalar,
} from '../../openshift/agent/live-system.ts';
import { compareReleases, type KnownRelease } from '../../openshift/release/version.ts';
import { readIndex } from '../index/media-index.ts';

/**
 * Refuses a ClusterImageSet of another release, as the installer does; so would the nodes, after they have booted.
 *
 * @param config JSON text of the Ignition config of the medium
 * @param warn told where neither digests nor tags tell
 * @throws ConfigError `customize.other-release`
 */
export async function requireRelease(
  iso: IsoImage,
  { config, given }: { readonly config: string | undefined; readonly given: string },
  warn?: (text: string) => void,
): Promise<void> {
  const known = config === undefined ? undefined : await readRelease(iso, config);
  const answer = known ? compareReleases(given, known) : 'same';
  if (!known || answer === 'same') return;
  const found = Object.values(known).join(', ');
  if (answer === 'unknown') {
    warn?.(`the ClusterImageSet names ${given}, which cannot be compared with the ISO's ${found}`);
    return;
  }
  throw new ConfigError('customize.other-release', 'the ClusterImageSet is of another release', {
    expected: found,
    found: given,
    hint: 'correct spec.releaseImage, or give the ISO of that release',
  });
}

/** undefined where no ClusterImageSet is on the medium. */
async function readRelease(iso: IsoImage, config: string): Promise<KnownRelease | undefined> {
  const live = describeLiveSystem([parseIgnition(config, 'the embedded Ignition config')]);
  const set = live.clusterImageSet;
  const image = set && findReleaseImage(set);
  if (set === undefined || image === undefined) return undefined;
  const { release } = (await readIndex(iso)) ?? {};
  if (release) return { image, version: release.version, architecture: release.architecture };
  const [, version] = /^openshift-(\d.*)$/.exec(findScalar(set, 'name') ?? '') ?? [];
  return { image, ...withoutUndefined({ version }) };
}
