import { compare, getRounds } from 'bcryptjs';
import { createPrivateKey, createPublicKey, X509Certificate, type KeyObject } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { readFileIfPresent } from '../../../base/disk/files.ts';
import { ConfigError, isErrno } from '../../../base/errors.ts';
import { formatSize } from '../../../base/text/words.ts';
import { readPem, type PemBlock } from '../../../keys/index.ts';
import {
  INGRESS_PREFIX,
  SIGNERS,
  type SignerName,
  SIGNER_NAMES,
  type SiteKeyPair,
  type SiteIdentity,
} from '../identity.ts';

/* Owns the reading and the proof of single retained files: texts, keys, certificates and passwords. */

type Signer = SiteKeyPair & { readonly commonName: string };
export type RetainedSigners = Partial<Record<SignerName, Signer>>;

/** A manifest has the pull secret and the network of a site; all other files are smaller. */
const MAX_SIZE = 16 << 20;

/** Reads a text below a directory; undefined if the file does not exist. */
export async function readRetainedText(dir: string, file: string): Promise<string | undefined> {
  const path = join(dir, file);
  try {
    const size = await findSize(path);
    if (size === undefined) return undefined;
    if (size > MAX_SIZE) throw unreadable(dir, file);
    const bytes = await readFileIfPresent(path);
    return bytes && new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    if (!isErrno(cause, 'EACCES', 'EISDIR', 'ELOOP', 'ERR_ENCODING_INVALID_ENCODED_DATA'))
      throw cause;
    throw unreadable(dir, file, cause);
  }
}

const GIVE_ALL = 'give all files that the earlier producer left, or none of them';

export const incomplete = (message: string, hint = GIVE_ALL): ConfigError =>
  new ConfigError('retained.incomplete', message, { hint });

export const retainedMismatch = (message: string): ConfigError =>
  new ConfigError('retained.mismatch', message, {
    hint: 'give only files of one cluster and one run',
  });

/** The size of new keys. */
const MIN_BITS = 2048;

/** Parses a private key in any kind of PEM and returns PKCS#1 PEM; errors never quote its content. */
export function parseRetainedKey(text: string, shownAs: string): string {
  const key = decodeKey(text, shownAs);
  const { modulusLength: bits = 0 } = key.asymmetricKeyDetails ?? {};
  const kind = key.asymmetricKeyType;
  if (kind !== 'rsa' || bits < MIN_BITS) {
    const found = kind === 'rsa' ? `RSA key of ${bits} bits` : `${kind ?? 'unknown'} key`;
    throw new ConfigError(
      'retained.not-rsa',
      `${shownAs} is not an RSA key of at least ${MIN_BITS} bits`,
      {
        expected: `RSA key of ${MIN_BITS} bits or more`,
        found,
      },
    );
  }
  return String(key.export({ type: 'pkcs1', format: 'pem' }));
}

/** Parses a certificate that an earlier producer left. */
export const parseRetainedCertificate = (text: string, shownAs: string): X509Certificate =>
  decodeCertificate(requireOne(text, 'CERTIFICATE', shownAs), shownAs);

export const isCertificate = ({ label }: PemBlock): boolean => label === 'CERTIFICATE';

export function decodeCertificate({ bytes }: PemBlock, shownAs: string): X509Certificate {
  try {
    return new X509Certificate(bytes);
  } catch (cause) {
    const message = `${shownAs} is not a readable certificate`;
    throw new ConfigError('retained.not-pem', message, { cause });
  }
}

/** True if two private keys (PEM) are equal, or if the key belongs to the certificate. */
export function isSameKey(privateKey: string, other: string | X509Certificate): boolean {
  const found = typeof other === 'string' ? createPublicKey(other) : other.publicKey;
  return createPublicKey(privateKey).equals(found);
}

/**
 * Reads the common name of a signer, which must be a CA with the right subject: the node looks its
 * signers up by their names, and would not replace any other by ours.
 */
export function readSignerName(
  certificate: X509Certificate,
  name: SignerName,
  shownAs: string,
): string {
  if (!certificate.ca) throw retainedMismatch(`${shownAs} is not a CA, but must sign certificates`);
  const [, ingress] = /^CN=(ingress-operator@[0-9]+)$/.exec(certificate.subject) ?? [];
  const { organizationalUnit, commonName } = SIGNERS[name].subject(0);
  const isIngress = name === 'ingress';
  const found = isIngress ? ingress : commonName;
  const wanted = `OU=${organizationalUnit ?? ''}\nCN=${commonName}`;
  if (found !== undefined && (isIngress || certificate.subject === wanted)) return found;
  const expected = isIngress ? `CN=${INGRESS_PREFIX}<seconds>` : formatSubject(wanted);
  throw new ConfigError('retained.mismatch', `${shownAs} is the certificate of another signer`, {
    expected,
    found: formatSubject(certificate.subject),
  });
}

/** An empty hash makes the node delete the password's secret. */
const BCRYPT = /^(\$2[aby]\$\d\d\$[./A-Za-z0-9]{53})?$/;

