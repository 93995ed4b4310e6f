import { createHash, createPublicKey, sign, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import {
  encodeBits,
  encodeExplicit,
  encodeImplicit,
  encodeInteger,
  encodeNull,
  encodeOctets,
  encodeOid,
  encodeSequence,
  encodeSet,
  encodeText,
  encodeTime,
  encodeTrue,
} from './der.ts';

/** A subject; its organization or unit stands before its common name. */
export type Subject = {
  readonly commonName: string;
  readonly organization?: string;
  readonly organizationalUnit?: string;
};

/** What every certificate says of itself. */
export type CertificateTerms = {
  readonly subject: Subject;
  readonly publicKey: KeyObject;
  /** Of 8 random bytes, which decide the serial number. */
  readonly serial: Uint8Array;
  /** Seconds since 1970. */
  readonly notBefore: number;
  /** Seconds since 1970; the certificate is valid in this second too. */
  readonly notAfter: number;
};

/** Who signs: the subject and key of a signer. */
export type Issuer = { readonly subject: Subject; readonly privateKey: KeyObject };

const OID = {
  organization: encodeOid('2.5.4.10'),
  organizationalUnit: encodeOid('2.5.4.11'),
  commonName: encodeOid('2.5.4.3'),
  rsaEncryption: encodeOid('1.2.840.113549.1.1.1'),
  sha256WithRsa: encodeOid('1.2.840.113549.1.1.11'),
  subjectKeyId: encodeOid('2.5.29.14'),
  keyUsage: encodeOid('2.5.29.15'),
  basicConstraints: encodeOid('2.5.29.19'),
  authorityKeyId: encodeOid('2.5.29.35'),
  extendedKeyUsage: encodeOid('2.5.29.37'),
  serverAuth: encodeOid('1.3.6.1.5.5.7.3.1'),
  clientAuth: encodeOid('1.3.6.1.5.5.7.3.2'),
};

/** In Node's thread pool: six signatures of a site cost five times what the rest of it costs. */
const signAside = promisify(sign);

/** RFC 5280 4.1.2.1. */
const X509_V3 = 2n;

/** Serial numbers are below 2^63 - 1, and RFC 5280 4.1.2.2 wants them above 0. */
const SERIAL_RANGE = 2n ** 63n - 2n;

/** RFC 5280 4.2.1.3: bit 0 is digitalSignature, 2 keyEncipherment, 5 keyCertSign. */
const SIGNER_USAGE = encodeBits(Uint8Array.of(0b1010_0100), 2);
const CLIENT_USAGE = encodeBits(Uint8Array.of(0b1010_0000), 5);

const RSA = encodeSequence(OID.rsaEncryption, encodeNull());
const RSA_SHA256 = encodeSequence(OID.sha256WithRsa, encodeNull());

/**
 * A CA that signs itself, X.509 PEM: key usages digitalSignature, keyEncipherment and keyCertSign,
 * no path length, subject key id by SHA-1 of the PKCS#1 key. The same terms give the same bytes.
 */
export function issueSigner(terms: CertificateTerms, privateKey: KeyObject): Promise<string> {
  const { subject, publicKey } = terms;
  return signCertificate(terms, { subject, privateKey }, [
    encodeCritical(OID.keyUsage, SIGNER_USAGE),
    encodeCritical(OID.basicConstraints, encodeSequence(encodeTrue())),
    encodeExtension(OID.subjectKeyId, encodeOctets(identifyKey(publicKey))),
  ]);
}

/** A certificate of a client, X.509 PEM: no CA, for clientAuth and, as ever, serverAuth. */
export function issueClient(terms: CertificateTerms, issuer: Issuer): Promise<string> {
  const authority = encodeImplicit(0, identifyKey(createPublicKey(issuer.privateKey)));
  return signCertificate(terms, issuer, [
    encodeCritical(OID.keyUsage, CLIENT_USAGE),
    encodeExtension(OID.extendedKeyUsage, encodeSequence(OID.serverAuth, OID.clientAuth)),
    encodeCritical(OID.basicConstraints, encodeSequence()),
    encodeExtension(OID.subjectKeyId, encodeOctets(identifyKey(terms.publicKey))),
    encodeExtension(OID.authorityKeyId, encodeSequence(authority)),
  ]);
}

async function signCertificate(
  terms: CertificateTerms,
  issuer: Issuer,
  extensions: readonly Uint8Array[],
): Promise<string> {
  const body = encodeSequence(
    encodeExplicit(0, encodeInteger(X509_V3)),
    encodeInteger(chooseSerial(terms.serial)),
    RSA_SHA256,
    encodeName(issuer.subject),
    encodeSequence(encodeTime(terms.notBefore), encodeTime(terms.notAfter)),
    encodeName(terms.subject),
    encodeSequence(RSA, encodeBits(exportKey(terms.publicKey))),
    encodeExplicit(3, encodeSequence(...extensions)),
  );
  const signature = encodeBits(await signAside('sha256', body, issuer.privateKey));
  return formatPem(encodeSequence(body, RSA_SHA256, signature));
}

function chooseSerial(random: Uint8Array): bigint {
  const value = BigInt(`0x${Buffer.from(random).toString('hex')}`);
  return (value % SERIAL_RANGE) + 1n;
}

function encodeName({ organization, organizationalUnit, commonName }: Subject): Buffer {
  const names: readonly (readonly [Uint8Array, string | undefined])[] = [
    [OID.organization, organization],
    [OID.organizationalUnit, organizationalUnit],
    [OID.commonName, commonName],
  ];
  const given = names.flatMap(([type, text]) =>
    text === undefined ? [] : [encodeSet(encodeSequence(type, encodeText(text)))],
  );
  return encodeSequence(...given);
}

const encodeExtension = (type: Uint8Array, value: Uint8Array): Buffer =>
  encodeSequence(type, encodeOctets(value));

const encodeCritical = (type: Uint8Array, value: Uint8Array): Buffer =>
  encodeSequence(type, encodeTrue(), encodeOctets(value));

/** RFC 5280 4.2.1.2 (1): SHA-1 of the key's own bits, which for RSA are its PKCS#1 form. */
const identifyKey = (key: KeyObject): Buffer => createHash('sha1').update(exportKey(key)).digest();

/** PKCS#1; Node's export of the form around it takes 60 times as long. */
const exportKey = (key: KeyObject): Buffer => key.export({ type: 'pkcs1', format: 'der' });

/** RFC 7468: lines of 64 characters. */
function formatPem(der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}
