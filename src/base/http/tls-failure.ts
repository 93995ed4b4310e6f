import type { X509Certificate } from 'node:crypto';

/* Owns what a failure of TLS means: its sentence, both values, and a hint for each kind. */

/** A failure of TLS, with what was known at that moment. */
export class TlsFailure extends Error {
  /** Certificates that the server showed, its own first; empty if it did not come as far as that. */
  readonly chain: readonly X509Certificate[];
  /** `http://proxy.example:3128`, if the connection went through a proxy. */
  readonly proxy: string | undefined;
  readonly at = new Date();

  constructor(cause: Error, { chain = [], proxy }: Partial<TlsFailure>) {
    super(cause.message, { cause }); // undici would repeat a request whose error has a code of TLS
    this.chain = chain;
    this.proxy = proxy;
  }
}

export type TlsDiagnosis = {
  /** True if it is about a certificate: the server's, or ours. */
  readonly isCertificate: boolean;
  /** The rest of a sentence that begins with the server. */
  readonly problem: string;
  readonly expected?: string;
  readonly found: string;
  readonly hint: string;
};

type Failure = {
  /** Name of the server, with its port. */
  readonly host: string;
  readonly isProxy?: boolean;
  readonly code: string;
  readonly failure: Partial<TlsFailure>;
};

/** A diagnosis, whose value for `found` is the code by default. */
type Words = Pick<TlsDiagnosis, 'problem' | 'expected' | 'hint'> & Partial<TlsDiagnosis>;

/** X509_verify_cert_error_string(3), by the names of Node; CERT is in alerts about ours, too. */
const CERTIFICATE =
  /CERT|SELF_SIGNED|UNABLE_TO_|HOSTNAME_MISMATCH|^INVALID_(?:CA|PURPOSE)$|^PATH_LENGTH_EXCEEDED$|^UNSPECIFIED$/;

export const isCertificateCode = (code: string): boolean => CERTIFICATE.test(code);

/** Codes of TLS, each with its meaning; the first that matches counts. */
const KINDS: readonly (readonly [codes: RegExp, (failure: Failure) => Words])[] = [
  [/^CERT_HAS_EXPIRED$/, describeTime('has an expired certificate')],
  [/^CERT_NOT_YET_VALID$/, describeTime('has a certificate that is not valid yet')],
  [/^(?:ERR_TLS_CERT_ALTNAME_INVALID|HOSTNAME_MISMATCH)$/, describeNames],
  [/^DEPTH_ZERO_SELF_SIGNED_CERT$/, describeSelfSigned],
  [/^CERT_SIGNATURE_FAILURE$/, describeForged],
  [/^(?:SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_|CERT_UNTRUSTED|CERT_REJECTED)/, describeAuthority],
  [/ALERT|^ERR_SSL_.*HANDSHAKE_FAILURE$/, describeAlert],
  [/^ERR_SSL_(?:WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST)$/, describePlain],
  [/^ERR_SSL_(?:UNSUPPORTED_PROTOCOL|VERSION_TOO_LOW)$/, describeOld],
  [CERTIFICATE, describeUnfit],
];

/** Explains a failure of TLS; undefined for any other code. */
export function diagnoseTls(failure: Failure): TlsDiagnosis | undefined {
  const [, describe] = KINDS.find(([codes]) => codes.test(failure.code)) ?? [];
  if (!describe) return undefined;
  const isCertificate = isCertificateCode(failure.code);
  return { isCertificate, found: describeFound(failure), ...describe(failure) };
}

/** The code, with the certificate that the server showed. */
function describeFound({ code, failure: { chain: [certificate] = [] } }: Failure): string {
  if (!certificate) return code;
  const { subject, issuer } = certificate;
  const by = subject === issuer ? 'itself' : formatName(issuer);
  return `${code}: a certificate of ${formatName(subject)}, signed by ${by}`;
}

/** A distinguished name on one line. */
const formatName = (name: string): string =>
  `"${name.split('\n').join(', ').slice(0, LONGEST_NAME)}"`;

const LONGEST_NAME = 200;

/** An expired or future certificate: the server's, or one in its chain. */
function describeTime(problem: string): (failure: Failure) => Words {
  return ({ code, failure: { chain = [], at = new Date() } }) => {
    const wrong = chain.find(
      ({ validFrom, validTo }) => at < new Date(validFrom) || at > new Date(validTo),
    );
    const { subject, validFrom = '', validTo = '' } = wrong ?? {};
    return {
      problem,
      expected: `one that is valid at ${formatTime(at)}, the time of this machine`,
      ...(subject !== undefined && {
        found: `${code}: ${formatName(subject)} is valid from ${formatTime(validFrom)} to ${formatTime(validTo)}`,
      }),
      hint: 'correct the clock of this machine if it is wrong, or have the certificate renewed',
    };
  };
}

