import { withoutUndefined } from '../base/lists.ts';
import type { Json } from '../base/text/json.ts';
import { digestLayout } from '../pour/spans.ts';
import { placeOf, type IsoPlace } from '../outputs/file.ts';
import { fillCache } from '../stages/pour/fill-cache.ts';
import { pourIso, type PourIsoInput } from '../stages/pour/pour-iso.ts';
import { findFinishedIso } from '../stages/pour/find-finished-iso.ts';
import { sealIso } from '../stages/pour/seal-iso.ts';
import { isArtifactOutput, isObjectOutput } from '../outputs/output.ts';
import type { BuildTools } from './build-tools.ts';
import { describeUntouched, type MadeIso } from './made-iso.ts';
import { pushBuilt, sendAndSeal } from './send-and-seal.ts';

/** The last stages of every ISO; only the first of them where it is there already. @param pour with what is known of the ISO before it is poured */
export async function pourAndSeal<Report extends Readonly<Record<string, Json | undefined>>>(
  request: IsoPlace,
  tools: BuildTools,
  { report, ...pour }: Omit<PourIsoInput, 'output'> & { readonly report: Report },
): Promise<Report & MadeIso> {
  const place = placeOf(request);
  const { output } = place;
  const layout = digestLayout(pour.layout);
  if (isArtifactOutput(output)) {
    const common = await fillCommon(request, pour, tools);
    return pushBuilt(layout, tools, { ...pour, output, report: { ...report, ...common } });
  }
  if (isObjectOutput(output)) return sendAndSeal(layout, tools, { ...pour, output, report });
  const { engine } = tools;
  const { checksum = false } = request;
  const finished = await engine.run(findFinishedIso, { layout, output, checksum });
  if (finished !== undefined) {
    const untouched = describeUntouched(pour.layout.size, tools);
    const stages = [...engine.times()];
    return { ...report, ...finished, ...untouched, stages, isUpToDate: true };
  }
  const { device } = place;
  const common = await fillCommon(request, pour, tools);
  const poured = await engine.run(pourIso, {
    ...pour,
    output,
    checksum,
    ...withoutUndefined({ device }),
  });
  const made = {
    ...report,
    ...common,
    ...poured,
    stages: [...engine.times()],
    layout,
    isUpToDate: false,
  };
  const { digest } = poured;
  await engine.run(sealIso, { place, layout, report: made, ...withoutUndefined({ digest }) });
  return made;
}

/** Where jobs share a repository: what this one brought there, and what it found. */
async function fillCommon(
  { reuses, output }: IsoPlace,
  { blobs }: Pick<PourIsoInput, 'blobs'>,
  { engine }: BuildTools,
) {
  if (!isArtifactOutput(reuses?.cache ?? '')) return {};
  return withoutUndefined({ commonCache: await engine.run(fillCache, { blobs, output }) });
}
