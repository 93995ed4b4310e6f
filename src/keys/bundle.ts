import { X509Certificate } from 'node:crypto';
import { MOST_ROOTS } from '../base/http/tls.ts';
import { findCertificateFault } from './certificate.ts';
import { readPem, type PemBlock } from './pem.ts';

/* Owns bundles of certificates in PEM: which are read, and what is doubtful about one. */

export type Certificate = {
  readonly subject: string;
  /** Milliseconds since 1970. */
  readonly notBefore: number;
  readonly notAfter: number;
  /** True if it is marked as an authority: basicConstraints CA:TRUE (RFC 5280, 4.2.1.9). */
  readonly isAuthority: boolean;
};

export type TrustBundle = {
  /** The fault of the bundle; its text is not repeated, since it may contain a key by mistake. */
  readonly problem?: string;
  readonly certificates: readonly Certificate[];
};

/** Sites of a fleet share their bundles, so this many are cached parsed. */
const CACHED = 64;
const cached = new Map<string, TrustBundle>();

/** Reads PEM blocks until no byte is left, each an X.509 certificate. An empty text has no problem. */
export function readTrustBundle(source: string | Uint8Array): TrustBundle {
  const text = typeof source === 'string' ? source : Buffer.from(source).toString('latin1');
  const known = cached.get(text);
  if (known) return known;
  const bundle = parseBundle(text);
  if (cached.size >= CACHED) cached.clear();
  cached.set(text, bundle);
  return bundle;
}

/** Explains why a bundle cannot be trusted, because it has a fault or nothing; undefined if it can. */
export function explainBundle(source: string | Uint8Array): string | undefined {
  const { problem, certificates } = readTrustBundle(source);
  return problem ?? (certificates.length === 0 ? 'has no certificate' : undefined);
}

/** Explains why a file is not a list of roots for connections of this program; blank lines may follow the last block. */
export const explainRoots = (bytes: Uint8Array): string | undefined =>
  explainBundle(withoutEnd(bytes));

export const warnOfRoots = (bytes: Uint8Array): readonly string[] =>
  warnOfBundle(readTrustBundle(withoutEnd(bytes)));

/** True if a list of roots has a certificate before its first problem, up to which OpenSSL reads it. */
export const hasRoots = (bytes: Uint8Array): boolean =>
  readTrustBundle(withoutEnd(bytes)).certificates.length > 0;

const withoutEnd = (bytes: Uint8Array): string =>
  `${Buffer.from(bytes).toString('latin1').trimEnd()}\n`;

function parseBundle(text: string): TrustBundle {
  if (text === '') return { certificates: [] };
  if (text.length > MOST_ROOTS) {
    const problem = `has ${text.length} bytes, but at most ${MOST_ROOTS} of certificates are read`;
    return { certificates: [], problem };
  }
  const mark = explainMark(text);
  if (mark !== undefined) return { certificates: [], problem: mark };
  const { blocks, problem } = readPem(text);
  const certificates: Certificate[] = [];
  for (const [index, block] of blocks.entries()) {
    const read = readCertificate(block);
    if (typeof read === 'string') return { certificates, problem: `block ${index + 1} ${read}` };
    certificates.push(read);
  }
  if (problem !== undefined) return { certificates, problem: `invalid block: ${problem}` };
  if (blocks.length > 0) return { certificates };
  return { certificates, problem: `invalid block: ${explainForeign(text)}` };
}

/** A byte order mark (Unicode, 23.8), in a text or in bytes as Latin-1. */
function explainMark(text: string): string | undefined {
  if (/^(?:\ufeff|\u00ef\u00bb\u00bf)/.test(text))
    return 'begins with a byte order mark (U+FEFF); remove it';
  return /^(?:\u00ff\u00fe|\u00fe\u00ff)/.test(text) ? 'is UTF-16; save it as UTF-8' : undefined;
}

function explainForeign(text: string): string {
  if (/^\x30[\x80-\x84]/.test(text) || text.startsWith('0\ufffd'))
    return 'is in DER; convert it to PEM with openssl x509 -inform der';
  if (/^\s*<(?:!doctype|html|\?xml)/i.test(text)) return 'is a web page, not a certificate';
  return 'has no block of PEM';
}

function readCertificate({ label, bytes }: PemBlock): Certificate | string {
  const foreign = explainLabel(label);
  if (foreign !== undefined)
    return `${foreign} (found -----BEGIN ${label.slice(0, LONGEST_LABEL)}-----)`;
  const fault = findCertificateFault(bytes);
  if (fault !== undefined) return `is not a certificate: ${fault}`;
  try {
    const { subject, validFrom, validTo, ca } = new X509Certificate(bytes);
    return {
      subject: subject.replaceAll('\n', ', '),
      notBefore: Date.parse(validFrom),
      notAfter: Date.parse(validTo),
      isAuthority: ca,
    };
  } catch (error) {
    // OpenSSL's errors do not have their own class.
    if (error instanceof Error) return 'is not a certificate: x509: malformed certificate';
    throw error;
  }
}

/** No type of a block in use has a longer name. */
const LONGEST_LABEL = 60;

function explainLabel(label: string): string | undefined {
  if (label === 'CERTIFICATE') return undefined;
  if (label.endsWith('PRIVATE KEY')) return 'is a private key; give certificates only';
  if (label.endsWith('CERTIFICATE REQUEST'))
    return 'is a certificate request; give the certificate that was made from it';
  if (label === 'TRUSTED CERTIFICATE')
    return "is in OpenSSL's own form (TRUSTED CERTIFICATE); convert it with openssl x509";
  return 'is neither a CERTIFICATE nor anything that is expected here';
}

const DAY = 24 * 3600 * 1000;
/** A certificate with less time left gets a warning. */
const SOON = 30 * DAY;

/**
 * The doubts about certificates that are meant to be trusted, each with the number and the subject
 * of its certificate.
 *
 * @param now milliseconds since 1970; without it, the times are not compared
 */
export const warnOfBundle = ({ certificates }: TrustBundle, now?: number): readonly string[] =>
  certificates.flatMap((certificate, index) => {
    const doubts = [
      ...(now === undefined ? [] : listTimeDoubts(certificate, now)),
      ...(certificate.isAuthority ? [] : [NO_AUTHORITY]),
    ];
    return doubts.map((doubt) => `certificate ${index + 1} (${certificate.subject}) ${doubt}`);
  });

const NO_AUTHORITY =
  'is not marked as a certificate authority (basicConstraints CA:TRUE), ' +
  'so nothing that it signed is trusted';

function listTimeDoubts({ notBefore, notAfter }: Certificate, now: number): readonly string[] {
  const at = (time: number): string => new Date(time).toISOString();
  if (notAfter < now) return [`expired at ${at(notAfter)}`];
  if (notAfter < now + SOON) return [`expires soon, at ${at(notAfter)}`];
  return notBefore > now ? [`is not valid before ${at(notBefore)}`] : [];
}