const formatTime = (time: Date | string): string =>
  new Date(time).toISOString().replace(/\.\d+Z$/, 'Z');

function describeNames({ host, code, failure: { chain: [certificate] = [] } }: Failure) {
  const name = host.replace(/:\d+$/, '');
  const names = certificate?.subjectAltName;
  if (certificate && names === undefined) {
    return {
      problem: 'has a certificate with a common name only',
      expected: `a subject alternative name for ${name}`,
      hint: 'have it issued with a subjectAltName: common names are not compared (RFC 9110 4.3.4)',
    };
  }
  return {
    problem: 'has a certificate that does not cover this name',
    expected: name,
    ...(names !== undefined && { found: `${code}: a certificate for ${shorten(names)}` }),
    hint: 'use a name that the certificate covers, or have it issued for this one too',
  };
}

const shorten = (text: string): string => (text.length > 300 ? `${text.slice(0, 300)} ...` : text);

const addRoot = (host: string): string =>
  `SSL_CERT_FILE, build.caBundle of a build, or a .crt file in certs.d/${host}`;

function describeSelfSigned({ host, failure: { chain: [certificate] = [] } }: Failure) {
  return {
    problem: 'has a self-signed certificate',
    hint:
      `if it is the right one${certificate ? ` (SHA-256 ${certificate.fingerprint256})` : ''}, ` +
      `add it as a CA: ${addRoot(host)}`,
  };
}

function describeForged({ host }: Failure) {
  return {
    problem: 'has a certificate that was not signed by the CA that is known by this name',
    hint: `the CA may have a new key under its old name: add its present certificate: ${addRoot(host)}`,
  };
}

/** Words in the names of CAs of programs that read the traffic of others. */
const INTERCEPTS =
  /proxy|firewall|gateway|inspect|squid|mitm|zscaler|netskope|forti(?:net|gate)|blue ?coat|palo ?alto|forcepoint|sophos|mcafee|umbrella|barracuda|check ?point/i;

function describeAuthority({ host, code, failure: { chain = [], proxy } }: Failure) {
  const problem = 'has a certificate of an unknown CA';
  const isOfProxy = chain.some(({ issuer }) => INTERCEPTS.test(issuer));
  if (isOfProxy || proxy !== undefined) {
    const name = proxy === undefined ? 'a proxy' : `proxy ${proxy}`;
    const verb = isOfProxy ? 'seems to sign' : 'may sign';
    return {
      problem,
      hint: `${name} ${verb} in the name of servers: add its CA (${addRoot(host)}), or reach the host without it`,
    };
  }
  const isLeafAlone = code === 'UNABLE_TO_VERIFY_LEAF_SIGNATURE';
  const more = isLeafAlone ? '; the server sent no certificate of an intermediate CA' : '';
  return { problem, hint: `add the CA that signed it: ${addRoot(host)}${more}` };
}

/** RFC 8446 6.2: the other side refuses. */
function describeAlert({ code, host }: Failure) {
  if (code.includes('PROTOCOL_VERSION')) return describeOld();
  return {
    problem: /CERT|UNKNOWN_CA/.test(code)
      ? 'refuses our client certificate, or wants one'
      : 'refuses the TLS handshake',
    hint: `if it asks for client certificates, put NAME.cert and NAME.key into certs.d/${host}`,
  };
}

function describePlain({ isProxy = false }: Failure) {
  return {
    problem: 'does not speak TLS on this port',
    expected: 'TLS',
    hint: isProxy
      ? 'write http:// in HTTPS_PROXY if the connection to the proxy itself has no TLS'
      : 'correct its port, or name a registry with plain HTTP in build.insecureRegistries',
  };
}

function describeOld() {
  return {
    problem: 'speaks only old versions of TLS',
    expected: 'TLS 1.2 or TLS 1.3',
    hint: 'have the server updated; older versions are not accepted',
  };
}

function describeUnfit() {
  return {
    problem: 'has a certificate that a server must not have',
    hint: 'have it issued for servers (serverAuth), with an RSA key of 2048 bits or more and SHA-256, by a CA that may sign it',
  };
}
