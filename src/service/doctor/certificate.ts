import { type KeyObject, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { readPem } from '../../keys/index.ts';
import { advised, findingsOf, refused, type DoctorFinding } from './finding.ts';

/* Owns the rules for the certificate of the service. */

export type DoctorCertificate = {
  /** PEM: the certificate, and its chain. */
  readonly cert: string;
  readonly publicUrl?: string | undefined;
  /** Milliseconds. */
  readonly now: number;
};

const FILE = '--tls-cert';

/** Checks a certificate that was read before. */
export function checkCertificate(given: DoctorCertificate): readonly DoctorFinding[] {
  const chain = readPem(given.cert)
    .blocks.filter(({ label }) => label === 'CERTIFICATE')
    .map(({ bytes }) => new X509Certificate(bytes));
  const [own] = chain;
  if (!own) return [];
  return [
    ...chain.flatMap(checkStrength),
    ...checkTimes(own, given.now),
    ...checkName(own, given.publicUrl),
    ...checkIssuers(chain),
  ];
}

const RSA_BITS = 2048;
const CURVES: readonly string[] = ['prime256v1', 'secp384r1', 'secp521r1'];

/** SHA-1 and MD5: identifiers of RFC 8017 A.2.4 and RFC 5758 3.2 in DER. A root's signature is not used. */
const WEAK_SIGNATURES = ['06092a864886f70d010105', '06092a864886f70d010104', '06072a8648ce3d0401'];

function checkStrength(certificate: X509Certificate): readonly DoctorFinding[] {
  const weak = describeWeakKey(certificate.publicKey) ?? describeWeakSignature(certificate);
  if (weak === undefined) return [];
  return [
    refused({
      code: 'doctor.certificate-weak',
      file: FILE,
      problem: `the certificate of ${nameOf(certificate)} has ${weak}`,
      hint: 'have one issued with P-256 or RSA of 3072 bits, and SHA-256',
    }),
  ];
}

function describeWeakKey({
  asymmetricKeyType: type,
  asymmetricKeyDetails: details,
}: KeyObject): string | undefined {
  const { modulusLength = 0, namedCurve = '' } = details ?? {};
  if (type === 'rsa' && modulusLength < RSA_BITS) return `an RSA key of ${modulusLength} bits`;
  const isOther = type === 'ec' && !CURVES.includes(namedCurve);
  return isOther ? `a key on the curve ${namedCurve}` : undefined;
}

function describeWeakSignature(certificate: X509Certificate): string | undefined {
  const der = certificate.raw.toString('hex');
  const isWeak = WEAK_SIGNATURES.some((identifier) => der.includes(identifier));
  return isWeak && !isSelfSigned(certificate) ? 'a signature with SHA-1 or MD5' : undefined;
}

const nameOf = ({ subject }: X509Certificate): string => subject.replaceAll('\n', ', ');

const isSelfSigned = (certificate: X509Certificate): boolean =>
  certificate.checkIssued(certificate) && certificate.verify(certificate.publicKey);

const MONTH = 30 * 24 * 3_600_000;

function checkTimes(certificate: X509Certificate, now: number): readonly DoctorFinding[] {
  const [from, to] = [certificate.validFrom, certificate.validTo].map((text) => Date.parse(text));
  const left = (to ?? 0) - now;
  const about = {
    code: 'doctor.certificate-expires',
    file: FILE,
    hint: 'have it renewed; the service takes a new pair of files without a restart',
  };
  return findingsOf(
    (from ?? 0) > now &&
      refused({ ...about, problem: `it is not valid before ${certificate.validFrom}` }),
    left <= 0 && refused({ ...about, problem: `it expired at ${certificate.validTo}` }),
    left > 0 &&
      left < MONTH &&
      advised({ ...about, problem: `it expires within 30 days, at ${certificate.validTo}` }),
  );
}

function checkName(
  certificate: X509Certificate,
  publicUrl: string | undefined,
): readonly DoctorFinding[] {
  if (publicUrl?.startsWith('https://') !== true) return [];
  const name = new URL(publicUrl).hostname.replace(/^\[|\]$/g, '');
  const found = isIP(name) === 0 ? certificate.checkHost(name) : certificate.checkIP(name);
  if (found !== undefined) return [];
  return [
    refused({
      code: 'doctor.certificate-name',
      file: FILE,
      problem: `the certificate is not for ${name}, the host of --public-url`,
      hint: 'have one issued with that name among its subject alternative names',
    }),
  ];
}

function checkIssuers(chain: readonly X509Certificate[]): readonly DoctorFinding[] {
  const [own] = chain;
  const gap = chain.findIndex((each, at) => {
    const issuer = chain[at + 1];
    return issuer !== undefined && !(each.checkIssued(issuer) && each.verify(issuer.publicKey));
  });
  return findingsOf(
    own &&
      isSelfSigned(own) &&
      advised({
        code: 'doctor.certificate-self-signed',
        file: FILE,
        problem: 'the certificate is signed by its own key, and so revoked by no one',
        hint: 'have one issued by the authority that clients trust',
      }),
    gap >= 0 &&
      refused({
        code: 'doctor.certificate-chain',
        file: FILE,
        problem: `certificate ${gap + 1} of the file is not issued by the one behind it`,
        hint: 'put the certificate first, then each issuer behind what it issued',
      }),
  );
}
