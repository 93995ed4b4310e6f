import { X509Certificate } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runProcess } from '../../../src/base/process.ts';
import type { SiteIdentity } from '../../../src/sites/identity/identity.ts';
import {
  ALPHA,
  listPairs,
  MADE_AT,
  makeAlpha,
  makeKeyRing,
  openssl,
  seedRandom,
  type KeyRing,
} from '../../support/site-identity.ts';
import { requireTool } from '../../support/tools.ts';
import { makeIdentity } from '../../../src/sites/identity/make.ts';
import { issueSigner } from '../../../src/sites/identity/certificates.ts';

let keys: KeyRing;
let identity: SiteIdentity;
let directory: string;
beforeAll(async () => {
  keys = await makeKeyRing();
  identity = await makeAlpha(keys);
  directory = await mkdtemp(join(tmpdir(), 'sealift-identity-'));
});
afterAll(async () => {
  await keys.close();
  await rm(directory, { recursive: true });
});

const SIGNERS = [
  ['kube-apiserver-lb-signer', 'OU=openshift,CN=kube-apiserver-lb-signer', 3650],
  ['kube-apiserver-localhost-signer', 'OU=openshift,CN=kube-apiserver-localhost-signer', 3650],
  [
    'kube-apiserver-service-network-signer',
    'OU=openshift,CN=kube-apiserver-service-network-signer',
    3650,
  ],
  ['ingress-operator-signer', `CN=ingress-operator@${MADE_AT}`, 730],
  ['admin-kubeconfig-signer', 'OU=openshift,CN=admin-kubeconfig-signer', 3650],
] as const;
const CLIENT = 'admin-kubeconfig-client';
const ALL = [...SIGNERS.map(([name]) => name), CLIENT];

const certificateOf = (name: string): string => listPairs(identity)[name]?.certificate ?? '';
const keyOf = (name: string): string => listPairs(identity)[name]?.privateKey ?? '';
const inspect = (name: string, ...args: readonly string[]): Promise<string> =>
  openssl(['x509', '-noout', ...args], certificateOf(name));

