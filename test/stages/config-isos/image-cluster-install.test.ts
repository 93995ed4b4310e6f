import { readFileSync } from 'node:fs';
import { stringify } from 'yaml';
import { describe, expect, it } from 'vitest';
import { useConfigIsoWorld } from '../../support/config-iso-fixture.ts';
import {
  type ConfigIsoWorld,
  inFolder,
  manifestOf,
  siteTree,
} from '../../support/config-iso-world.ts';
import { AS_HOSTS, buildAgain, HOST_TABLE } from '../../support/exports.ts';
import { TEST_CERTIFICATE } from '../../support/installation-iso.ts';
import type { KeyRing } from '../../support/site-identity.ts';

let keys: KeyRing;
let world: ConfigIsoWorld;
useConfigIsoWorld((made) => {
  ({ world, keys } = made);
});

type Members = Readonly<Record<string, unknown>>;

const BUNDLE = TEST_CERTIFICATE.trimEnd().replaceAll('\n', '\n  ');

const ALPHA = siteTree('alpha', {
  number: 1,
  install: [
    'proxy: {httpProxy: "http://proxy.example:3128", noProxy: ".example"}',
    'imageDigestSources: [{source: quay.io/a, mirrors: [mirror.example/a], sourcePolicy: NeverContactSource}]',
    `additionalTrustBundle: |\n  ${BUNDLE}`,
  ],
  manifests: { 'a.yaml': manifestOf('A') },
});

const resource = (kind: string, spec: Members, apiVersion = 'v1'): Members => ({
  apiVersion,
  kind,
  metadata: { name: 'alpha', namespace: 'alpha' },
  spec,
});

const INSTALL = resource(
  'ImageClusterInstall',
  {
    clusterDeploymentRef: { name: 'alpha' },
    imageSetRef: { name: 'set' },
    bareMetalHostRef: { name: 'alpha', namespace: 'alpha' },
    hostname: 'alpha',
    machineNetworks: [{ cidr: '192.168.0.0/16' }],
  },
  'extensions.hive.openshift.io/v1alpha1',
);
const SPEC = INSTALL['spec'] as Members;
const DEPLOYMENT = resource('ClusterDeployment', {
  clusterName: 'alpha',
  baseDomain: 'edge.example',
  pullSecretRef: { name: 'pull' },
});
const HOST = resource('BareMetalHost', { online: false });
const PULL = {
  kind: 'Secret',
  metadata: { name: 'pull' },
  stringData: { '.dockerconfigjson': '{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}' },
};

async function validate(
  ...resources: readonly Members[]
): Promise<{ readonly exitCode: number; readonly stderr: string }> {
  world.write({ 'sites/alpha/all.yaml': resources.map((each) => stringify(each)).join('---\n') });
  return world.run('config-iso', 'validate', 'sites');
}

describe('an ImageClusterInstall with its ClusterDeployment and BareMetalHost', () => {
  it('gives the same ISO, byte by byte, as the site that it was exported of', async () => {
    const registry = 'spec: {releaseImage: "quay.io/openshift/release@sha256:00"}';
    const set = `kind: ClusterImageSet\nmetadata: {name: img4.21.3}\n${registry}\n`;
    world.write({
      ...inFolder('sites', ALPHA),
      'hosts.csv': HOST_TABLE,
      'exported/alpha/release.yaml': set,
    });
    const { failed } = await world.build(keys, { sites: 'sites', out: 'out' });
    expect(failed).toEqual([]);
    expect(await world.run('config-iso', 'export', 'sites', ...AS_HOSTS)).toMatchObject({
      exitCode: 0,
    });
    expect(await buildAgain({ world, keys }, { from: 'exported', to: 'other' })).toEqual(
      readFileSync(world.at('out/alpha.iso')),
    );
  });

  it('is a valid site without a network, as with DHCP', async () => {
    expect(await validate(INSTALL, DEPLOYMENT, HOST, PULL)).toMatchObject({ exitCode: 0 });
  });

  it.each<[string, readonly Members[], RegExp]>([
    [
      'without its ClusterDeployment',
      [INSTALL, HOST, PULL],
      /all.yaml:\d+:\d+: spec.clusterDeploymentRef: ClusterDeployment "alpha" is not among the files/,
    ],
    [
      'without its host',
      [INSTALL, DEPLOYMENT, PULL],
      /spec.bareMetalHostRef: BareMetalHost "alpha" is not among the files of the site/,
    ],
    [
      'without the Secret of its pull secret, told in the ClusterDeployment',
      [INSTALL, DEPLOYMENT, HOST],
      /all.yaml:2\d:\d+: spec.pullSecretRef: Secret "pull" is not among the files of the site/,
    ],
    [
      'without the Secret of its network, told in the host',
      [
        INSTALL,
        DEPLOYMENT,
        resource('BareMetalHost', { preprovisioningNetworkDataName: 'net' }),
        PULL,
      ],
      /spec.preprovisioningNetworkDataName: Secret "net" with the key nmstate is not among the files/,
    ],
    [
      'with a host name that no host can have',
      [{ ...INSTALL, spec: { ...SPEC, hostname: 'A_B' } }, DEPLOYMENT, HOST, PULL],
      /all.yaml:\d+:\d+: spec.hostname: /,
    ],
    [
      'with two machine networks that contradict each other',
      [{ ...INSTALL, spec: { ...SPEC, machineNetwork: '10.0.0.0/8' } }, DEPLOYMENT, HOST, PULL],
      /spec.machineNetwork: contradicts machineNetworks\[0\]/,
    ],
    [
      'of another version',
      [{ ...INSTALL, apiVersion: 'v1' }, DEPLOYMENT, HOST, PULL],
      /apiVersion: an ImageClusterInstall has the version extensions.hive.openshift.io\/v1alpha1/,
    ],
    [
      'twice in a folder',
      [INSTALL, INSTALL, DEPLOYMENT, HOST, PULL],
      /name "alpha" of the ImageClusterInstall is the name of another site, too/,
    ],
  ])('is refused %s', async (_, resources, expected) => {
    const { exitCode, stderr } = await validate(...resources);
    expect([exitCode, stderr]).toEqual([3, expect.stringMatching(expected)]);
  });

  it('is refused for the other flow', async () => {
    await validate(INSTALL, DEPLOYMENT, HOST, PULL);
    const { stderr } = await world.run('config-iso', 'validate', 'sites', '--flow', 'agent');
    expect(stderr).toContain('is for the flow image-based, but --flow is agent');
  });
});
