import { describe, expect, it } from 'vitest';
import type { ConfigImageCheck } from '../../../src/media/config-image.ts';
import { listConfigured, planNeeds, rehearseSite } from '../../../src/media/rehearse/site.ts';
import { listHostNeeds } from '../../../src/openshift/node/host-needs.ts';

const GB = 10 ** 9;
const NEEDS = listHostNeeds({ minor: '4.22', copied: 180 * GB, hasInternalRegistry: false });

describe('the needs of hosts', () => {
  it('are those of the hosts that a site has, with their number', () => {
    const site = [
      { host: 'control plane', count: 3 },
      { host: 'worker', count: 2 },
    ] as const;
    expect(planNeeds(NEEDS, site).map(({ host, count }) => [host, count])).toEqual([
      ['control plane', 3],
      ['worker', 2],
    ]);
    expect(planNeeds(NEEDS, [])).toEqual(NEEDS);
  });

  it.each([
    [220 * GB, 'will', 'the site takes disks from 220 GB on'],
    [219 * GB, 'unknown', 'the site takes disks from 219 GB on'],
    [undefined, 'unknown', 'the site does not ask each host for a size (minSizeGigabytes)'],
  ])('are held against a smallest disk of %s bytes', (minDisk, outcome, reason) => {
    const site = [{ host: 'worker', count: 2, ...(minDisk !== undefined && { minDisk }) }] as const;
    expect(rehearseSite(NEEDS, site)).toEqual([
      { part: 'hosts', name: 'the disk of each worker has 220 GB', outcome, reason },
    ]);
  });

  it('fail for a site without a control plane', () => {
    expect(rehearseSite(NEEDS, [{ host: 'control plane', count: 0 }])).toMatchObject([
      { outcome: 'will-not', name: 'the cluster gets a control plane' },
    ]);
  });

  it('are not played on a medium that installs no cluster', () => {
    expect(rehearseSite([], [{ host: 'worker', count: 2 }])).toEqual([]);
  });
});

describe('the hosts of a configuration image', () => {
  const check = (masters: number, arbiters: number, workers: number) =>
    ({ cluster: { nodes: { masters, arbiters, workers } } }) as ConfigImageCheck;

  it('are its nodes, without sizes of disks', () => {
    expect(listConfigured(check(2, 1, 0))).toEqual([
      { host: 'control plane', count: 2 },
      { host: 'arbiter', count: 1 },
    ]);
    expect(listConfigured(check(1, 0, 0))).toEqual([{ host: 'single node', count: 1 }]);
    expect(listConfigured(undefined)).toEqual([]);
  });
});
