import { hexOf } from '../../base/digest.ts';
import { createFilePlan, type RegistryFile } from './file-plan.ts';
import { blobsOf } from '../foreign-layer.ts';
import type { StoredManifest } from '../manifest.ts';

/** containers/image, directory transport: what its `version` file says, newline included. */
const VERSION = 'Directory Transport Version: 1.1\n';

/**
 * Every file of an image in the form that `skopeo` and `podman` read as `dir:`: `manifest.json`,
 * further manifests as `<hex>.manifest.json`, and blobs under their bare hex digest. The image's own
 * manifest comes first, then the children that are carried.
 *
 * @throws IntegrityError `layout.size-conflict`, `layout.digest-mismatch`
 */
export function planDirLayout(manifests: readonly StoredManifest[]): RegistryFile[] {
  const plan = createFilePlan();
  plan.addBytes('/version', Buffer.from(VERSION));
  for (const [index, stored] of manifests.entries()) {
    const name = index === 0 ? '' : `${hexOf(stored.descriptor.digest)}.`;
    plan.addManifest(`/${name}manifest.json`, stored);
    for (const blob of blobsOf(stored.manifest)) plan.addBlob(`/${hexOf(blob.digest)}`, blob);
  }
  return plan.files();
}
