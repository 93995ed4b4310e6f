import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  agentConfig,
  agentHost,
  agentInstallConfig,
  BAREMETAL,
} from '../../support/agent-sites.ts';
import { agentLiveIgnition } from '../../support/agent-medium.ts';
import { makeLiveMedium } from '../../support/config-image.ts';
import { useConfigIsoWorld } from '../../support/config-iso-fixture.ts';
import { type ConfigIsoWorld, manifestOf } from '../../support/config-iso-world.ts';
import { AS_INSTANCE, buildAgain, HOST_TABLE } from '../../support/exports.ts';
import { TEST_CERTIFICATE } from '../../support/installation-iso.ts';
import type { Tree } from '../../support/site-archives.ts';
import type { KeyRing } from '../../support/site-identity.ts';
import { requireTool } from '../../support/tools.ts';

const hasTools = ['genisoimage', 'isohybrid', 'xorriso'].map((tool) => requireTool(tool));

let keys: KeyRing;
let world: ConfigIsoWorld;
useConfigIsoWorld((made) => {
  ({ world, keys } = made);
});

type Members = Readonly<Record<string, unknown>>;

const agentTree = (install: Members, agent: Members, more: Tree = {}): Tree => ({
  'sites/site1/install-config.yaml': stringify(install),
  'sites/site1/agent-config.yaml': stringify(agent),
  'hosts.csv': HOST_TABLE,
  ...more,
});

const CLUSTER = agentInstallConfig({ masters: 3, platform: BAREMETAL });
const MASTERS = [0, 1, 2].map((index) => agentHost(index, 'master'));
const withoutNetwork = (host: Members): Members => ({ ...host, networkConfig: undefined });

/** Every member that only the overrides of install-config carry. */
const OVERRIDES = {
  metadata: { name: 'site1', namespace: 'edge' },
  capabilities: {
    baselineCapabilitySet: 'v4.11',
    additionalEnabledCapabilities: ['Ingress'],
  },
  cpuPartitioningMode: 'AllNodes',
  featureSet: 'TechPreviewNoUpgrade',
  additionalTrustBundle: TEST_CERTIFICATE,
  additionalTrustBundlePolicy: 'Always',
  imageDigestSources: [{ source: 'quay.io/a', mirrors: ['mirror.example:5000/a'] }],
};

const SINGLE = agentTree(
  agentInstallConfig(
    {},
    {
      ...OVERRIDES,
      proxy: { httpsProxy: 'http://proxy.example:3128', noProxy: '.example' },
    },
  ),
  agentConfig([agentHost(0, 'master', { rootDeviceHints: { minSizeGigabytes: 120 } })], {
    additionalNTPSources: ['192.0.2.1'],
  }),
  {
    'sites/site1/openshift/a.yaml': `${manifestOf('A')}---\n# none\n---\n${manifestOf('B')}`,
    'sites/site1/openshift/b.yml': manifestOf('C'),
  },
);

const EXTERNAL = agentTree(
  agentInstallConfig(
    {
      masters: 3,
      platform: { external: { platformName: 'oci', cloudControllerManager: 'External' } },
    },
    {
      controlPlane: { name: 'master', architecture: 'arm64', replicas: 3 },
      compute: [{ name: 'worker', architecture: 'arm64', replicas: 0 }],
    },
  ),
  agentConfig(MASTERS),
);

describe.skipIf(!hasTools.every(Boolean))(
  'config-iso export --as clusterinstance of a cluster that agents install',
  () => {
    let folder: string;
    let medium: string;
    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'exports-'));
      medium = await makeLiveMedium(folder, agentLiveIgnition());
    });
    afterAll(() => rm(folder, { recursive: true, force: true }));

    const CASES: readonly (readonly [string, Tree])[] = [
      ['three masters on bare metal', agentTree(CLUSTER, agentConfig(MASTERS))],
      ['a single node with manifests, and all that is an override', SINGLE],
      [
        'hosts without addresses, of which a person chose the rendezvous host',
        agentTree(
          CLUSTER,
          agentConfig(MASTERS.map(withoutNetwork), { rendezvousIP: '192.0.2.11' }),
        ),
      ],
      [
        'another rendezvous host than the first',
        agentTree(CLUSTER, agentConfig(MASTERS, { rendezvousIP: '192.0.2.12' })),
      ],
      ['an arm64 cluster of a platform that a vendor integrates', EXTERNAL],
    ];

    it.each(CASES)(
      'writes what gives the same image but for agent-config.yaml: %s',
      async (_, tree) => {
        world.write(tree);
        const { failed } = await world.build(keys, { sites: 'sites', out: 'out', medium });
        expect(failed).toEqual([]);
        expect(await world.run('config-iso', 'export', 'sites', ...AS_INSTANCE)).toMatchObject({
          exitCode: 0,
        });
        const once = await buildAgain({ world, keys }, { from: 'exported', to: 'once', medium });
        const pair = ['out/site1.iso', 'once/site1.iso'];
        const { stdout } = await world.run('config-iso', 'diff', ...pair, '-o', 'json');
        const { differences } = JSON.parse(stdout) as { differences: { path: string }[] };
        expect(differences.map(({ path }) => path)).toEqual([
          '/etc/assisted/manifests/agent-config.yaml',
        ]);
        const again = ['exported', ...AS_INSTANCE, '--out', 'twice'];
        expect(await world.run('config-iso', 'export', ...again)).toMatchObject({ exitCode: 0 });
        expect(await buildAgain({ world, keys }, { from: 'twice', to: 'again', medium })).toEqual(
          once,
        );
      },
    );
  },
);
