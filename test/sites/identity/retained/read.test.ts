import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { issueSigner } from '../../../../src/sites/identity/certificates.ts';
import { readRetained as read } from '../../../../src/sites/identity/retained/read.ts';
import { renderDigestMirrorSet } from '../../../../src/sites/compose/tree.ts';
import { renderSeedReconfiguration } from '../../../../src/sites/compose/tree.ts';
import type { SiteIdentity } from '../../../../src/sites/identity/identity.ts';
import {
  ALPHA,
  listPairs,
  MADE_AT,
  makeAlpha,
  makeKeyRing,
  type KeyRing,
} from '../../../support/site-identity.ts';

const MANIFEST = 'cluster-configuration/manifest.json';
const HASH = 'tls/kubeadmin-password.hash';
const readRetained = (directory: string) =>
  read({ directory, readIso: () => Promise.reject(new Error('no ISO is there')) });

const SERVING = [
  'kube-apiserver-lb-signer',
  'kube-apiserver-localhost-signer',
  'kube-apiserver-service-network-signer',
  'ingress-operator-signer',
];

let root: string;
let dir: string;
let keys: KeyRing;
let earlier: SiteIdentity;
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'sealift-retained-'));
  keys = await makeKeyRing();
  earlier = await makeAlpha(keys);
});
afterAll(async () => {
  await keys.close();
  rmSync(root, { recursive: true });
});
beforeEach(() => {
  dir = mkdtempSync(join(root, 'dir-'));
});

function put(path: string, text: string): void {
  mkdirSync(join(dir, path, '..'), { recursive: true });
  writeFileSync(join(dir, path), text);
}

/** What an earlier run of alpha has in tls/. */
function putSigners(names = [...SERVING, 'admin-kubeconfig-signer']): void {
  const pairs = listPairs(earlier);
  for (const name of names) {
    put(`tls/${name}.key`, pairs[name]?.privateKey ?? '');
    put(`tls/${name}.crt`, pairs[name]?.certificate ?? '');
  }
}

const renderManifest = (): string =>
  renderSeedReconfiguration(
    {
      install: { ...ALPHA, sshKey: '', pullSecret: '{}' },
      imageBased: { additionalNTPSources: [], hostname: 'alpha', nodeLabels: { a: 'b' } },
    },
    earlier,
  );

function putManifest(change: (text: string) => string = (text) => text): void {
  putSigners(['admin-kubeconfig-signer']);
  put(MANIFEST, change(renderManifest()));
}

const refused = (problem: string | RegExp, code: string): Promise<void> =>
  expect(readRetained(dir)).rejects.toMatchObject({
    code: `retained.${code}`,
    message: expect.stringMatching(
      typeof problem === 'string' ? problem.replaceAll(/[.[\]()*+?]/g, '\\$&') : problem,
    ) as unknown,
  });

