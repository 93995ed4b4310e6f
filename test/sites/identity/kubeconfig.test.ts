import { spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parseDocument } from 'yaml';
import { runProcess } from '../../../src/base/process.ts';
import { renderKubeconfig } from '../../../src/sites/identity/identity.ts';
import type { SiteIdentity } from '../../../src/sites/identity/identity.ts';
import { ALPHA, makeAlpha, makeKeyRing, openssl } from '../../support/site-identity.ts';
import { requireTool } from '../../support/tools.ts';

let identity: SiteIdentity;
let directory: string;
beforeAll(async () => {
  const keys = await makeKeyRing();
  identity = await makeAlpha(keys);
  await keys.close();
  directory = await mkdtemp(join(tmpdir(), 'sealift-kubeconfig-'));
});
afterAll(() => rm(directory, { recursive: true }));

type Kubeconfig = {
  readonly clusters: readonly { readonly name: string; readonly cluster: Texts }[];
  readonly users: readonly { readonly name: string; readonly user: Texts }[];
};
type Texts = Readonly<Record<string, string>>;

function read(site = ALPHA): Kubeconfig {
  const document = parseDocument(renderKubeconfig(site, identity), {
    strict: true,
    version: '1.1',
  });
  expect([...document.errors, ...document.warnings]).toEqual([]);
  return document.toJS() as Kubeconfig;
}

const decode = (text = ''): string => Buffer.from(text, 'base64').toString('utf8');

it('a kubeconfig has one cluster, one context and one user, and its keys are sorted', () => {
  const b64 = expect.stringMatching(/^[A-Za-z0-9+/]+=*$/) as unknown;
  expect(read()).toEqual({
    'clusters': [
      {
        cluster: {
          'certificate-authority-data': b64,
          'server': 'https://api.alpha.edge.example:6443',
        },
        name: 'alpha',
      },
    ],
    'contexts': [{ context: { cluster: 'alpha', user: 'admin' }, name: 'admin' }],
    'current-context': 'admin',
    'users': [{ name: 'admin', user: { 'client-certificate-data': b64, 'client-key-data': b64 } }],
  });
  const lines = renderKubeconfig(ALPHA, identity).split('\n');
  expect(lines.filter((line) => /^\S.*:/.test(line) && !line.startsWith('-'))).toEqual([
    ...['clusters:', 'contexts:', 'current-context: admin', 'users:'],
  ]);
});

it('a kubeconfig trusts the authorities of localhost, service network, load balancer and ingress', () => {
  const { localhost, serviceNetwork, loadBalancer, ingress } = identity.signers;
  expect(decode(read().clusters[0]?.cluster['certificate-authority-data'])).toBe(
    [localhost, serviceNetwork, loadBalancer, ingress].map((one) => one.certificate).join(''),
  );
});

it('the user of a kubeconfig has the certificate and key of the administrator', () => {
  const user = read().users[0]?.user;
  expect(decode(user?.['client-certificate-data'])).toBe(identity.adminClient.certificate);
  expect(decode(user?.['client-key-data'])).toBe(identity.adminClient.privateKey);
});

it('a dot at the end of the base domain is not part of the API address', () => {
  const [cluster] = read({ ...ALPHA, baseDomain: 'edge.example.' }).clusters;
  expect(cluster?.cluster['server']).toBe('https://api.alpha.edge.example:6443');
});

it.each(['123', 'no', '1e3', '0x10', 'null', 'y', '12e03', '0o7'])(
  'a cluster name %s stays a text',
  (clusterName) => {
    expect(read({ ...ALPHA, clusterName }).clusters[0]?.name).toBe(clusterName);
  },
);

it.skipIf(!requireTool('openssl'))(
  'openssl finds every certificate in the bundle of a kubeconfig',
  async () => {
    const bundle = decode(read().clusters[0]?.cluster['certificate-authority-data']);
    const file = join(directory, 'bundle.crt');
    await writeFile(file, bundle);
    const pkcs7 = await openssl(['crl2pkcs7', '-nocrl', '-certfile', file]);
    const text = await openssl(['pkcs7', '-print_certs', '-noout'], pkcs7);
    expect(text.match(/^subject=/gm)).toHaveLength(4);
  },
);

const hasKubectl = spawnSync('kubectl', ['version', '--client']).status === 0;

it.skipIf(!hasKubectl)(
  'kubectl reads a kubeconfig, and finds the address of the cluster in it',
  async () => {
    const file = join(directory, 'kubeconfig');
    await writeFile(file, renderKubeconfig({ ...ALPHA, clusterName: '123' }, identity));
    const { stdout } = await runProcess('kubectl', [
      ...['--kubeconfig', file, 'config', 'view', '--minify', '--flatten', '--raw', '-o', 'json'],
    ]);
    expect(JSON.parse(stdout)).toMatchObject({
      'kind': 'Config',
      'current-context': 'admin',
      'clusters': [{ name: '123', cluster: { server: 'https://api.123.edge.example:6443' } }],
      'users': [{ name: 'admin', user: { 'client-key-data': expect.any(String) as unknown } }],
    });
  },
);
