import type { Document } from 'yaml';
import { isDigest, type Digest } from '../../base/digest.ts';

export type StoredSignature = {
  readonly digest: Digest;
  /** As written: base64 where it is well-formed. */
  readonly signature: string;
};

/** Bytes of a signature; what consumers of signature stores read, too. */
export const MAX_SIGNATURE_SIZE = 50 * 1024;

const LABEL = 'release.openshift.io/verification-signatures';

/** Whether a document is a ConfigMap of release signatures, as oc and oc-mirror write it. */
export const isOfSignatures = (document: Document): boolean =>
  document.get('kind') === 'ConfigMap' && document.hasIn(['metadata', 'labels', LABEL]);

/** The ConfigMaps of a document: itself, or the items of a List, as `oc get -o yaml` writes it. */
export function listConfigMaps(document: Document): readonly object[] {
  const object = document.toJSON() as { readonly kind?: unknown; readonly items?: unknown };
  const items: readonly unknown[] = Array.isArray(object.items) ? object.items : [];
  const isConfigMap = (value: unknown): value is object =>
    typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'ConfigMap';
  return [object, ...items].filter(isConfigMap);
}

/** Keys are `sha256-<hex>-<n>`; others are passed over. */
export function listStoredSignatures(configMap: object): StoredSignature[] {
  const { binaryData } = configMap as { binaryData?: unknown };
  const entries = Object.entries(binaryData ?? {});
  return entries.flatMap(([key, signature]: [string, unknown]) => {
    const digest = key.replace(/^sha256-([0-9a-f]+)-\d+$/, 'sha256:$1');
    return isDigest(digest) && typeof signature === 'string' ? [{ digest, signature }] : [];
  });
}

/** Whether it is base64 of a size that a signature may have. */
export const isWellFormed = ({ signature }: StoredSignature): boolean =>
  signature.length <= (MAX_SIGNATURE_SIZE * 4) / 3 &&
  /^[A-Za-z0-9+/]+={0,2}$/.test(signature.replaceAll(/\s/g, ''));
