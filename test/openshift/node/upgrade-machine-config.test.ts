import { parse } from 'yaml';
import { describe, expect, it } from 'vitest';
import type { File, Unit } from '../../../src/ignition/index.ts';
import {
  renderUpgradeMachineConfig,
  type CarriedHop,
} from '../../../src/openshift/node/upgrade.ts';
import { renderInstallIgnition } from '../../../src/openshift/node/install.ts';
import { bootstrapInput } from '../../support/node-configs.ts';
import { hasThrowAwayRoot, runInThrowAwayRoot } from '../../support/throw-away-root.ts';
import { commandOf, hop, imageOf, OC, PREPARE } from '../../support/upgrade-cluster.ts';

const runs = describe.skipIf(!hasThrowAwayRoot());

const ONE = [hop('4.22.3', ['4.21.9', '4.22.0', '4.22.1'], 'a')];
const RESOURCES = 'apiVersion: v1\nkind: ConfigMap\n';

type MachineConfig = {
  metadata: { name: string; labels: Record<string, string> };
  spec: {
    config: {
      ignition: { version: string };
      storage: { files: File[] };
      systemd: { units: Unit[] };
    };
  };
};
const render = (hops: readonly CarriedHop[], resources = RESOURCES): MachineConfig =>
  parse(
    renderUpgradeMachineConfig({ hops, arch: 'x86_64', resources, acknowledged: [] }),
  ) as MachineConfig;

const drive = (script: string, hops = ONE) => {
  const { storage, systemd } = render(hops).spec.config;
  const files = [OC, commandOf(systemd.units[0]), ...storage.files];
  return runInThrowAwayRoot(files, `${PREPARE}\n${script}`);
};

const APPLY = 'oc apply --filename /etc/assisted/upgrade/resources.yaml';
const request = (letter: string): string =>
  `oc adm upgrade --allow-explicit-upgrade --to-image ${imageOf(letter)}`;
const health = (change: string): string =>
  `oc annotate machinehealthchecks.machine.openshift.io ours --namespace openshift-machine-api ${change}`;
const DELETE = 'oc delete machineconfig --selector appliance-upgrade=4.22.3 --ignore-not-found';

describe('renderUpgradeMachineConfig', () => {
  it('gives control plane hosts one enabled unit, which does not depend on node zero', () => {
    const { metadata, spec } = render(ONE);
    expect(metadata).toEqual({
      name: '99-start-cluster-upgrade',
      labels: {
        'machineconfiguration.openshift.io/role': 'master',
        'appliance-upgrade': '4.22.3',
      },
    });
    expect(spec.config.ignition.version).toBe('3.2.0');
    expect(spec.config.systemd.units.map(({ name, enabled }) => [name, enabled])).toEqual([
      ['upgrade-cluster.service', true],
    ]);
    expect(spec.config.systemd.units[0]?.contents).not.toContain('node0');
  });

  it('refuses an upgrade without releases as a bug of its caller', () => {
    expect(() => render([])).toThrow(TypeError);
  });
});

