import type { Digest } from '../../base/digest.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { IsoRecords } from '../../outputs/file.ts';
import type { Stage } from '../../engine/stage.ts';
import { claimIso, type IsoPlace } from '../../outputs/file.ts';
import { publishIso, type PublishedIso } from '../../outputs/file.ts';
import type { FileDigests } from '../../base/disk/file-digests.ts';

export type SealIsoInput = {
  readonly place: IsoPlace;
  /** Absent where it is not known. */
  readonly digest?: NonNullable<PublishedIso['digest']>;
  readonly layout: Digest;
  /** Names hosts and times, which the ISO itself never does; it has no secret. */
  readonly report: NonNullable<PublishedIso['report']>;
};

/**
 * Gives a poured ISO its name, checksum and report. Killed before that, the pour finds all of it in place
 * and this stage runs again.
 */
export const sealIso: Stage<
  SealIsoInput,
  undefined,
  { readonly digests: FileDigests; readonly records: IsoRecords }
> = {
  name: 'seal ISO',
  async run({ place, digest, layout, report }, { digests, records }) {
    const isDevice = place.device !== undefined;
    // The pour may have taken hours. A device is written by now, and a desktop may have mounted it.
    if (!isDevice) await claimIso(place);
    await publishIso(place.output, { report, isDevice, ...withoutUndefined({ digest }) });
    if (isDevice) return undefined;
    await records.remember(place.output, layout);
    if (digest !== undefined) await digests.remember(place.output, digest);
    return undefined;
  },
};
