import { toPrintable } from '../../base/text/words.ts';
import { INDEX_PATH, type MediaIndex } from '../media-index.ts';
import type { IsoImage } from '../../iso/index.ts';

/** The name by which people know an ISO of ours. */
export type IsoName = {
  readonly product: string;
  readonly version: string;
  readonly architecture: string;
  /** Day of its newest files, `YYYY-MM-DD` in UTC: that of SOURCE_DATE_EPOCH or of its release. */
  readonly day?: string;
};

/** Names an ISO by its index, whose own time is that of all files that the build added. */
export async function nameIso(
  { product, release }: Pick<MediaIndex, 'product' | 'release'>,
  { find }: Pick<IsoImage, 'find'>,
): Promise<IsoName> {
  const { version, architecture } = release;
  const day = (await find(INDEX_PATH))?.modifiedAt?.toISOString().slice(0, 10);
  return { product, version, architecture, ...(day !== undefined && { day }) };
}

/** Formats `live-iso 4.21.3 x86_64 of 2026-11-20`. */
export const formatIsoName = ({ product, version, architecture, day }: IsoName): string =>
  toPrintable(`${product} ${version} ${architecture}${day === undefined ? '' : ` of ${day}`}`);