runs('the MachineConfig of an upgrade ISO', () => {
  it('applies the signature first, requests the upgrade once, and pauses the health checks when it begins', async () => {
    const { stdout, stderr } = await drive(
      `look; cmp applied /etc/assisted/upgrade/resources.yaml; look; look
      printf 'Partial 4.22.3\\nCompleted 4.22.1\\n' >history; look; look`,
    );
    expect(stderr).toBe('');
    expect(stdout.trimEnd().split('\n')).toEqual([
      'cluster upgrade: the signature and the resources of 4.22.3 are applied',
      '[75]',
      APPLY,
      'cluster upgrade: the upgrade to 4.22.3 is requested',
      '[75]',
      request('a'),
      'cluster upgrade: the cluster has not begun the upgrade to 4.22.3: Retrieving payload',
      '[75]',
      'cluster upgrade: waiting for the end of the upgrade to 4.22.3',
      '[75]',
      health('cluster.x-k8s.io/paused=upgrade-cluster'),
      'cluster upgrade: waiting for the end of the upgrade to 4.22.3',
      '[75]',
    ]);
  });

  it('deletes itself when the upgrade is completed, and leaves a health check that was paused before', async () => {
    const { stdout } = await drive(`
      printf 'Completed 4.22.3\\nCompleted 4.22.1\\n' >history
      printf 'ours upgrade-cluster\\ntheirs maintenance\\n' >health
      look; ls machine-config 2>&1`);
    expect(stdout).toContain('done: the cluster has been upgraded to 4.22.3\n[0]\n');
    expect(stdout).toContain(`${health('cluster.x-k8s.io/paused-')}\n${DELETE}\n`);
    expect(stdout).toContain("cannot access 'machine-config'");
    expect(stdout).not.toContain('annotate machinehealthchecks.machine.openshift.io theirs');
  });

  it('does not request the upgrade again when the host reboots in the middle of it', async () => {
    const { stdout } = await drive(`
      look >/dev/null; look >/dev/null; reboot; look
      printf 'Partial 4.22.3\\nCompleted 4.22.1\\n' >history
      reboot; look
      printf 'Completed 4.22.3\\nCompleted 4.22.1\\n' >history
      look`);
    expect(stdout.trimEnd().split('\n')).toEqual([
      'cluster upgrade: the cluster has not begun the upgrade to 4.22.3: Retrieving payload',
      '[75]',
      'cluster upgrade: waiting for the end of the upgrade to 4.22.3',
      '[75]',
      health('cluster.x-k8s.io/paused=upgrade-cluster'),
      'cluster upgrade: done: the cluster has been upgraded to 4.22.3',
      '[0]',
      health('cluster.x-k8s.io/paused-'),
      DELETE,
    ]);
  });

  it.each([
    ['Completed 4.22.10', 'refused: the cluster has 4.22.10, which is later than 4.22.3', 78],
    ['Partial 4.23.0', 'refused: the cluster has 4.23.0, which is later than 4.22.3', 78],
    [
      'Completed 4.22.10\\nCompleted 4.22.3\\nCompleted 4.22.1',
      'done: the cluster has been upgraded to 4.22.3',
      0,
    ],
  ])('never moves a cluster with the history %s back', async (history, message, code) => {
    const { stdout } = await drive(`printf '${history}\\n' >history; look`);
    expect(stdout).toBe(`cluster upgrade: ${message}\n[${code}]\n${DELETE}\n`);
  });

  it('knows that a pre-release comes before its release', async () => {
    const { stdout } = await drive(`echo Completed 4.22.3-rc.10 >history; look`, [
      hop('4.22.3-rc.2', ['4.22.1'], 'a'),
    ]);
    expect(stdout).toContain(
      'refused: the cluster has 4.22.3-rc.10, which is later than 4.22.3-rc.2',
    );
    const other = await drive(`echo Completed 4.22.3-rc.10 >history; look`);
    expect(other.stdout).toContain('from which there is no update to 4.22.3 on the ISO');
  });

  it('refuses a cluster of a version that it was not made for, and requests nothing', async () => {
    const { stdout } = await drive(`echo Completed 4.20.8 >history; look`);
    expect(stdout).toBe(
      'cluster upgrade: refused: the cluster has 4.20.8, from which there is no update to 4.22.3 on the ISO\n' +
        `[78]\n${DELETE}\n`,
    );
  });

  it('refuses hosts of another architecture', async () => {
    const { stdout } = await drive(`
      printf '#!/bin/sh\\necho s390x\\n' >/usr/local/bin/uname; chmod 755 /usr/local/bin/uname
      look`);
    expect(stdout).toContain('refused: this host is s390x, 4.22.3 is for x86_64\n[78]\n');
  });

  it('lists the nodes that cannot read the ISO, also without a running daemon, and changes nothing', async () => {
    const { stdout } = await drive(`
      echo master-0 >attached; sed -i /worker/d pods; look
      cp nodes pods; cp nodes attached; look`);
    expect(stdout).toBe(
      'cluster upgrade: attach the upgrade ISO to these nodes, where it cannot be seen: master-1 worker-0\n' +
        `[75]\ncluster upgrade: the signature and the resources of 4.22.3 are applied\n[75]\n${APPLY}\n`,
    );
  });

  it.each([
    ['echo False >available', 'waiting until the cluster is available'],
    ['echo False >updated', 'waiting until every control plane host has its configuration'],
    ['echo Partial 4.22.1 >history', 'waiting for the end of the upgrade to 4.22.1'],
    [': >history', 'the cluster has no version yet'],
  ])('changes nothing after %s', async (state, message) => {
    const { stdout } = await drive(`${state}; look`);
    expect(stdout).toBe(`cluster upgrade: ${message}\n[75]\n`);
  });

  it('fails, to be run again, when the API server does not answer', async () => {
    const { stdout } = await drive(`rm history; look 2>/dev/null`);
    expect(stdout).toBe('[1]\n');
  });

  it('works on a cluster without machine health checks', async () => {
    const { stdout } = await drive(`: >health-kind; rm health; look >/dev/null; look`);
    expect(stdout).toContain(`[75]\n${request('a')}\n`);
  });

  it('runs only on the first control plane node by name, and reports that once on others', async () => {
    const { stdout } = await drive(`
      printf 'master-9 %s\\nmaster-10 0123-other\\n' "$own" >masters
      look; look
      printf 'master-9 %s\\nmaster-8 4567-other\\n' "$own" >masters; look`);
    expect(stdout).toBe(
      'cluster upgrade: master-10 upgrades the cluster\n[75]\n[75]\n' +
        'cluster upgrade: master-8 upgrades the cluster\n[75]\n',
    );
  });

  it('continues on the next host if the host that began was removed from the cluster', async () => {
    const { stdout } = await drive(`
      printf 'master-1 0123-other\\nmaster-2 %s\\n' "$own" >masters; look
      sed -i /master-1/d masters nodes pods; look >/dev/null; look`);
    expect(stdout).toContain('cluster upgrade: master-1 upgrades the cluster\n[75]\n');
    expect(stdout).toContain(`${request('a')}\n`);
  });

  it('waits on a host whose boot the cluster has not recorded yet', async () => {
    const { stdout } = await drive(`printf 'master-0 before-the-reboot\\n' >masters; look`);
    expect(stdout).toBe(
      'cluster upgrade: waiting until this host is a control plane node of the cluster\n[75]\n',
    );
  });

  it('upgrades through a path of releases one after the other', async () => {
    const path = [hop('4.21.12', ['4.21.9'], 'b'), hop('4.22.3', ['4.21.12'], 'a')];
    const { stdout } = await drive(
      `echo Completed 4.21.9 >history; look >/dev/null; look
      printf 'Completed 4.21.12\\nCompleted 4.21.9\\n' >history; look`,
      path,
    );
    expect(stdout).toContain(`[75]\n${request('b')}\n`);
    expect(stdout).toContain(`[75]\n${request('a')}\n`);
  });

  it('skips the signature only for a release without one', async () => {
    const { stdout } = await drive(
      `look >/dev/null; look`,
      ONE.map((one) => ({ ...one, isSigned: false })),
    );
    expect(stdout).toContain('4.22.3 has no signature, so the cluster checks none\n');
    expect(stdout).toContain(`${request('a')} --force\n`);
  });

  it('does not touch the MachineConfig of a second, later upgrade', async () => {
    const { stdout } = await drive(`
      printf 'Completed 4.22.3\\nCompleted 4.22.1\\n' >history
      echo appliance-upgrade=4.22.5 >machine-config
      look >/dev/null; cat machine-config`);
    expect(stdout).toBe('appliance-upgrade=4.22.5\n');
  });

  it('upgrades a second time from where the first upgrade ended', async () => {
    const { stdout } = await drive(
      `printf 'Completed 4.22.3\\nCompleted 4.22.1\\n' >history; echo ${imageOf('a')} >desired
      look >/dev/null; look`,
      [hop('4.22.5', ['4.22.3'], 'c')],
    );
    expect(stdout).toContain(request('c'));
  });
});

