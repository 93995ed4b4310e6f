import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { PlannedHosts } from '../../src/media/rehearse/site.ts';
import { readPlannedHosts } from '../../src/sites/planned-hosts.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sealift-planned-'));
});
afterEach(() => rm(directory, { recursive: true }));

const GB = 10 ** 9;

async function read(
  install: readonly string[],
  agent?: readonly string[],
): Promise<readonly PlannedHosts[]> {
  await writeFile(join(directory, 'install-config.yaml'), install.join('\n'));
  if (agent) await writeFile(join(directory, 'agent-config.yaml'), agent.join('\n'));
  return readPlannedHosts(directory, 'site');
}

const host = (role: string | undefined, size?: number): string =>
  `  - {hostname: a, ${role === undefined ? '' : `role: ${role}, `}rootDeviceHints: {${
    size === undefined ? 'deviceName: /dev/sda' : `minSizeGigabytes: ${size}`
  }}}`;

describe('the hosts of a site', () => {
  it('are the replicas of its pools, three where none are written', async () => {
    expect(await read(['platform: {none: {}}'])).toEqual([
      { host: 'control plane', count: 3 },
      { host: 'worker', count: 3 },
    ]);
    const pools = [
      'controlPlane: {replicas: 2}',
      'arbiter: {replicas: 1}',
      'compute: [{name: worker, replicas: 2}, {name: edge, replicas: 1}]',
    ];
    expect(await read(pools)).toEqual([
      { host: 'control plane', count: 2 },
      { host: 'arbiter', count: 1 },
      { host: 'worker', count: 3 },
    ]);
  });

  it('are none of a pool of arbiters, or of the pool edge, that names no replicas', async () => {
    const pools = ['arbiter: {name: arbiter}', 'compute: [{name: worker}, {name: edge}]'];
    expect(await read(pools)).toEqual([
      { host: 'control plane', count: 3 },
      { host: 'worker', count: 3 },
    ]);
  });

  it('are a single node without workers', async () => {
    const install = ['controlPlane: {replicas: 1}', 'compute: [{replicas: 0}]'];
    expect(await read(install, ['hosts:', host('master', 240)])).toEqual([
      { host: 'single node', count: 1, minDisk: 240 * GB },
    ]);
  });

  it('have the smallest disk that a host of their role may have, where each host asks for a size', async () => {
    const install = ['controlPlane: {replicas: 3}', 'compute: [{replicas: 1}]'];
    const masters = [host('master', 300), host('master', 250), host('master', 300)];
    const found = await read(install, ['hosts:', ...masters, host('worker')]);
    expect(found).toEqual([
      { host: 'control plane', count: 3, minDisk: 250 * GB },
      { host: 'worker', count: 1 },
    ]);
    const few = await read(install, ['hosts:', ...masters.slice(1), host('worker', 90)]);
    expect(few.map(({ minDisk }) => minDisk)).toEqual([undefined, 90 * GB]);
    const any = await read(install, ['hosts:', ...masters, host(undefined, 60)]);
    expect(any.map(({ minDisk }) => minDisk)).toEqual([60 * GB, 60 * GB]);
  });

  it('are read from the file itself, too, with agent-config.yaml beside it', async () => {
    await read(
      ['compute: [{replicas: 0}]'],
      ['hosts:', ...Array<string>(3).fill(host('master', 120))],
    );
    const file = join(directory, 'install-config.yaml');
    expect(readPlannedHosts(file, 'site/install-config.yaml')).toEqual([
      { host: 'control plane', count: 3, minDisk: 120 * GB },
    ]);
  });

  it('are refused with file and line if they are not numbers, or if there is no file', async () => {
    await expect(read(['controlPlane:', '  replicas: many'])).rejects.toMatchObject({
      problems: [{ file: 'site/install-config.yaml', line: 2, path: 'controlPlane.replicas' }],
    });
    expect(() => readPlannedHosts(join(directory, 'gone'), 'gone')).toThrow(/gone/);
  });
});
