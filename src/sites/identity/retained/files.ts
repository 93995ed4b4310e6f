import { compare, getRounds } from 'bcryptjs';
import { createPrivateKey, createPublicKey, X509Certificate, type KeyObject } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { readFileIfPresent } from '../../../base/disk/files.ts';
import { ConfigError, isErrno } from '../../../base/errors.ts';
import { formatSize } from '../../../base/text/words.ts';
import {
  INGRESS_PREFIX,
  SIGNERS,
  type SignerName,
  SIGNER_NAMES,
  type SiteKeyPair,
  type SiteIdentity,
} from '../identity.ts';

/*
 * Owns the reading and the proof of single retained files: texts, keys, certificates and
 * passwords.
 */

type Signer = SiteKeyPair & { readonly commonName: string };
export type RetainedSigners = Partial<Record<SignerName, Signer>>;

/** A manifest has the pull secret and the network of a site; all other files are smaller. */
const MAX_SIZE = 16 << 20;

/**
 * Reads a text below a directory; undefined if the file does not exist.
 *
 * @throws ConfigError `retained.unreadable`
 */
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

/** The error for a missing part of a set that belongs together. */
export const incomplete = (message: string, hint = GIVE_ALL): ConfigError =>
  new ConfigError('retained.incomplete', message, { hint });

/** The error for two parts of different runs. */
export const retainedMismatch = (message: string): ConfigError =>
  new ConfigError('retained.mismatch', message, {
    hint: 'give only files of one cluster and one run',
  });

/** The size of new keys. */
const MIN_BITS = 2048;

/**
 * Parses a private key that an earlier producer left and returns PKCS#1 PEM, regardless of the
 * kind of PEM it had.
 *
 * @param shownAs the file, for errors, which never quote its content
 * @throws ConfigError `retained.not-pem`, `retained.not-rsa`
 */
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

/**
 * Parses a certificate that an earlier producer left.
 *
 * @throws ConfigError `retained.not-pem`
 */
export function parseRetainedCertificate(text: string, shownAs: string): X509Certificate {
  refuseOther(text, 'CERTIFICATE', shownAs);
  try {
    return new X509Certificate(text);
  } catch (cause) {
    const message = `${shownAs} is not a readable certificate`;
    throw new ConfigError('retained.not-pem', message, { cause });
  }
}

/**
 * True if two private keys, PEM, are equal, or if a private key belongs to the owner of a
 * certificate.
 */
export function isSameKey(privateKey: string, other: string | X509Certificate): boolean {
  const found = typeof other === 'string' ? createPublicKey(other) : other.publicKey;
  return createPublicKey(privateKey).equals(found);
}

/**
 * Reads the common name of a signer, which must be a CA with the right subject: the node looks its
 * signers up by their names, and would not replace any other by ours.
 *
 * @throws ConfigError `retained.mismatch`
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
 * Refuses a hash that the node could not use, and a password that does not match the hash: the
 * user would get a password that opens nothing. A hash that takes long to prove is accepted
 * unproven.
 *
 * @param password as it is in the files; the text is undefined if there is no such file, and an
 * empty text counts as absent
 * @throws ConfigError `retained.password`, `retained.mismatch`
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

/** File of the password's hash, below the directory. */
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

/** Reads the hash in `tls/`, and the text if it is known. */
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
  refuseOther(text, 'PRIVATE KEY', shownAs);
  try {
    return createPrivateKey(text);
  } catch (cause) {
    throw new ConfigError('retained.not-pem', `${shownAs} is not a readable private key`, {
      cause,
      hint: 'give the key without a passphrase, as openshift-install wrote it',
    });
  }
}

/**
 * Requires exactly one PEM block, of the right kind: the reader would take the first of several.
 */
function refuseOther(text: string, kind: string, shownAs: string): void {
  const labels = Array.from(text.matchAll(/^-----BEGIN ([A-Z0-9 ]+)-----/gm), ([, label]) => label);
  if (labels.length === 1 && labels[0]?.endsWith(kind)) return;
  throw new ConfigError('retained.not-pem', `${shownAs} must be one PEM block of a ${kind}`, {
    expected: kind,
    found: labels.join(', ') || 'no PEM block',
  });
}

const formatSubject = (lines: string): string => lines.split('\n').join(', ');

/**
 * Each further step takes twice the time; openshift-install writes 10, which takes a tenth of a
 * second.
 */
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
