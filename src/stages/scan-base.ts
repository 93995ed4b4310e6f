import { IntegrityError } from '../base/errors.ts';
import type { Digest } from '../base/digest.ts';
import { readCoreosLive } from '../iso/coreos/coreos.ts';
import { openIso } from '../iso/open-iso.ts';
import {
  decodeBaseScan,
  encodeBaseScan,
  scanBaseIso,
  type BaseImage,
  type BaseScan,
} from '../iso/base/scan-base.ts';

/**
 * Reads the base ISO once and refuses what is no live ISO of CoreOS, before anything large is fetched.
 *
 * @throws IntegrityError `base-iso.not-coreos`, `base-iso.changed`, `iso.truncated` and the like
 */
export async function scanBase(base: {
  readonly path: string;
  readonly digest: Digest;
}): Promise<BaseScan> {
  const iso = await openIso(base.path);
  try {
    await readCoreosLive(iso);
  } finally {
    await iso.close();
  }
  const scan = encodeBaseScan(await scanBaseIso(base.path));
  if (scan.digest === base.digest) return scan;
  throw new IntegrityError('base-iso.changed', `"${base.path}" changed while it was read`, {
    expected: base.digest,
    found: scan.digest,
  });
}

/** The scanned image again, without reading all of it. */
export const openScannedBase = (path: string, scan: BaseScan): Promise<BaseImage> =>
  decodeBaseScan(path, scan);
