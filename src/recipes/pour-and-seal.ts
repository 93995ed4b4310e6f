import { withoutUndefined } from '../base/members.ts';
import type { Json } from '../base/text/canonical-json.ts';
import type { StageTime } from '../engine/engine.ts';
import type { Digest } from '../base/digest.ts';
import { digestLayout } from '../iso/pour/spans.ts';
import { placeOf, type IsoPlace } from '../media/output/claim-iso.ts';
import { pourIso, type PourIsoInput, type PourReport } from '../stages/pour/pour-iso.ts';
import { findFinishedIso } from '../stages/pour/find-finished-iso.ts';
import { sealIso } from '../stages/pour/seal-iso.ts';
import type { BuildTools } from './build-tools.ts';

/** What the report of an ISO says of the run that made it. */
export type MadeIso = PourReport & {
  readonly stages: readonly StageTime[];
  /** Names every byte of the ISO. */
  readonly layout: Digest;
  /** Whether an earlier build had finished the ISO, and nothing was written. */
  readonly isUpToDate: boolean;
};

/** The last stages of every ISO; only the first of them where it is there already. @param pour with what is known of the ISO before it is poured */
export async function pourAndSeal<Report extends Readonly<Record<string, Json | undefined>>>(
  request: IsoPlace,
  { engine, client }: BuildTools,
  { report, ...pour }: Omit<PourIsoInput, 'output'> & { readonly report: Report },
): Promise<Report & MadeIso> {
  const place = placeOf(request);
  const { output } = place;
  const layout = digestLayout(pour.layout);
  const finished = await engine.run(findFinishedIso, { layout, output });
  if (finished !== undefined) {
    const bytes = { fetched: 0, copied: 0, reused: pour.layout.size, written: 0, readBack: 0 };
    const hosts = client.statistics().map((host) => ({ ...host }));
    const stages = [...engine.times()];
    return { ...report, digest: finished, bytes, hosts, stages, layout, isUpToDate: true };
  }
  const { device } = place;
  const poured = await engine.run(pourIso, { ...pour, output, ...withoutUndefined({ device }) });
  const made = { ...report, ...poured, stages: [...engine.times()], layout, isUpToDate: false };
  await engine.run(sealIso, { place, digest: poured.digest, report: made });
  return made;
}
