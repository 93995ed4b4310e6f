import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { UsageError } from '../errors.ts';

/** PEM texts of a certificate followed by its chain, and of its private key. */
export type KeyPair = { readonly cert: string; readonly key: string };

/**
 * Refuses a pair with which no TLS server can be started, before there is a server.
 *
 * @throws UsageError `registry.tls-certificate`, `registry.tls-key`, `registry.tls-mismatch`; none
 * of them shows a byte of the key
 */
export function checkKeyPair({ cert, key }: KeyPair): KeyPair {
  const certificate = readCertificate(cert);
  if (!certificate.checkPrivateKey(readKey(key))) {
    throw new UsageError(
      'registry.tls-mismatch',
      'the private key does not belong to the certificate',
      {
        expected: `the key of ${certificate.subject.replaceAll('\n', ', ')}`,
        found: 'another key',
        hint: 'put the certificate of the server before the certificates of its issuers',
      },
    );
  }
  try {
    createSecureContext({ cert, key });
  } catch (cause) {
    throw new UsageError(
      'registry.tls-certificate',
      'the certificate or one in its chain cannot be used',
      {
        cause,
      },
    );
  }
  return { cert, key };
}

function readCertificate(cert: string): X509Certificate {
  try {
    return new X509Certificate(cert);
  } catch {
    throw new UsageError('registry.tls-certificate', 'the certificate file holds no certificate', {
      expected: '-----BEGIN CERTIFICATE-----',
      found: describePem(cert),
      hint: 'convert it to PEM',
    });
  }
}

function readKey(key: string): KeyObject {
  try {
    return createPrivateKey(key);
  } catch {
    // RFC 5958 in its label (RFC 7468 11), or the older RFC 1421 4.6.1.1 in a header.
    const isEncrypted = /^-----BEGIN ENCRYPTED |^Proc-Type: 4,ENCRYPTED/m.test(key);
    throw new UsageError(
      'registry.tls-key',
      isEncrypted ? 'the private key is encrypted' : 'the key file holds no private key',
      {
        expected: '-----BEGIN PRIVATE KEY-----',
        found: describePem(key),
        hint: isEncrypted ? 'decrypt it with openssl pkey' : 'convert it to PEM',
      },
    );
  }
}

/** The first label (RFC 7468 3): it describes the kind of a file and reveals no part of its content. */
const describePem = (text: string): string =>
  /^-----BEGIN [A-Z0-9 ]{1,40}-----$/m.exec(text)?.[0] ?? 'no PEM';