describe('signers that an earlier producer left', () => {
  it('are used again, and only the administrator needs a new key', async () => {
    putSigners();
    const before = keys.handedOut();
    const later = await makeAlpha(keys, {
      epoch: MADE_AT + 86_400,
      retained: await readRetained(dir),
    });
    expect(later.signers).toEqual(earlier.signers);
    expect(keys.handedOut() - before).toBe(1);
    expect(later.clusterId).not.toBe(earlier.clusterId);
    const client = new X509Certificate(later.adminClient.certificate);
    const signer = new X509Certificate(earlier.signers.adminKubeconfig.certificate);
    expect(client.checkIssued(signer) && client.verify(signer.publicKey)).toBe(true);
    expect(Date.parse(client.validFrom)).toBe(MADE_AT * 1000);
    expect(Date.parse(client.validTo)).toBe((MADE_AT + 86_400 * 3651) * 1000);
  });

  it('may have their keys as PKCS#8, and are used as PKCS#1', async () => {
    putSigners();
    const pair = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const subject = { organizationalUnit: 'openshift', commonName: 'kube-apiserver-lb-signer' };
    const terms = { subject, publicKey: pair.publicKey, serial: Buffer.alloc(8) };
    const dates = { notBefore: MADE_AT, notAfter: MADE_AT + 1 };
    put(
      'tls/kube-apiserver-lb-signer.crt',
      await issueSigner({ ...terms, ...dates }, pair.privateKey),
    );
    const pkcs8 = pair.privateKey.export({ type: 'pkcs8', format: 'pem' });
    put('tls/kube-apiserver-lb-signer.key', String(pkcs8));
    const { signers } = await readRetained(dir);
    expect(signers.loadBalancer?.privateKey).toBe(
      pair.privateKey.export({ type: 'pkcs1', format: 'pem' }),
    );
  });

  it('are not used after they have expired', async () => {
    putSigners();
    const retained = await readRetained(dir);
    const late = makeAlpha(keys, { epoch: MADE_AT + 731 * 86_400, retained });
    await expect(late).rejects.toMatchObject({
      code: 'retained.expired',
      message: expect.stringContaining('ingress-operator-signer') as unknown,
    });
  });

  it.each(['key', 'crt'])('are refused when a .%s is missing', async (kind) => {
    putSigners();
    rmSync(join(dir, `tls/kube-apiserver-lb-signer.${kind}`));
    await refused(`tls/kube-apiserver-lb-signer.${kind} does not`, 'incomplete');
  });

  it('are refused when one of the five is missing', async () => {
    putSigners(SERVING);
    await refused('tls/admin-kubeconfig-signer.key, tls/admin-kubeconfig-signer.crt', 'incomplete');
  });

  const lbKey = 'tls/kube-apiserver-lb-signer.key';
  const lbCrt = 'tls/kube-apiserver-lb-signer.crt';
  const other = () => earlier.signers.localhost;
  const elliptic = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  const short = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey;
  const sealed = short.export({
    type: 'pkcs8',
    format: 'pem',
    cipher: 'aes-256-cbc',
    passphrase: 'x',
  });
  const cut = () => earlier.signers.loadBalancer.privateKey.slice(0, 600);
  it.each<readonly [string, string, () => string, string]>([
    ['a key of another certificate', lbKey, () => other().privateKey, 'mismatch'],
    ['a certificate of another signer', lbCrt, () => other().certificate, 'mismatch'],
    ['a key that is not RSA', lbKey, () => pemOf(elliptic), 'not-rsa'],
    ['a key that is too short', lbKey, () => pemOf(short), 'not-rsa'],
    ['a key with a passphrase', lbKey, () => String(sealed), 'not-pem'],
    ['a key that was cut short', lbKey, cut, 'not-pem'],
    ['something else for a key', lbKey, () => 'secret words', 'not-pem'],
    ['a certificate for a key', lbKey, () => other().certificate, 'not-pem'],
    ['a key for a certificate', lbCrt, () => other().privateKey, 'not-pem'],
    ['nothing', lbCrt, () => '', 'not-pem'],
    ['two certificates', lbCrt, () => other().certificate.repeat(2), 'not-pem'],
    ['no text', lbCrt, () => '-----BEGIN CERTIFICATE-----\nMII=\n-----END', 'not-pem'],
    ['a certificate that is not a CA', lbCrt, () => earlier.adminClient.certificate, 'mismatch'],
  ])('are refused with the name of the file: %s', async (...[, path, text, code]) => {
    putSigners();
    put(path, text());
    await refused(path, code);
    await expect(readRetained(dir)).rejects.not.toThrow('secret words');
  });

  it('are refused under the name of another', async () => {
    putSigners();
    const { privateKey, certificate } = earlier.signers.ingress;
    put(lbKey, privateKey);
    put(lbCrt, certificate);
    await expect(readRetained(dir)).rejects.toMatchObject({
      code: 'retained.mismatch',
      expected: 'OU=openshift, CN=kube-apiserver-lb-signer',
      found: `CN=ingress-operator@${MADE_AT}`,
    });
  });
});

const pemOf = (key: ReturnType<typeof generateKeyPairSync>['privateKey']): string =>
  String(key.export({ type: 'pkcs8', format: 'pem' }));