describe.skipIf(!requireTool('openssl'))('openssl confirms of an identity that', () => {
  it.each(SIGNERS)('the certificate %s is signed by itself', async (name) => {
    const file = join(directory, `${name}.crt`);
    await writeFile(file, certificateOf(name));
    const strict = ['verify', '-x509_strict', '-check_ss_sig', '-attime', String(MADE_AT)];
    expect(await openssl([...strict, '-CAfile', file, file])).toContain('OK');
  });

  it('the administrator is trusted by the admin-kubeconfig-signer, for clients and servers', async () => {
    const signer = join(directory, 'signer.crt');
    const client = join(directory, 'client.crt');
    await writeFile(signer, certificateOf('admin-kubeconfig-signer'));
    await writeFile(client, certificateOf(CLIENT));
    for (const purpose of ['sslclient', 'sslserver']) {
      const chain = ['-purpose', purpose, '-attime', String(MADE_AT), '-CAfile', signer, client];
      expect(await openssl(['verify', '-x509_strict', ...chain])).toContain('OK');
    }
  });

  it.each(ALL)('%s belongs to its key, an RSA key of 2048 bits', async (name) => {
    const file = join(directory, `${name}.key`);
    await writeFile(file, keyOf(name));
    expect(keyOf(name)).toMatch(/^-----BEGIN RSA PRIVATE KEY-----\n[^]*-----END[^]*-----\n$/);
    const text = await openssl(['rsa', '-in', file, '-noout', '-text', '-check']);
    expect(text).toContain('RSA key ok');
    expect(text).toContain('Private-Key: (2048 bit, 2 primes)');
    expect(text).toContain('publicExponent: 65537 (0x10001)');
    const modulus = await openssl(['rsa', '-in', file, '-noout', '-modulus']);
    expect(await inspect(name, '-modulus')).toBe(modulus);
  });

  it.each(SIGNERS)('%s has subject %s and is valid for %i days', async (name, subject, days) => {
    const names = await inspect(name, '-subject', '-issuer', '-nameopt', 'sep_comma_plus');
    expect(names).toBe(`subject=${subject}\nissuer=${subject}`);
    const dates = await inspect(name, '-startdate', '-enddate', '-dateopt', 'iso_8601');
    expect(dates).toBe(`notBefore=${isoOf(MADE_AT)}\nnotAfter=${isoOf(MADE_AT + days * 86_400)}`);
  });

  it('the administrator is system:admin of system:masters for ten years', async () => {
    const names = await inspect(CLIENT, '-subject', '-issuer', '-nameopt', 'sep_comma_plus');
    expect(names).toBe(
      'subject=O=system:masters,CN=system:admin\nissuer=OU=openshift,CN=admin-kubeconfig-signer',
    );
    const dates = await inspect(CLIENT, '-startdate', '-enddate', '-dateopt', 'iso_8601');
    expect(dates).toBe(`notBefore=${isoOf(MADE_AT)}\nnotAfter=${isoOf(MADE_AT + 3650 * 86_400)}`);
  });

  it.each(SIGNERS)('%s may sign certificates, and has no other extension', async (name) => {
    const text = await inspect(name, '-text');
    expect(extensionsOf(text)).toEqual([
      'X509v3 Key Usage: critical',
      'Digital Signature, Key Encipherment, Certificate Sign',
      'X509v3 Basic Constraints: critical',
      'CA:TRUE',
      'X509v3 Subject Key Identifier: ',
      expect.stringMatching(HEX_ID),
    ]);
    expect(text).toContain('Version: 3 (0x2)');
    expect(text.match(/Signature Algorithm: sha256WithRSAEncryption/g)).toHaveLength(2);
  });

  it('the administrator may use TLS, is not a CA, and has no further names', async () => {
    const keyId = extensionsOf(await inspect('admin-kubeconfig-signer', '-text')).at(-1);
    expect(extensionsOf(await inspect(CLIENT, '-text'))).toEqual([
      'X509v3 Key Usage: critical',
      'Digital Signature, Key Encipherment',
      'X509v3 Extended Key Usage: ',
      'TLS Web Server Authentication, TLS Web Client Authentication',
      'X509v3 Basic Constraints: critical',
      'CA:FALSE',
      'X509v3 Subject Key Identifier: ',
      expect.stringMatching(HEX_ID),
      'X509v3 Authority Key Identifier: ',
      keyId,
    ]);
  });

  it.each(ALL)('the key id of %s is the SHA-1 of its public key in PKCS#1 form', async (name) => {
    const [file, der] = [join(directory, 'one.key'), join(directory, 'one.der')];
    await writeFile(file, keyOf(name));
    await openssl(['rsa', '-in', file, '-RSAPublicKey_out', '-outform', 'DER', '-out', der]);
    const { stdout } = await runProcess('sha1sum', [der]);
    const lines = extensionsOf(await inspect(name, '-text'));
    const keyId = lines[lines.indexOf('X509v3 Subject Key Identifier: ') + 1];
    expect(keyId?.replaceAll(':', '').toLowerCase()).toBe(stdout.slice(0, 40));
  });

  it('serial numbers are positive, below 2^63 and all different', async () => {
    const serials = await Promise.all(
      ALL.map(async (name) => (await inspect(name, '-serial')).replace('serial=', '')),
    );
    expect(new Set(serials).size).toBe(ALL.length);
    for (const serial of serials) {
      expect(BigInt(`0x${serial}`)).toBeGreaterThan(0n);
      expect(BigInt(`0x${serial}`)).toBeLessThan(2n ** 63n - 1n);
    }
  });

  it('dates from 2050 on have years of four digits', async () => {
    const late = await makeAlpha(keys, { epoch: Date.UTC(2049, 11, 31, 23, 59, 59) / 1000 });
    const text = await openssl(['asn1parse'], late.signers.loadBalancer.certificate);
    expect(text).toContain('UTCTIME           :491231235959Z');
    expect(text).toContain('GENERALIZEDTIME   :20591229235959Z');
  });
});

