import { X509Certificate } from 'node:crypto';
import type { Finding } from './rules.ts';

const SECRET = '"[redacted]"';

/** A pull secret: JSON with `auths`, each entry with `auth` or `credsStore`. Never quotes it. */
export function checkPullSecret(text: string): Finding[] {
  const at = 'pullSecret';
  if (text === '') {
    return [{ at, problem: 'Required value: you must specify a pullSecret' }];
  }
  return findFaults(text).map((fault) => ({ at, problem: `Invalid value: ${SECRET}: ${fault}` }));
}

function findFaults(text: string): string[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    // The parser's own words quote the text, which is the secret.
    if (error instanceof SyntaxError) return ['it is not JSON'];
    throw error;
  }
  if (!isObject(parsed)) return ['it is no JSON object'];
  const { auths } = parsed;
  if (auths !== undefined && auths !== null && !isObject(auths)) return ['auths is no JSON object'];
  const entries = Object.entries(auths ?? {});
  if (entries.length === 0) return ['auths required'];
  return entries
    .filter(
      ([, entry]) => !isObject(entry) || (entry['auth'] === undefined && !('credsStore' in entry)),
    )
    .map(([host]) => `${JSON.stringify(host)} requires either auth or credsStore`);
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** RFC 7468 3, headers of RFC 1421 not allowed; what stands before a block is skipped. */
const BLOCK =
  /(?:^|\n)-----BEGIN (?<label>[^\n]*?)-----[ \t]*\r?\n(?<base64>[A-Za-z0-9+/=\s]*?)\r?\n?-----END \k<label>-----[ \t]*(?:\r?\n|$)/;

/** Certificates in PEM to the very end of the text. */
export function checkTrustBundle(text: string): Finding[] {
  const at = 'additionalTrustBundle';
  for (let rest = text; rest !== '';) {
    const block = BLOCK.exec(rest);
    if (block === null) return [{ at, problem: describe('invalid block') }];
    const fault = checkCertificate(block.groups?.['base64'] ?? '');
    if (fault !== undefined) return [{ at, problem: describe(fault) }];
    rest = rest.slice(block.index + block[0].length);
  }
  return [];
}

/** The value is long, and may hold a key that does not belong there. */
const describe = (fault: string): string => `Invalid value: ${fault}`;

function checkCertificate(base64: string): string | undefined {
  try {
    new X509Certificate(Buffer.from(base64, 'base64'));
    return undefined;
  } catch (error) {
    if (error instanceof Error) return 'x509: malformed certificate';
    throw error;
  }
}