describe('a password that an earlier producer left', () => {
  it('is used with its hash, byte by byte', async () => {
    put(HASH, earlier.password.bcrypt);
    put('tls/kubeadmin-password', earlier.password.text);
    const retained = await readRetained(dir);
    expect((await makeAlpha(keys, { retained })).password).toEqual(earlier.password);
  });

  it('may be unknown, and then has an empty text', async () => {
    put(HASH, earlier.password.bcrypt);
    expect((await readRetained(dir)).password).toEqual({
      text: '',
      bcrypt: earlier.password.bcrypt,
    });
  });

  it('may be absent', async () => {
    put(HASH, '');
    expect((await readRetained(dir)).password).toEqual({ text: '', bcrypt: '' });
  });

  it.each([
    ['newline', () => `${earlier.password.bcrypt}\n`],
    ['other hash', () => '$6$salt$hash'],
    ['end cut off', () => earlier.password.bcrypt.slice(0, -1)],
  ])('is refused when its hash has a %s', async (_, text) => {
    put(HASH, text());
    await refused(join(dir, HASH), 'password');
  });

  it('is refused with white space around it, or without its hash', async () => {
    put('tls/kubeadmin-password', 'x\n');
    await refused(`${HASH} does not`, 'incomplete');
    put(HASH, earlier.password.bcrypt);
    await refused('white space around the password', 'password');
  });
});

describe('a manifest.json that an earlier producer left', () => {
  it('gives ids, hash and keys', async () => {
    putManifest();
    const retained = await readRetained(dir);
    const later = await makeAlpha(keys, { epoch: MADE_AT + 86_400, retained });
    expect({ ...later, password: later.password.bcrypt }).toMatchObject({
      clusterId: earlier.clusterId,
      infraId: earlier.infraId,
      password: earlier.password.bcrypt,
    });
    expect(later.signers.adminKubeconfig).toEqual(earlier.signers.adminKubeconfig);
    for (const name of ['loadBalancer', 'localhost', 'serviceNetwork', 'ingress'] as const) {
      expect(later.signers[name].privateKey).toBe(earlier.signers[name].privateKey);
    }
    const { commonName, certificate } = later.signers.ingress;
    expect(commonName).toBe(earlier.signers.ingress.commonName);
    expect(new X509Certificate(certificate).subject).toBe(`CN=${commonName}`);
  });

  it('agrees with the files in tls/', async () => {
    putManifest();
    putSigners();
    put(HASH, earlier.password.bcrypt);
    const later = await makeAlpha(keys, { retained: await readRetained(dir) });
    expect(later.signers).toEqual(earlier.signers);
  });

  it('cannot be used for another cluster', async () => {
    putManifest((text) => text.replace('"cluster_name":"alpha"', '"cluster_name":"beta"'));
    const retained = await readRetained(dir);
    await expect(makeAlpha(keys, { retained })).rejects.toMatchObject({
      code: 'retained.mismatch',
      expected: 'alpha',
      found: 'beta',
    });
  });

  it.each<readonly [string, (text: string) => string, string]>([
    ['no JSON', (text) => text.slice(0, -1), 'is not JSON'],
    ['YAML', () => 'api_version: 1\n', 'is not JSON'],
    ['no object', () => '[]', 'all of it should be an object'],
    ['nothing', () => 'null', 'all of it should be an object'],
    [
      'an unknown key among its keys',
      (text) => text.replace('"ingress_ca"', '"ingress_key"'),
      'unknown field "KubeconfigCryptoRetention.IngresssCrypto.ingress_key"',
    ],
    ['a key twice', (text) => text.replace('{', '{"hostname":"",'), 'has "hostname" twice'],
    [
      'a number for a text',
      (text) => text.replace('"cluster_name":"alpha"', '"cluster_name":7'),
      'field "cluster_name" should be a string',
    ],
    [
      'a text for an object',
      (text) => text.replace(/"IngresssCrypto":\{[^}]*\}/, '"IngresssCrypto":""'),
      'field "KubeconfigCryptoRetention.IngresssCrypto" should be an object',
    ],
    [
      'another version',
      (text) => text.replace('"api_version":1', '"api_version":2'),
      'api_version is 2, but should be 1',
    ],
  ])('is refused with %s', async (_, change, problem) => {
    putManifest(change);
    await refused(`failed to unmarshal ${MANIFEST}: `, 'manifest');
    await refused(problem, 'manifest');
  });

  it('is refused if it is not a regular file or not UTF-8', async () => {
    mkdirSync(join(dir, MANIFEST), { recursive: true });
    await refused(`failed to load ${MANIFEST} file`, 'unreadable');
    rmSync(join(dir, MANIFEST), { recursive: true });
    writeFileSync(join(dir, MANIFEST), Buffer.of(0x22, 0xff, 0x22));
    await refused(`failed to load ${MANIFEST} file`, 'unreadable');
  });

  it('needs the signer of the administrator, whose key it does not have', async () => {
    put(MANIFEST, renderManifest());
    await refused(
      'no private key of admin-kubeconfig-signer, and there is no kubeconfig',
      'incomplete',
    );
  });

  it.each([
    ['id', /"cluster_id":"[^"]*",/, 'has no cluster_id'],
    [
      'key',
      /"localhost_signer_private_key":"[^"]*",/,
      'no private key of kube-apiserver-localhost',
    ],
    ['name', /,"ingress_certificate_cn":"[^"]*"/, 'has no ingress_certificate_cn'],
  ])('is refused without its %s', async (_, part, problem) => {
    putManifest((text) => text.replace(part, ''));
    await refused(problem, 'incomplete');
  });

  it('is refused if tls/ disagrees', async () => {
    putManifest((text) => text.replace('ingress-operator@', 'ingress-operator@1'));
    putSigners();
    await refused('name different ingress signers', 'mismatch');
    putManifest((text) => text.replace('$2a$10$', '$2a$11$'));
    put(HASH, earlier.password.bcrypt);
    await refused('a different hash', 'mismatch');
  });

  it('is refused if the node would not trust the administrator', async () => {
    const stranger = JSON.stringify(earlier.signers.localhost.certificate);
    const certificate = JSON.stringify(earlier.signers.adminKubeconfig.certificate);
    putManifest((text) => text.replace(certificate, stranger));
    await refused('admin_ca_certificate differs from', 'mismatch');
  });
});

