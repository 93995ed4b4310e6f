import { createPrivateKey, createPublicKey, X509Certificate, type KeyObject } from 'node:crypto';
import { ConfigError } from '../../../base/errors.ts';
import { mismatch } from './retained-files.ts';
import { INGRESS_PREFIX, SIGNERS, type SignerName } from '../certificates/signers.ts';

/** As many as new keys have. */
const MIN_BITS = 2048;

/**
 * A private key that an earlier producer left, PKCS#1 PEM, whichever PEM it came as.
 *
 * @param shownAs the file, for errors, which never quote what is in it
 * @throws ConfigError `retained.not-pem`, `retained.not-rsa`
 */
export function parseRetainedKey(text: string, shownAs: string): string {
  const key = decodeKey(text, shownAs);
  const { modulusLength: bits = 0 } = key.asymmetricKeyDetails ?? {};
  const kind = key.asymmetricKeyType;
  if (kind !== 'rsa' || bits < MIN_BITS) {
    const found = kind === 'rsa' ? `RSA key of ${bits} bits` : `${kind ?? 'unknown'} key`;
    throw new ConfigError('retained.not-rsa', `${shownAs} is not an RSA key of ${MIN_BITS} bits`, {
      expected: `RSA key of ${MIN_BITS} bits or more`,
      found,
    });
  }
  return String(key.export({ type: 'pkcs1', format: 'pem' }));
}

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
 * A certificate that an earlier producer left.
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

/** Exactly one PEM block, and that of the right kind: of several, the reader would take the first. */
function refuseOther(text: string, kind: string, shownAs: string): void {
  const labels = Array.from(text.matchAll(/^-----BEGIN ([A-Z0-9 ]+)-----/gm), ([, label]) => label);
  if (labels.length === 1 && labels[0]?.endsWith(kind)) return;
  throw new ConfigError('retained.not-pem', `${shownAs} is not one PEM block of a ${kind}`, {
    expected: kind,
    found: labels.join(', ') || 'no PEM block',
  });
}

/** Whether two private keys, PEM, are the same, or a private key is that of a certificate's owner. */
export function isSameKey(privateKey: string, other: string | X509Certificate): boolean {
  const found = typeof other === 'string' ? createPublicKey(other) : other.publicKey;
  return createPublicKey(privateKey).equals(found);
}

/**
 * The common name of a signer, which is a CA of the right subject: the node looks its signers up by
 * their names, and would not replace any other by ours.
 *
 * @throws ConfigError `retained.mismatch`
 */
export function readSignerName(
  certificate: X509Certificate,
  name: SignerName,
  shownAs: string,
): string {
  if (!certificate.ca) throw mismatch(`${shownAs} is not a CA, and should sign certificates`);
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

const formatSubject = (lines: string): string => lines.split('\n').join(', ');
