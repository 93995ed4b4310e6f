import { hexOf, type Digest } from '../../base/digest.ts';
import { formatManifest, type Manifest } from './manifests/extra-manifests.ts';

/**
 * The signatures of a release image, at least one, where the cluster version operator looks for them:
 * any ConfigMap with this label, keys `sha256-<hex>-<n>`, n from 1.
 */
export function renderSignatureConfigMap(release: {
  readonly digest: Digest;
  readonly signatures: readonly Uint8Array[];
  /** Of the object. */
  readonly name?: string;
}): Manifest {
  const { digest, signatures, name = 'mirrored-release-signatures' } = release;
  if (signatures.length === 0) throw new TypeError('no signature, no ConfigMap');
  const entries = signatures.map((signature, index) => [
    `sha256-${hexOf(digest)}-${index + 1}`,
    Buffer.from(signature).toString('base64'),
  ]);
  return {
    name: 'signature-configmap.yaml',
    text: formatManifest({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: {
        name,
        namespace: 'openshift-config-managed',
        labels: { 'release.openshift.io/verification-signatures': '' },
      },
      binaryData: Object.fromEntries(entries) as Record<string, string>,
    }),
  };
}
