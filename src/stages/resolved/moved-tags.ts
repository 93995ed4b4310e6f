import { join } from 'path/posix';
import { hexOf, digestOf } from '../../base/digest.ts';
import { readFileIfPresent, writeFileAtomic } from '../../base/disk/files.ts';
import { formatReadableJson } from '../../base/text/json.ts';
import type { ApplianceConfig } from '../../config/appliance-config.ts';
import type { EventListener } from '../../engine/index.ts';
import { type Release, digestOfRelease } from '../../openshift/release/release.ts';
import { noteOfRelease } from '../../openshift/release/upgrade-path.ts';
import { ifFaultless, decodeJson } from '../../shape/decode.ts';
import { record, mapping, TEXT } from '../../shape/shape.ts';
import type { BuildTools } from '../tools.ts';
import type { SavedPlan } from './saved-plan.ts';
import type { TagDigests } from './tags.ts';

/* Owns tags that moved: what a run noted, and what the run before it had. */

/**
 * Collects the digests that tags named, including the release of the update graph; warns about
 * tags that moved.
 */
export async function settleTags(
  request: {
    readonly config: Pick<ApplianceConfig, 'ocpRelease'>;
    readonly configuration: string;
    readonly saved?: SavedPlan;
  },
  { tags, workDir, emit }: BuildTools,
  release: Promise<Release>,
): Promise<TagDigests> {
  const { config, ...place } = request;
  const { url = '', version, channel } = config.ocpRelease;
  if (url === '') tags.note(noteOfRelease(version, channel), digestOfRelease(await release));
  await reportMovedTags(tags.list(), { ...place, workDir, emit });
  return tags.list();
}

const NOTED_TAGS = record({ tags: mapping(TEXT) }, { others: 'left-out' });

/**
 * Warns about tags that name another image than when this configuration was last planned or built
 * in this work directory, and stores what they name now. A build of a saved plan takes the digests
 * of the plan: tags are not asked for, so nothing is reported and nothing stored.
 */
export async function reportMovedTags(
  tags: TagDigests,
  {
    workDir,
    configuration,
    saved,
    emit,
  }: {
    readonly workDir: string;
    readonly configuration: string;
    readonly saved?: SavedPlan | undefined;
    readonly emit: EventListener;
  },
): Promise<void> {
  if (saved) return;
  const name = hexOf(digestOf(configuration)).slice(0, 32);
  const path = join(workDir, 'tags', `${name}.json`);
  const bytes = await readFileIfPresent(path);
  const before = (bytes && ifFaultless(decodeJson(NOTED_TAGS, bytes)))?.tags ?? {};
  for (const [tag, digest] of Object.entries(tags)) {
    const earlier = before[tag];
    if (earlier === undefined || earlier === digest) continue;
    const message = `${tag} has moved since the last plan or build: it was ${earlier} and is ${digest}`;
    emit({ type: 'warning', message });
  }
  await writeFileAtomic(path, formatReadableJson({ configuration, tags }));
}
