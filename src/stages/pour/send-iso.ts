import { parseS3Address, type S3Address } from '../../base/s3/object.ts';
import type { S3 } from '../../base/s3/s3.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { Stage, StageContext } from '../../engine/stage.ts';
import { digestLayout } from '../../pour/spans.ts';
import { nameExtents, OBJECT_KEYS, openEarlierObject } from '../../outputs/object.ts';
import { recordPathOf } from '../../outputs/output.ts';
import { isAsSent, removeChecksum } from '../../outputs/object.ts';
import { sendIso as send } from '../../outputs/object/send.ts';
import { openStoredObject, type FoundObject } from '../../outputs/object/stored.ts';
import type { EarlierObject } from '../../outputs/object.ts';
import { readUploadRecord } from '../../outputs/object/upload.ts';
import { createExtentOpener } from '../../media/output/open-extents.ts';
import type { PourIsoInput, PourIsoTools, PourReport } from './pour-iso.ts';

export type SendIsoInput = Omit<PourIsoInput, 'mode'>;

export type SendIsoTools = PourIsoTools & { readonly s3: S3; readonly workDir: string };

/** Brings every byte into the object, verified. `sealObject` tells of it. */
export const sendIso: Stage<SendIsoInput, PourReport, SendIsoTools> = {
  name: 'send ISO',
  async run({ layout, base, blobs, output, lanes }, tools, { signal, onProgress, warn }) {
    const { s3, client, workDir, cache, digests } = tools;
    const address = parseS3Address(output);
    const open = (signal: AbortSignal) => openStoredObject(s3, address, signal);
    const found = await open(signal).look();
    const earlier = found && (await openEarlier({ output, ...found }, tools, { signal, warn }));
    const digest = digestLayout(layout);
    const {
      digest: sha256,
      noChecksum,
      ...bytes
    } = await send({
      layout,
      digest,
      metadata: { [OBJECT_KEYS.layout]: digest, [OBJECT_KEYS.extents]: nameExtents(layout) },
      endpoint: s3.endpoint ?? '',
      record: recordPathOf({ output, workDir }),
      open,
      ...withoutUndefined({ replaces: found?.etag, earlier }),
      openExtent: createExtentOpener({ base, blobs, cache, client, digests }),
      lanes,
      signal,
      onProgress: (bytes) => {
        onProgress(bytes, layout.size);
      },
      warn,
      beforeComplete: () =>
        removeChecksum(address, (address) => openStoredObject(s3, address, signal)),
    });
    return {
      ...withoutUndefined({ digest: sha256, noChecksum }),
      bytes: { ...bytes, readBack: 0 },
      hosts: client.statistics(),
    };
  },
};

/** The object that is replaced, where its bytes may be copied. */
async function openEarlier(
  found: FoundObject & { readonly output: string },
  { s3, workDir }: SendIsoTools,
  { signal, warn }: Pick<StageContext, 'signal' | 'warn'>,
): Promise<EarlierObject | undefined> {
  const { output, etag } = found;
  const address = parseS3Address(output);
  const noted = (await readUploadRecord(recordPathOf({ output, workDir })))?.etag;
  const open = (address: S3Address) => openStoredObject(s3, address, signal);
  if (await isAsSent({ address, etag }, noted, open)) {
    return openEarlierObject(s3, { ...found, address }, signal);
  }
  if (found.metadata[OBJECT_KEYS.layout] !== undefined) {
    warn(`nothing shows that ${output} is as a build left it: every byte is sent again`);
  }
  return undefined;
}
