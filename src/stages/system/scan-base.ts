import type { FileInput } from '../../base/disk/file-digests.ts';
import { IntegrityError } from '../../base/errors.ts';
import type { Stage } from '../../engine/stage.ts';
import { encodeBaseScan, scanBaseIso, type BaseScan } from '../../iso/lay-out/scan.ts';
import { readCoreosLive } from '../../iso/coreos/live.ts';
import { openIso } from '../../iso/read/open.ts';
import type { FileDigests } from '../../base/disk/file-digests.ts';

export type ScanBaseTools = { readonly digests: FileDigests };

/**
 * Reads the base ISO once and refuses what is not a live ISO of CoreOS, before anything large is fetched.
 *
 * @throws IntegrityError `base-iso.not-coreos`, `base-iso.changed`, `iso.truncated` and the like
 */
export const scanBase: Stage<{ readonly base: FileInput }, BaseScan, ScanBaseTools> = {
  name: 'scan base ISO',
  reuse: { kind: 'same-program', isUsable: () => true },
  async run({ base }, { digests }) {
    const iso = await openIso(base.path);
    try {
      await readCoreosLive(iso);
    } finally {
      await iso.close();
    }
    const scan = encodeBaseScan(await scanBaseIso(base.path));
    if (scan.digest === base.digest) return scan;
    await digests.forget(base.path);
    throw new IntegrityError('base-iso.changed', `"${base.path}" changed while it was read`, {
      expected: base.digest,
      found: scan.digest,
      hint: 'run the same command again when nothing writes to the file',
    });
  },
};
