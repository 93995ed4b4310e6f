import { statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { hexOf, type Digest } from '../../base/digest.ts';
import { readInputFile, readListed, unlessAbsent } from '../../base/files.ts';
import { splitDocuments } from '../node/extra-manifests.ts';
import {
  isOfSignatures,
  isWellFormed,
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
 * @throws ConfigError `signature.unreadable`, `signature.too-large`, `manifest.malformed`
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

/** JSON is YAML. */
function readMaps(path: string, digest: Digest): readonly Buffer[] {
  const text = readListed(path, RULES, () => readInputFile(path, RULES)).toString('utf8');
  return splitDocuments({ name: basename(path), text })
    .filter(({ document }) => isOfSignatures(document))
    .flatMap(({ document }) => listStoredSignatures(document))
    .filter((one) => one.digest === digest && isWellFormed(one))
    .map(({ signature }) => Buffer.from(signature, 'base64'));
}
