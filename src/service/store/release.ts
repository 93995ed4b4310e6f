import { hexOf } from '../../base/digest.ts';
import type { IsoImage } from '../../iso/read/open.ts';
import { useMedium } from '../../media/open.ts';
import type { VirtualBase } from '../../media/serve/virtual.ts';

/** A release that the store has an ISO of. */
export type Release = {
  readonly version: string;
  /** As RPM says it, which assisted-service does as well. */
  readonly architecture: string;
  readonly base: VirtualBase;
  /** Whether it is an ISO of sealift, whose registry is on it; else a live ISO of CoreOS. */
  readonly isOwn: boolean;
};

/** Does something with the files of an ISO, which stays open. */
export const useRelease = <Result>(
  { base }: Pick<Release, 'base'>,
  work: (iso: IsoImage) => Promise<Result>,
): Promise<Result> =>
  useMedium(
    {
      path: base.name,
      size: base.size,
      async read(offset, size, buffer = Buffer.allocUnsafe(size)) {
        const bytes = buffer.subarray(0, size);
        await base.fill(bytes, offset, new AbortController().signal);
        return bytes;
      },
      close: () => Promise.resolve(),
    },
    work,
  );

/** What names the bytes of a release in URLs. */
export const shortDigest = ({ base }: Release): string => hexOf(base.digest).slice(0, 12);
