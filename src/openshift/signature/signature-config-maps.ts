import type { Document } from 'yaml';
import { statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { isDigest, type Digest, hexOf } from '../../base/digest.ts';
import { ConfigError } from '../../base/errors.ts';
import { readInputFile, readListed, unlessAbsent } from '../../base/disk/files.ts';
import { objectOrEmpty } from '../../base/lists.ts';
import { splitDocuments } from '../node/manifests/extra-manifests.ts';

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
function listConfigMaps(document: Document): readonly object[] {
  const object = document.toJSON() as { readonly kind?: unknown; readonly items?: unknown };
  const items: readonly unknown[] = Array.isArray(object.items) ? object.items : [];
  const isConfigMap = (value: unknown): value is object =>
    typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'ConfigMap';
  return [object, ...items].filter(isConfigMap);
}

/** Keys are `sha256-<hex>-<n>`; others are passed over. */
export function listStoredSignatures(configMap: object): StoredSignature[] {
  const { binaryData } = configMap as { binaryData?: unknown };
  return Object.entries(objectOrEmpty(binaryData)).flatMap(([key, signature]) => {
    const digest = key.replace(/^sha256-([0-9a-f]+)-\d+$/, 'sha256:$1');
    return isDigest(digest) && typeof signature === 'string' ? [{ digest, signature }] : [];
  });
}

/** Whether it is base64 of a size that a signature may have. */
export const isWellFormed = ({ signature }: StoredSignature): boolean =>
  signature.length <= (MAX_SIGNATURE_SIZE * 4) / 3 &&
  /^[A-Za-z0-9+/]+={0,2}$/.test(signature.replaceAll(/\s/g, ''));

/** What consumers of signature stores read, too. */
export const MAX_SIGNATURES = 9;

const RULES = { domain: 'signature' };

/**
 * The signatures of a digest below a path that a user named: a folder with files
 * `sha256=HEX/signature-N`, N from 1, as a signature store has them, or a file with ConfigMaps.
 *
 * @throws ConfigError `signature.unreadable`, `signature.too-large`, `signature.no-config-map`,
 * `manifest.malformed`
 */
export function readSignatureFiles(path: string, digest: Digest): readonly Buffer[] {
  const isFolder = readListed(path, RULES, () => statSync(path)).isDirectory();
  return isFolder ? readFolder(join(path, `sha256=${hexOf(digest)}`)) : readMaps(path, digest);
}

function readFolder(folder: string): readonly Buffer[] {
  const found: Buffer[] = [];
  for (let number = 1; number <= MAX_SIGNATURES; number++) {
    const path = join(folder, `signature-${number}`);
    const bytes = readListed(path, RULES, () =>
      unlessAbsent(() => readInputFile(path, { ...RULES, limit: MAX_SIGNATURE_SIZE })),
    );
    if (bytes === undefined) return found;
    found.push(bytes);
  }
  return found;
}

/** JSON is YAML. The user names the file: labels, by which clusters find such ConfigMaps, are not needed. */
function readMaps(path: string, digest: Digest): readonly Buffer[] {
  const text = readListed(path, RULES, () => readInputFile(path, RULES)).toString('utf8');
  const maps = splitDocuments({ name: basename(path), text }).flatMap(({ document }) =>
    listConfigMaps(document),
  );
  if (maps.length === 0) throw noConfigMap(path);
  return maps
    .flatMap(listStoredSignatures)
    .filter((one) => one.digest === digest)
    .slice(0, MAX_SIGNATURES)
    .map(({ signature }) => Buffer.from(signature, 'base64'));
}

const noConfigMap = (path: string): ConfigError =>
  new ConfigError('signature.no-config-map', `file "${path}" has no ConfigMap`, {
    expected: 'ConfigMaps with binaryData sha256-HEX-N, or a List of them',
    found: 'none',
    hint: 'name the file that "oc adm release mirror" or oc-mirror wrote, or a folder sha256=HEX/signature-N',
  });
