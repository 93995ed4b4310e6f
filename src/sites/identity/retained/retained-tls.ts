import { join } from 'node:path';
import { incomplete, mismatch, readRetainedText } from './retained-files.ts';
import { proveRetainedPassword } from './retained-password.ts';
import {
  isSameKey,
  parseRetainedCertificate,
  parseRetainedKey,
  readSignerName,
} from './retained-pem.ts';
import { SIGNER_NAMES, SIGNERS, type SignerName } from '../certificates/signers.ts';
import type { KeyPair, SiteIdentity } from '../site-identity.ts';

/** File of the password's hash, below the directory. */
export const HASH_FILE = 'tls/kubeadmin-password.hash';
const PASSWORD_FILE = 'tls/kubeadmin-password';

type Signer = KeyPair & { readonly commonName: string };
export type RetainedSigners = Partial<Record<SignerName, Signer>>;

/** Signers in `tls/`: each with key and certificate, or not at all. */
export async function readSigners(dir: string): Promise<RetainedSigners> {
  const signers: RetainedSigners = {};
  for (const name of SIGNER_NAMES) {
    const signer = await readSigner(dir, name);
    if (signer) signers[name] = signer;
  }
  return signers;
}

async function readSigner(dir: string, name: SignerName): Promise<Signer | undefined> {
  const path = `tls/${SIGNERS[name].file}`;
  const [keyText, certificateText] = [
    await readRetainedText(dir, `${path}.key`),
    await readRetainedText(dir, `${path}.crt`),
  ];
  if (keyText === undefined && certificateText === undefined) return undefined;
  if (keyText === undefined || certificateText === undefined) {
    const [found, missing] = keyText === undefined ? ['crt', 'key'] : ['key', 'crt'];
    throw incomplete(`${join(dir, path)}.${found} is there, but ${path}.${missing} is not`);
  }
  const privateKey = parseRetainedKey(keyText, join(dir, `${path}.key`));
  const shownAs = join(dir, `${path}.crt`);
  const certificate = parseRetainedCertificate(certificateText, shownAs);
  if (!isSameKey(privateKey, certificate)) {
    throw mismatch(`${shownAs} is not the certificate of ${path}.key`);
  }
  const commonName = readSignerName(certificate, name, shownAs);
  return { privateKey, certificate: certificate.toString(), commonName };
}

/** Hash, and text if it is known, in `tls/`. */
export async function readTlsPassword(dir: string): Promise<SiteIdentity['password'] | undefined> {
  const bcrypt = await readRetainedText(dir, HASH_FILE);
  const text = await readRetainedText(dir, PASSWORD_FILE);
  if (bcrypt === undefined && text === undefined) return undefined;
  if (bcrypt === undefined) {
    throw incomplete(`${join(dir, PASSWORD_FILE)} is there, but ${HASH_FILE} is not`);
  }
  const files = { hash: join(dir, HASH_FILE), text: join(dir, PASSWORD_FILE) };
  await proveRetainedPassword({ bcrypt, text }, files);
  return { text: text ?? '', bcrypt };
}

export function refuseMissing(
  dir: string,
  signers: RetainedSigners,
  names: readonly SignerName[],
): void {
  const missing = names.filter((name) => !signers[name]);
  if (missing.length === 0) return;
  const files = missing.flatMap((name) =>
    ['key', 'crt'].map((kind) => `tls/${SIGNERS[name].file}.${kind}`),
  );
  throw incomplete(`${dir} has no ${files.join(', ')}`);
}
