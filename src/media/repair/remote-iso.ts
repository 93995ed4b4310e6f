import { digestOf, type Digest } from '../../base/digest.ts';
import type { ByteRange, RandomAccess } from '../../base/random-access.ts';
import { readIndex } from '../index/media-index.ts';
import { useMedium } from '../open-medium.ts';
import { copyVerified, type OpenTarget, type Repair, type RunReader } from './copy-verified.ts';
import { unlessFailed } from './fetch-extent.ts';

/** An ISO of ours that is read by ranges, and where it has what. */
export type RemoteIso = {
  readonly access: RandomAccess;
  readonly places: ReadonlyMap<Digest, ByteRange>;
};

/** The same bytes for who closes what it has read; they stay open. */
export const keepOpen = (access: RandomAccess): RandomAccess => ({
  ...access,
  close: () => Promise.resolve(),
});

/** @throws what `openIso` and `readIndex` throw */
export function readRemoteIso(access: RandomAccess): Promise<RemoteIso> {
  return useMedium(keepOpen(access), async (iso) => {
    const places = new Map<Digest, ByteRange>();
    for (const { offset, size, ...extent } of (await readIndex(iso))?.extents ?? []) {
      const digest = extent.digest ?? extent.pristine; // verified when it is read
      places.set(digest ?? digestOf(await iso.readBytes(offset, size)), { offset, size });
    }
    return { access, places };
  });
}

/** Reads an extent whole, because it has no other digest, and writes what differs. */
export const repairFromRemote =
  (
    target: OpenTarget,
    isos: readonly RemoteIso[],
    { signal, warn }: { readonly signal: AbortSignal; readonly warn: (message: string) => void },
  ): Repair =>
  async ({ extent: { offset, size, digest } }) => {
    if (digest === undefined) return undefined;
    for (const { access, places } of isos) {
      const place = places.get(digest);
      if (place?.size !== size) continue;
      const read: RunReader = async (piece, at) => {
        await access.read(place.offset + at, piece.length, piece);
        return true;
      };
      const copied = await unlessFailed(warn, () =>
        copyVerified(target, { offset, size, digest }, { read, signal }),
      );
      if (copied) return { source: access.path, ...copied };
    }
    return undefined;
  };
