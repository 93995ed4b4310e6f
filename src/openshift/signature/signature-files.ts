import { statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { hexOf, type Digest } from '../../base/digest.ts';
import { ConfigError } from '../../base/errors.ts';
import { readInputFile, readListed, unlessAbsent } from '../../base/disk/files.ts';
import { splitDocuments } from '../node/manifests/extra-manifests.ts';
import {
  listConfigMaps,
  listStoredSignatures,
  MAX_SIGNATURE_SIZE,
} from './signature-config-maps.ts';

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