/** The files of a password, for errors, which never quote their content. */
type PasswordFiles = { readonly hash: string; readonly text: string };

/**
 * Refuses a hash that the node could not use, and a password that does not match its hash: it would open
 * nothing. A hash that takes long to prove is accepted unproven; an empty text counts as absent.
 */
export async function proveRetainedPassword(
  { bcrypt, text = '' }: { readonly bcrypt: string; readonly text?: string | undefined },
  files: PasswordFiles,
): Promise<void> {
  if (!BCRYPT.test(bcrypt) || bcrypt.endsWith('\n')) {
    throw new ConfigError('retained.password', `${files.hash} is not a bcrypt hash`, {
      hint: 'write "$2a$10$" and 53 characters, without a newline at the end',
    });
  }
  if (text !== text.trim()) {
    const message = `${files.text} has white space around the password`;
    throw new ConfigError('retained.password', message, {
      hint: 'remove it, including the newline',
    });
  }
  if (text === '' || (await isOfHash(text, bcrypt))) return;
  throw new ConfigError('retained.mismatch', `${files.text} is not the password of ${files.hash}`, {
    hint: 'give both from one run, or only the hash',
  });
}

export const HASH_FILE = 'tls/kubeadmin-password.hash';

/** Reads the signers in `tls/`: each has both key and certificate, or neither. */
export async function readSigners(dir: string): Promise<RetainedSigners> {
  const signers: RetainedSigners = {};
  for (const name of SIGNER_NAMES) {
    const signer = await readSigner(dir, name);
    if (signer) signers[name] = signer;
  }
  return signers;
}

const PASSWORD_FILE = 'tls/kubeadmin-password';

export async function readTlsPassword(dir: string): Promise<SiteIdentity['password'] | undefined> {
  const bcrypt = await readRetainedText(dir, HASH_FILE);
  const text = await readRetainedText(dir, PASSWORD_FILE);
  if (bcrypt === undefined && text === undefined) return undefined;
  if (bcrypt === undefined) {
    throw incomplete(`${join(dir, PASSWORD_FILE)} exists, but ${HASH_FILE} does not`);
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

/** Anything except a file counts as too large: reading a pipe may never end. */
async function findSize(path: string): Promise<number | undefined> {
  try {
    const found = await stat(path);
    return found.isFile() ? found.size : Infinity;
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  }
}

const unreadable = (dir: string, file: string, cause?: unknown): ConfigError =>
  new ConfigError('retained.unreadable', `${dir}: failed to load ${file} file`, {
    ...(cause === undefined
      ? { expected: `a file of at most ${formatSize(MAX_SIZE)}` }
      : { cause }),
  });

function decodeKey(text: string, shownAs: string): KeyObject {
  requireOne(text, 'PRIVATE KEY', shownAs);
  try {
    return createPrivateKey(text);
  } catch (cause) {
    throw new ConfigError('retained.not-pem', `${shownAs} is not a readable private key`, {
      cause,
      hint: 'give the key without a passphrase, as openshift-install wrote it',
    });
  }
}

/** Requires exactly one PEM block, of the right kind: the reader would take the first of several. */
function requireOne(text: string, kind: string, shownAs: string): PemBlock {
  const { blocks, isBroken = false } = readPem(text);
  const [block] = blocks;
  if (block?.label.endsWith(kind) && blocks.length === 1 && !isBroken) return block;
  throw new ConfigError('retained.not-pem', `${shownAs} must be one PEM block of a ${kind}`, {
    expected: kind,
    found: blocks.map(({ label }) => label).join(', ') || 'no PEM block',
  });
}

const formatSubject = (lines: string): string => lines.split('\n').join(', ');

/** Each further step takes twice the time; openshift-install writes 10, which takes a tenth of a second. */
const MAX_PROVED_COST = 12;

const isOfHash = async (text: string, bcrypt: string): Promise<boolean> =>
  bcrypt !== '' && (getRounds(bcrypt) > MAX_PROVED_COST || (await compare(text, bcrypt)));

async function readSigner(dir: string, name: SignerName): Promise<Signer | undefined> {
  const path = `tls/${SIGNERS[name].file}`;
  const [keyText, certificateText] = [
    await readRetainedText(dir, `${path}.key`),
    await readRetainedText(dir, `${path}.crt`),
  ];
  if (keyText === undefined && certificateText === undefined) return undefined;
  if (keyText === undefined || certificateText === undefined) {
    const [found, missing] = keyText === undefined ? ['crt', 'key'] : ['key', 'crt'];
    throw incomplete(`${join(dir, path)}.${found} exists, but ${path}.${missing} does not`);
  }
  const privateKey = parseRetainedKey(keyText, join(dir, `${path}.key`));
  const shownAs = join(dir, `${path}.crt`);
  const certificate = parseRetainedCertificate(certificateText, shownAs);
  if (!isSameKey(privateKey, certificate)) {
    throw retainedMismatch(`${shownAs} is not the certificate of ${path}.key`);
  }
  const commonName = readSignerName(certificate, name, shownAs);
  return { privateKey, certificate: certificate.toString(), commonName };
}