const HEX_ID = /^([0-9A-F]{2}:){19}[0-9A-F]{2}$/;

const isoOf = (seconds: number): string =>
  new Date(seconds * 1000).toISOString().replace('T', ' ').replace('.000', '');

function extensionsOf(text: string): string[] {
  const lines = text.split('\n').map((line) => line.replace(/^ */, ''));
  const start = lines.findIndex((line) => line.startsWith('X509v3 extensions'));
  const end = lines.findIndex(
    (line, index) => index > start && line.startsWith('Signature Algorithm'),
  );
  return lines.slice(start + 1, end);
}

describe('a serial number', () => {
  it.each([
    ['the smallest', '0000000000000000', 1n],
    ['the largest', '7ffffffffffffffd', 2n ** 63n - 2n],
    ['one that is beyond the range', '7ffffffffffffffe', 1n],
  ])('is neither 0 nor too large: %s', async (_, random, serial) => {
    const pair = await keys.next();
    const terms = { subject: { commonName: 'x' }, notBefore: 0, notAfter: 1, ...pair };
    const pem = await issueSigner(
      { ...terms, serial: Buffer.from(random, 'hex') },
      pair.signingKey,
    );
    expect(BigInt(`0x${new X509Certificate(pem).serialNumber}`)).toBe(serial);
  });
});

describe('an identity', () => {
  it('has ids of the usual shape, a password and its hash, and remembers when it was made', () => {
    expect(identity.clusterId).toMatch(
      /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    );
    expect(identity.infraId).toMatch(/^alpha-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
    expect(identity.password.bcrypt).toMatch(/^\$2a\$10\$[./A-Za-z0-9]{53}$/);
    expect(identity.signers.ingress.commonName).toBe(`ingress-operator@${MADE_AT}`);
    expect(identity.madeAt).toBe(MADE_AT);
  });

  it('keeps each id that the user gave', async () => {
    const clusterId = '11111111-2222-4333-8444-555555555555';
    const given = await makeIdentity({ ...ALPHA, clusterId }, { keys, epoch: MADE_AT });
    expect(given.clusterId).toBe(clusterId);
    expect(given.infraId).toMatch(/^alpha-/);
    const other = await makeIdentity({ ...ALPHA, infraId: 'x' }, { keys, epoch: MADE_AT });
    expect(other.infraId).toBe('x');
    expect(other.clusterId).not.toBe(identity.clusterId);
  });

  it('is made only from keys, clock and random bytes: the same inputs give the same bytes', async () => {
    const pair = await keys.next();
    const oneKey = { ...keys, next: () => Promise.resolve(pair) };
    const make = (seed: string) => makeAlpha(oneKey, { random: seedRandom(seed) });
    expect(await make('a')).toEqual(await make('a'));
    expect(await make('a')).not.toEqual(await make('b'));
  });

  it('needs six keys', async () => {
    const before = keys.handedOut();
    await makeAlpha(keys);
    expect(keys.handedOut() - before).toBe(6);
  });
});

describe.skipIf(!requireTool('htpasswd'))('htpasswd confirms of a password that', () => {
  it('the hash matches it, and no other password', async () => {
    const file = join(directory, 'htpasswd');
    await writeFile(file, `kubeadmin:${identity.password.bcrypt}\n`);
    const verify = (password: string) =>
      runProcess('htpasswd', ['-v', '-i', file, 'kubeadmin'], { input: password });
    await verify(identity.password.text);
    await expect(verify(`${identity.password.text}x`)).rejects.toThrow('password verification');
  });
});
