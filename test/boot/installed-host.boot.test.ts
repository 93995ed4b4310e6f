import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Digest } from '../../src/base/digest.ts';
import { buildBaseIso } from './base-iso.ts';
import { BOOT_CACHE, hasBootHost } from './boot-host.ts';
import { makeHost, makeMedium, type Host } from './installed-host.ts';
import { boot, BOOT_FAILURES } from './qemu.ts';
import { startStandInCluster, type Change, type StandInCluster } from './stand-in-cluster.ts';
import { buildUpgradeIsos, type UpgradeIso, type Upgrades } from './upgrade-isos.ts';

const PATHS = [
  ['4.21.3', '4.21.4', '4.21.6'],
  ['4.21.6', '4.21.7'],
];

const MACHINE_CONFIG = '99-start-cluster-upgrade';
const RESOURCES = [
  ...['release-signatures-4.21.4', 'release-signatures-4.21.6', 'idms-release-4.21.6'],
];
const removal = (version: string): string =>
  `machineconfigs?labelSelector=appliance-upgrade=${version}`;

/** What a boot said, and what it changed in the cluster: taken together, so that no boot sees those of another. */
type BootedHost = { readonly said: string; readonly changes: readonly string[] };

/** One host from its installation to the end of its second upgrade; each test boots it again. */
describe.skipIf(!hasBootHost())('an installed host', () => {
  let work = '';
  let medium = '';
  let component: Digest = 'sha256:';
  let host: Host;
  let upgrades: Upgrades;
  let cluster: StandInCluster;

  beforeAll(async () => {
    work = await mkdtemp(join(tmpdir(), 'installed-host-'));
    const base = await buildBaseIso(BOOT_CACHE);
    component = await makeMedium(work);
    medium = join(work, 'medium.iso');
    upgrades = await buildUpgradeIsos(work, PATHS);
    host = await makeHost({ base, work, component, upgrades: upgrades.isos });
    cluster = await startStandInCluster('4.21.3', upgrades.releases);
  }, 1_500_000);

  afterAll(async () => {
    await cluster.close();
    await rm(work, { recursive: true, force: true });
  });

  /** Ends the guest as a power cut does. */
  async function bootHost(isos: readonly string[], powerCut?: Promise<void>): Promise<BootedHost> {
    const { lines, seconds } = await boot({
      iso: host.iso,
      firmware: 'seabios',
      as: 'disk',
      server: cluster.host,
      disks: [
        { path: host.disk, readonly: false },
        ...isos.map((path) => ({ path, readonly: true })),
      ],
      until: /PROOF done/,
      fail: BOOT_FAILURES,
      ...(powerCut && { powerCut }),
    });
    const seen = lines.filter((line) => /PROOF |registry data: |cluster upgrade: /.test(line));
    console.log(`${seconds.toFixed(0)} s\n${seen.join('\n')}`);
    return { said: `${seen.join('\n')}\n`, changes: takeChanges() };
  }

  const upgradeOf = (version: string): UpgradeIso => {
    const found = upgrades.isos.find((each) => each.version === version);
    if (found === undefined) throw new Error(`no upgrade ISO of ${version}`);
    return found;
  };

  /** What changed the cluster since the last call, without the looks at what the nodes see and the recorded state. */
  function takeChanges(): string[] {
    const taken = cluster.changes
      .splice(0)
      .filter(({ request }) => !/\/(?:exec|cluster-upgrade)$/.test(request));
    return taken.map(describeChange);
  }

  function describeChange({ command, request, body }: Change): string {
    const name = request.slice(request.lastIndexOf('/') + 1);
    if (name === 'hosts') return body.includes('upgrade-cluster') ? 'pause' : 'resume';
    const image = [...upgrades.releases].find(([image]) => body.includes(image));
    return name === 'version' ? `${command} ${image?.[1] ?? body}` : name;
  }

  it('copies the registry from the appliance ISO that udev mounts, and requests an upgrade after it has the signature', async () => {
    const isos = [medium, upgradeOf('4.21.6').iso];
    const { said: first, changes } = await bootHost(isos, cluster.loseNextAnswer());
    expect(first).toContain('PROOF answers from /dev/vdc[/registry]');
    expect(first).toContain('PROOF medium: ActiveState=active ConditionResult=yes');
    expect(first).toContain('is complete: the appliance ISO is no longer needed');
    expect(first).toContain(`PROOF component ${component} is on the disk`);
    expect(first).toContain('PROOF upgrade 4.21.6: ActiveState=active ConditionResult=yes');
    expect(changes).toEqual([...[MACHINE_CONFIG, ...RESOURCES], 'oc adm upgrade 4.21.4']);
  });

  it('serves its copy without the appliance ISO, continues the upgrade after a power cut, requests each release once, and removes the MachineConfig', async () => {
    const { said: second, changes } = await bootHost([upgradeOf('4.21.6').iso]);
    expect(second).toContain('PROOF answers from /dev/vdb[/appliance-registry]');
    expect(second).toContain('PROOF medium: \n');
    expect(second).not.toContain('registry data: copying');
    expect(second).toContain(`PROOF component ${component} is on the disk`);
    expect(second).toContain('PROOF release 4.21.6 is on the disk');
    expect(changes).toEqual([
      ...['pause', 'resume'],
      ...RESOURCES,
      ...['oc adm upgrade 4.21.6', 'pause', 'resume'],
      removal('4.21.6'),
    ]);
    expect(cluster.readHistory()).toEqual(
      ['4.21.6', '4.21.4', '4.21.3'].map((version) => `Completed ${version}`),
    );
  });

  it('does not mount the appliance ISO again, is upgraded a second time, and is not set back by an old MachineConfig', async () => {
    const { said: third, changes } = await bootHost([upgradeOf('4.21.7').iso, medium]);
    expect(third).toContain('PROOF medium: ActiveState=inactive ConditionResult=no');
    expect(third).toContain('PROOF release 4.21.7 is on the disk');
    expect(changes).toEqual([
      ...[MACHINE_CONFIG, 'release-signatures-4.21.7', 'idms-release-4.21.7'],
      ...['oc adm upgrade 4.21.7', 'pause', 'resume', removal('4.21.7')],
      ...[MACHINE_CONFIG, removal('4.21.6')],
    ]);
    expect(cluster.readHistory()[0]).toBe('Completed 4.21.7');
  });
});