/** The MachineConfig of openshift/appliance on a host of ours, and the ISO that it was made for. */
const driveReference = (script: string, version = '4.22.3') => {
  const install = renderInstallIgnition(bootstrapInput);
  const unit = install.systemd?.units?.find(
    ({ name }) => name === 'start-cluster-upgrade@.service',
  );
  const prepare = `${PREPARE}
    echo start-cluster-upgrade@${version}.service >machine-config
    mkdir -p /media/upgrade
    printf '%s\\n' RELEASE_IMAGE=${imageOf('a')} RELEASE_VERSION=${version} >/media/upgrade/release.env`;
  return runInThrowAwayRoot(
    [...(install.storage?.files ?? []), OC, commandOf(unit, version)],
    `${prepare}\n${script}`,
  );
};

runs('the MachineConfig of openshift/appliance, on hosts of ours', () => {
  const DELETE_BY_NAME = 'oc delete machineconfig 99-start-cluster-upgrade --ignore-not-found';

  it('finds the unit that it enables', () => {
    const { systemd } = renderInstallIgnition(bootstrapInput);
    const unit = systemd?.units?.find(({ name }) => name === 'start-cluster-upgrade@.service');
    expect(unit?.enabled).toBeUndefined();
    expect(unit?.contents).toContain('\nWantedBy=multi-user.target\n');
  });

  it('requests the release of the ISO once and without force, and is deleted at the end', async () => {
    const { stdout, stderr } = await driveReference(`
      look; look
      rm -r /media/upgrade; reboot
      printf 'Completed 4.22.3\\nCompleted 4.22.1\\n' >history; look; ls machine-config 2>&1`);
    expect(stderr).toBe('');
    expect(stdout.trimEnd().split('\n')).toEqual([
      'cluster upgrade: the upgrade to 4.22.3 is requested',
      '[75]',
      request('a'),
      'cluster upgrade: the cluster has not begun the upgrade to 4.22.3: Retrieving payload',
      '[75]',
      'cluster upgrade: done: the cluster has been upgraded to 4.22.3',
      '[0]',
      DELETE_BY_NAME,
      "ls: cannot access 'machine-config': No such file or directory",
    ]);
  });

  it.each([
    ['Completed 4.22.10\\nCompleted 4.22.3', 'done: the cluster has been upgraded to 4.22.3', 0],
    ['Completed 4.22.10', 'refused: the cluster has 4.22.10, which is later than 4.22.3', 78],
    [
      'Completed 4.20.9',
      'refused: the cluster has 4.20.9, from which there is no update to 4.22.3 on the ISO',
      78,
    ],
  ])('requests nothing on a cluster with the history %s, and is deleted', async (...given) => {
    const [history, message, code] = given;
    const { stdout } = await driveReference(`printf '${history}\\n' >history; look`);
    expect(stdout).toBe(`cluster upgrade: ${message}\n[${code}]\n${DELETE_BY_NAME}\n`);
  });

  it('is not deleted if it belongs to a later upgrade', async () => {
    const { stdout } = await driveReference(`
      echo start-cluster-upgrade@4.22.5.service >machine-config
      printf 'Completed 4.22.3\\n' >history; look; cat machine-config`);
    expect(stdout).toBe(
      'cluster upgrade: done: the cluster has been upgraded to 4.22.3\n[0]\n' +
        'start-cluster-upgrade@4.22.5.service\n',
    );
  });

  it.each([
    ['rm /media/upgrade/release.env', 'attach the upgrade ISO of 4.22.3 to this host'],
    [
      'sed -i s/VERSION=.*/VERSION=4.22.2/ /media/upgrade/release.env',
      'the attached upgrade ISO has 4.22.2: attach that of 4.22.3',
    ],
    [
      'sed -i s/IMAGE=.*/IMAGE=quay.io:4.22.3/ /media/upgrade/release.env',
      'the upgrade ISO names its release "quay.io:4.22.3", not by its digest: attach another one',
    ],
  ])('changes nothing after %s', async (change, message) => {
    const { stdout } = await driveReference(`${change}; look`);
    expect(stdout).toBe(`cluster upgrade: ${message}\n[75]\n`);
  });
});
