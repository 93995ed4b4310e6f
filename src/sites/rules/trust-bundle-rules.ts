import { X509Certificate } from 'node:crypto';

const BLOCK =
  /^-----BEGIN ([^\n-][^\n]*?)-----[ \t\r]*\n([^-]*(?:-(?!----)[^-]*)*)^-----END \1-----[ \t\r]*(?:\n|$)/m;

/** Sites of a fleet share their bundles: as many are cached parsed. */
const CACHED = 64;
const cached = new Map<string, TrustBundle>();

export type TrustBundle = {
  /** What is wrong with it; its text is not repeated, since a key may have slipped in. */
  readonly problem?: string;
  readonly certificates: readonly {
    readonly subject: string;
    /** Milliseconds since 1970. */
    readonly notBefore: number;
    readonly notAfter: number;
  }[];
};

/** PEM blocks until no byte is left, each an X.509 certificate (RFC 7468). */
export function readTrustBundle(text: string): TrustBundle {
  const known = cached.get(text);
  if (known) return known;
  const bundle = parseBundle(text);
  if (cached.size >= CACHED) cached.clear();
  cached.set(text, bundle);
  return bundle;
}

function parseBundle(text: string): TrustBundle {
  const certificates: TrustBundle['certificates'][number][] = [];
  for (let rest = text; rest !== '';) {
    const block = BLOCK.exec(rest);
    if (!block) return { certificates, problem: 'invalid block' };
    const certificate = parseCertificate(block[2] ?? '');
    if (!certificate) {
      const problem = `x509: malformed certificate (block ${certificates.length + 1})`;
      return { certificates, problem };
    }
    certificates.push(certificate);
    rest = rest.slice(block.index + block[0].length);
  }
  return { certificates };
}

function parseCertificate(base64: string): TrustBundle['certificates'][number] | undefined {
  try {
    const { subject, validFrom, validTo } = new X509Certificate(Buffer.from(base64, 'base64'));
    return {
      subject: subject.replaceAll('\n', ', '),
      notBefore: Date.parse(validFrom),
      notAfter: Date.parse(validTo),
    };
  } catch (error) {
    // OpenSSL's errors have no class of their own.
    if (error instanceof Error) return undefined;
    throw error;
  }
}
