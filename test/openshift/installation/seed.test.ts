import { describe, expect, it } from 'vitest';
import {
  findSeedInfo,
  listSeedDifferences,
  parseSeedCluster,
  requireSeedVersion,
} from '../../../src/openshift/installation/seed.ts';

const INFO = '{"seed_cluster_ocp_version":"4.18.3","base_domain":"a.example"}';

describe('a seed', () => {
  it('tells the version of its cluster in a label of its image', () => {
    const Labels = { 'com.openshift.lifecycle-agent.seed_cluster_info': INFO };
    expect(findSeedInfo(JSON.stringify({ config: { Labels } }))).toBe(INFO);
    expect(findSeedInfo('{"config":{}}')).toBeUndefined();
    expect(findSeedInfo('no JSON')).toBeUndefined();
  });

  it('is described by its version, its addresses, its networks and its proxy', () => {
    const bare = { version: '', nodeAddresses: [], machineNetworks: [], hasProxy: false };
    expect(parseSeedCluster(INFO)).toEqual({ ...bare, version: '4.18.3' });
    expect(parseSeedCluster('{}')).toEqual(bare);
    expect(['[]', 'no JSON', '{"node_ips":1}'].map(parseSeedCluster)).toEqual(
      Array.from({ length: 3 }),
    );
    expect(parseSeedCluster('{"node_ip":"10.0.0.5","has_proxy":true}')).toEqual({
      ...bare,
      nodeAddresses: ['10.0.0.5'],
      hasProxy: true,
    });
    const dual = '"node_ip":"10.0.0.5","node_ips":["10.0.0.5","fd00::5"]';
    expect(
      parseSeedCluster(`{${dual},"machine_networks":["10.0.0.0/24","fd00::/64"]}`),
    ).toMatchObject({
      nodeAddresses: ['10.0.0.5', 'fd00::5'],
      machineNetworks: ['10.0.0.0/24', 'fd00::/64'],
    });
  });

  it('is refused for another seedVersion, to the letter', () => {
    requireSeedVersion('4.18.3', '4.18.3');
    requireSeedVersion('4.18.3', '');
    expect(() => {
      requireSeedVersion('v4.18.3', '4.18.3');
    }).toThrow(expect.objectContaining({ code: 'installation.seed-version', found: '4.18.3' }));
  });

  it.each([
    ['rhcos-418.94.202410090804-0', '4.18.3', '4.18.3', []],
    ['rhcos-418.94.202410090804-0', '4.18.3', undefined, []],
    ['fedora-coreos-42.20250410.3.1', '4.18.3', undefined, []],
    ['rhcos-9.6.20250523-0', '4.21.3', '4.21.3+multi', []],
    ['rhcos-9.6.20250523-0', 'latest', undefined, []],
    ['rhcos-10.1.20260301-0', '5.0.1', '5.0.1', []],
    ['rhcos-9.6.20250523-0', '5.0.1', '5.0.1', []],
    [
      'rhcos-10.1.20260301-0',
      '4.22.1',
      '5.0.1',
      [
        'the release is 5.0.1, but the seed is 4.22.1',
        'the live ISO is rhel-10, but seeds of OpenShift 4 are rhel-9',
      ],
    ],
    [
      'rhcos-416.94.202405221225-0',
      '4.18.3',
      undefined,
      ['the live ISO is RHCOS of OpenShift 4.16, but the seed is 4.18.3'],
    ],
  ])('installed by %s: seed %s, release %s', (...row) => {
    const [systemName, seedVersion, release, differences] = row;
    const companions = { systemName, seedVersion, ...(release && { releaseVersion: release }) };
    expect(listSeedDifferences(companions)).toEqual(differences);
  });
});
