import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { useConfigIsoWorld } from '../../support/config-iso-fixture.ts';
import {
  type ConfigIsoWorld,
  inFolder,
  manifestOf,
  siteTree,
} from '../../support/config-iso-world.ts';
import { AS_INSTANCE, buildAgain, HOST_TABLE } from '../../support/exports.ts';
import type { Tree } from '../../support/site-archives.ts';
import type { KeyRing } from '../../support/site-identity.ts';

let keys: KeyRing;
let world: ConfigIsoWorld;
useConfigIsoWorld((made) => {
  ({ world, keys } = made);
});

const exportSites = async (
  ...args: readonly string[]
): Promise<{ readonly exitCode: number; readonly told: string }> => {
  const { exitCode, stderr: told } = await world.run('config-iso', 'export', 'sites', ...args);
  return { exitCode, told };
};

const ALPHA = siteTree('alpha', {
  number: 1,
  install: ['proxy: {httpProxy: "http://proxy.example:3128", noProxy: ".example"}'],
  imageBased: ['nodeLabels: {example.com/zone: "on"}'],
  manifests: {
    'a.yaml': manifestOf('A'),
    'b.yml': `# "on", \u00e9 and a tab:\t\r\n${manifestOf('B')}---\n${manifestOf('C')}  \n`,
  },
});

/** A release registry has no place in a ClusterInstance. */
const withoutRegistry = (tree: Tree): Tree =>
  Object.fromEntries(
    Object.entries(tree).map(([path, text]) => [
      path,
      text.replace('releaseRegistry: quay.io\n', ''),
    ]),
  );

describe('config-iso export --as clusterinstance of a site from a seed', () => {
  it('writes what gives the same ISO again, byte by byte', async () => {
    world.write({ ...inFolder('sites', withoutRegistry(ALPHA)), 'hosts.csv': HOST_TABLE });
    await world.build(keys, { sites: 'sites', out: 'out' });
    expect(await exportSites(...AS_INSTANCE)).toMatchObject({ exitCode: 0 });
    expect(await buildAgain({ world, keys }, { from: 'exported', to: 'other' })).toEqual(
      readFileSync(world.at('out/alpha.iso')),
    );
  });

  it('names what a ClusterInstance has no place for, where it is written', async () => {
    world.write({ ...inFolder('sites', ALPHA), 'hosts.csv': HOST_TABLE });
    const { exitCode, told } = await exportSites(...AS_INSTANCE);
    expect([exitCode, told]).toEqual([
      0,
      expect.stringMatching(
        /sites\/alpha\/image-based-config.yaml:4:\d+: releaseRegistry: warning: releaseRegistry has no place in a ClusterInstance/,
      ),
    ]);
  });

  it('refuses a host whose controller nobody names, and writes the other sites', async () => {
    world.write({
      ...inFolder('sites', ALPHA, siteTree('beta', { number: 2 })),
      'hosts.csv': HOST_TABLE,
    });
    const { exitCode, told } = await exportSites(...AS_INSTANCE);
    expect([exitCode, told]).toEqual([
      3,
      expect.stringMatching(
        /hostname: a node of a ClusterInstance has the address of its controller/,
      ),
    ]);
    expect(readdirSync(world.at('exported'))).toEqual(['alpha']);
  });
});