describe('mirrors that an earlier producer left', () => {
  const MIRRORS = 'cluster-configuration/manifests/image-digest-mirror-set.json';

  const SOURCES = [
    { source: 'quay.io/a', mirrors: ['mirror.example/a'], sourcePolicy: 'NeverContactSource' },
    { source: 'quay.io/b', mirrors: [] },
  ];

  it('are read from the list that openshift-install accepts, or the object that it writes to the ISO', async () => {
    put(MIRRORS, JSON.stringify(SOURCES));
    expect((await readRetained(dir)).imageDigestSources).toEqual(SOURCES);
    put(MIRRORS, renderDigestMirrorSet(SOURCES));
    expect((await readRetained(dir)).imageDigestSources).toEqual(SOURCES);
  });

  it('may be an object of an older release, with times, labels and no entries', async () => {
    const metadata = { name: 'image-digest-mirror', creationTimestamp: null };
    const kind = 'ImageDigestMirrorSet';
    put(MIRRORS, JSON.stringify({ kind, metadata, spec: { imageDigestMirrors: null } }));
    expect((await readRetained(dir)).imageDigestSources).toEqual([]);
  });

  it.each([
    ['[{"source":"a","wrongField":1}]', 'unknown field "[0].wrongField"'],
    ['{"kind":"ImageContentSourcePolicy"}', 'field "kind" should be "ImageDigestMirrorSet"'],
    ['7', 'all of it should be a list'],
    [
      '{"kind":"ImageDigestMirrorSet","spec":{"imageDigestMirrors":[{"source":1}]}}',
      'field "spec.imageDigestMirrors[0].source" should be a string',
    ],
    ['[{"source":"a"},{"source":2}]', 'field "[1].source" should be a string'],
    ['[7]', 'field "[0]" should be an object'],
    ['[', 'it is not JSON'],
  ])('are refused as %s', async (text, problem) => {
    put(MIRRORS, text);
    await refused(`failed to unmarshal ${MIRRORS}: ${problem}`, 'manifest');
  });
});

it('a directory without a retained identity is refused', async () => {
  await refused('has neither tls/ nor cluster-configuration/manifest.json', 'empty');
  dir = join(dir, 'absent');
  await refused('has neither', 'empty');
});
