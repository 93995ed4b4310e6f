import { join } from 'node:path';
import { formatReadableJson } from '../base/text/json.ts';
import { digestOf, hexOf } from '../base/digest.ts';
import { readFileIfPresent, writeFileAtomic } from '../base/disk/files.ts';
import type { ApplianceConfig } from '../config/appliance-config.ts';
import type { EventListener } from '../engine/engine.ts';
import { noteOfRelease } from '../openshift/release/upgrade-path.ts';
import { digestOfRelease, type Release } from '../openshift/release/release.ts';
import type { TagDigests } from '../registry/tag-ledger.ts';
import type { BuildTools } from './build-tools.ts';
import type { SavedPlan } from './saved-plan.ts';

/** What tags named, the release of the update graph among them; warns of those that moved. */
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

/**
 * Warns of tags that name another image than when this configuration was last planned or built out of
 * this work directory, and keeps what they name now. A build of a saved plan takes what the plan says:
 * what tags name now is not asked, so nothing is reported and nothing stored.
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
  const before = parse(await readFileIfPresent(path));
  for (const [tag, digest] of Object.entries(tags)) {
    const earlier = before[tag];
    if (earlier === undefined || earlier === digest) continue;
    const message = `${tag} has moved since the last plan or build: it was ${earlier} and is ${digest}`;
    emit({ type: 'warning', message });
  }
  await writeFileAtomic(path, formatReadableJson({ configuration, tags }));
}

function parse(bytes: Uint8Array | undefined): Readonly<Record<string, string | undefined>> {
  if (bytes === undefined) return {};
  try {
    const value = JSON.parse(Buffer.from(bytes).toString('utf8')) as {
      readonly tags?: Readonly<Record<string, string>>;
    } | null;
    return value?.tags ?? {};
  } catch {
    return {}; // damaged: nothing is known of before
  }
}
