import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runProcess } from '../../../src/base/process.ts';
import {
  createConfigIsoWorld,
  inFolder,
  manifestOf,
  siteTree,
  type ConfigIsoWorld,
} from '../../support/config-iso-world.ts';
import { makeKeyRing } from '../../support/site-identity.ts';
import { requireTool } from '../../support/tools.ts';

const LONG = `${'99-a-very-long-name-of-a-manifest'.repeat(4)}.yaml`;
const MANIFESTS = {
  [LONG]: manifestOf('A'),
  '50-Worker.yaml': manifestOf('B'),
  '50-worker.yml': manifestOf('C'),
};
const MIRRORS = ['imageDigestSources: [{source: quay.io/a, mirrors: [quay.io/b]}]'];

/** The exact tree of the smallest site, and of one with everything that makes a file. */
const SMALL = [
  ...['/', '/cluster-configuration', '/cluster-configuration/manifest.json'],
  ...['/cluster-configuration/manifests', '/extra-manifests'],
];
const LARGE = [
  ...SMALL,
  '/cluster-configuration/manifests/image-digest-mirror-set.json',
  ...Object.keys(MANIFESTS).map((name) => `/extra-manifests/${name}`),
].sort();

let world: ConfigIsoWorld;
beforeAll(async () => {
  world = await createConfigIsoWorld();
  const keys = await makeKeyRing();
  const small = siteTree('small', { number: 1 });
  const large = siteTree('large', { number: 2, install: MIRRORS, manifests: MANIFESTS });
  world.write(inFolder('sites', small, large));
  const { failed } = await world.build(keys, { sites: 'sites', out: 'out' });
  expect(failed).toEqual([]);
  await keys.close();
}, 60_000);
afterAll(() => world.close());

const iso = (name: string): string => world.at('out', `${name}.iso`);

describe.skipIf(!requireTool('isoinfo'))('isoinfo', () => {
  it.each([
    ['small', SMALL],
    ['large', LARGE],
  ])(
    'sees the exact tree of the %s site, including an empty manifests folder',
    async (name, tree) => {
      const { stdout } = await runProcess('isoinfo', ['-R', '-f', '-i', iso(name)]);
      expect(['/', ...stdout.trim().split('\n')].sort()).toEqual(tree);
    },
  );

  it('sees the label in lower case, Rock Ridge, no Joliet and nothing to boot', async () => {
    const { stdout } = await runProcess('isoinfo', ['-d', '-i', iso('small')]);
    expect(stdout).toMatch(/^Volume id: cluster-config$/m);
    expect(stdout).toMatch(/Rock Ridge signatures version 1 found/);
    expect(stdout).toContain('NO Joliet present');
    expect(stdout).not.toContain('El Torito VD version');
  });
});

describe.skipIf(!requireTool('bsdtar'))('bsdtar', () => {
  it('copies the tree with its names, bytes and modes', async () => {
    const { stdout } = await runProcess('bsdtar', ['-t', '-v', '-f', iso('large')]);
    expect(stdout).toMatch(/^-rw------- .* cluster-configuration\/manifest\.json$/m);
    world.write({ 'copy/x': '' });
    await runProcess('bsdtar', ['-x', '-f', iso('large'), '-C', world.at('copy')]);
    for (const [name, text] of Object.entries(MANIFESTS)) {
      expect(await readFile(join(world.at('copy/extra-manifests'), name), 'utf8')).toBe(text);
    }
  });
});

describe.skipIf(!requireTool('blkid'))('blkid', () => {
  it('finds the label that nodes wait for, on the whole device', async () => {
    const { stdout } = await runProcess('blkid', ['-p', '-o', 'export', iso('small')]);
    expect(stdout).toMatch(/^LABEL=cluster-config$/m);
    expect(stdout).toMatch(/^TYPE=iso9660$/m);
    expect(stdout).not.toMatch(/^PTTYPE=/m);
  });
});

describe.skipIf(!requireTool('openssl'))('openssl', () => {
  it('verifies the administrator of the kubeconfig with the CA of the manifest', async () => {
    const kubeconfig = await readFile(world.at('out/small/auth/kubeconfig'), 'utf8');
    const encoded = /client-certificate-data: (\S+)/.exec(kubeconfig)?.[1] ?? '';
    const { stdout } = await runProcess('bsdtar', [
      ...['-x', '-O', '-f', iso('small'), 'cluster-configuration/manifest.json'],
    ]);
    const ca = /"admin_ca_certificate":("[^"]*")/.exec(stdout)?.[1] ?? '""';
    world.write({
      'ca.pem': JSON.parse(ca) as string,
      'client.pem': Buffer.from(encoded, 'base64').toString('utf8'),
    });
    const verify = ['verify', '-attime', '1767323046', '-purpose', 'sslclient'];
    const files = ['-CAfile', world.at('ca.pem'), world.at('client.pem')];
    expect((await runProcess('openssl', [...verify, ...files])).stdout).toContain(': OK');
  });
});
