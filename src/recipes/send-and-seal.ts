import type { Digest } from '../base/digest.ts';
import { withoutUndefined } from '../base/lists.ts';
import type { Json } from '../base/text/json.ts';
import type { IsoPlace } from '../outputs/file.ts';
import { isArtifactOutput, isObjectOutput } from '../outputs/output.ts';
import { claimObject } from '../stages/pour/claim-object.ts';
import { findFinishedObject } from '../stages/pour/find-finished-object.ts';
import { sealObject } from '../stages/pour/seal-object.ts';
import { pushIso } from '../stages/pour/push-iso.ts';
import { sendIso, type SendIsoInput } from '../stages/pour/send-iso.ts';
import type { PourIsoInput } from '../stages/pour/pour-iso.ts';
import type { BuildTools } from './build-tools.ts';
import { describeUntouched, type MadeIso } from './made-iso.ts';

/** Refuses a place that must not be written; files are refused before the tools are open. */
export async function claimOutputObject(
  { output, force }: Pick<IsoPlace, 'output' | 'force'>,
  { engine }: BuildTools,
): Promise<void> {
  if (isObjectOutput(output) && !isArtifactOutput(output))
    await engine.run(claimObject, { output, force });
}

/** The last stage of an ISO that becomes an artifact: the registry is asked for every layer, so nothing else remembers. */
export async function pushBuilt<Report extends Readonly<Record<string, Json | undefined>>>(
  layout: Digest,
  { engine }: BuildTools,
  { report, ...input }: PourIsoInput & { readonly report: Report },
): Promise<Report & MadeIso> {
  const pushed = await engine.run(pushIso, input);
  const isUpToDate = pushed.bytes.written === 0;
  return { ...report, ...pushed, stages: [...engine.times()], layout, isUpToDate };
}

/** The last stages of an ISO that becomes an object; only the first of them where it is there already. */
export async function sendAndSeal<Report extends Readonly<Record<string, Json | undefined>>>(
  layout: Digest,
  { engine, client }: BuildTools,
  { report, ...input }: SendIsoInput & { readonly report: Report },
): Promise<Report & MadeIso> {
  const { output } = input;
  const { size } = input.layout;
  const finished = await engine.run(findFinishedObject, { layout, size, output });
  const sent = finished ? undefined : await engine.run(sendIso, input);
  const made = {
    ...report,
    ...(sent ?? {
      ...describeUntouched(size, { client }),
      ...(finished?.digest === undefined
        ? { noChecksum: 'an earlier run sent it' }
        : { digest: finished.digest }),
    }),
    stages: [...engine.times()],
    layout,
    isUpToDate: sent === undefined,
  };
  if (finished?.isSealed === true) return made;
  const known = withoutUndefined({ digest: made.digest, etag: finished?.etag });
  await engine.run(sealObject, { output, layout, report: made, ...known });
  return made;
}
