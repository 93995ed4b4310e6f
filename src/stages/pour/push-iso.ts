import type { Stage } from '../../engine/stage.ts';
import { parseTaggedAddress } from '../../outputs/output.ts';
import { MOST_LAYERS, pushArtifact } from '../../outputs/artifact.ts';
import { createMountsOf } from '../../media/push.ts';
import { openLayout } from '../../outputs/artifact/layout.ts';
import { createExtentOpener } from '../../media/output/open-extents.ts';
import type { WritingClient } from '../../registry/client.ts';
import { parseReference } from '../../registry/reference.ts';
import type { PourIsoInput, PourIsoTools, PourReport } from './pour-iso.ts';

type PushIsoTools = PourIsoTools & {
  readonly registry: Pick<WritingClient, 'writerOf' | 'placesOf'>;
};

/** Brings every layer that the registry does not have into it, verified, then the manifest and the tag. */
export const pushIso: Stage<PourIsoInput, PourReport, PushIsoTools> = {
  name: 'push ISO',
  async run({ layout, base, blobs, output, lanes, mode }, tools, { signal, onProgress }) {
    const { client, registry, cache, digests } = tools;
    const reference = parseTaggedAddress(output);
    const sources = new Map(blobs.map(({ digest, from }) => [digest, from]));
    const { artifact, open, counters } = await openLayout({
      layout,
      title: `${reference.repository.split('/').at(-1) ?? ''}-${reference.tag}.iso`,
      isPrivate: (mode & 0o004) === 0,
      openExtent: createExtentOpener({ base, blobs, cache, client, digests }),
      lanes,
      signal,
    });
    const sourcesOf = (digest: (typeof blobs)[number]['digest']) =>
      (sources.get(digest) ?? []).map(parseReference);
    const { digest, sent, mounted, present } = await pushArtifact(artifact, {
      client: registry,
      reference,
      mountsOf: createMountsOf(
        { sourcesOf },
        { client: registry, registry: reference.registry, mountFrom: [] },
      ),
      open,
      mostLayers: MOST_LAYERS,
      signal,
      onProgress,
    });
    return {
      noChecksum: 'nobody had all of its bytes here; a pull computes it',
      manifest: digest,
      bytes: { ...counters, reused: mounted + present, written: sent, readBack: 0 },
      hosts: client.statistics(),
    };
  },
};
