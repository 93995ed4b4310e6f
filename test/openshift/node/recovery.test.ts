import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { decodeFileContent, textFile, type IgnitionConfig } from '../../../src/ignition/index.ts';
import { renderBootstrapIgnition } from '../../../src/openshift/node/bootstrap.ts';
import { renderInstallIgnition } from '../../../src/openshift/node/install.ts';
import { renderDiskMenu } from '../../../src/openshift/node/recovery.ts';
import { bootstrapInput } from '../../support/node-configs.ts';
import { hasThrowAwayRoot, runInThrowAwayRoot } from '../../support/throw-away-root.ts';
import { requireTool } from '../../support/tools.ts';

const onPartition = {
  ...bootstrapInput,
  registryOn: 'partition',
  menuKargs: ['fips=1', 'nosmt'],
} as const;

const textOf = ({ storage }: IgnitionConfig, path: string): string =>
  (storage?.files ?? [])
    .filter((file) => file.path === path)
    .map((file) => decodeFileContent(file)?.toString('utf8'))
    .join('');

describe('the menu of a disk', () => {
  it('starts the installer by itself as it leaves the factory', () => {
    const menu = renderDiskMenu({ stage: 'factory' });
    expect(menu).toContain("set default='Agent-Based Installer'\n");
    expect(menu).toContain("menuentry 'Agent-Based Installer' {");
  });

  it('has no default on installed hosts, which must not install themselves again', () => {
    const menu = renderDiskMenu({ stage: 'installed', kargs: ['fips=1'] });
    expect(menu).not.toContain('default');
    expect(menu).toContain("menuentry 'Recovery: Agent-Based Installer (Reinstall Cluster)' {");
    expect(menu).toMatch(/ignition\.platform\.id=metal fips=1$/m);
  });

  it.skipIf(!requireTool('grub-script-check'))('is a script of GRUB', () => {
    const folder = mkdtempSync(join(tmpdir(), 'menu-'));
    try {
      for (const stage of ['factory', 'installed'] as const) {
        const path = join(folder, stage);
        writeFileSync(path, `# before\n${renderDiskMenu({ stage })}`);
        execFileSync('grub-script-check', [path]);
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

/** Stand-ins for programs that need a real disk; `ROOT_BLOCKS` is the size of its partition root. */
const DISK = [
  [
    'lsblk',
    `case "$*" in
      *PKNAME*) echo vda ;;
      *) printf '/dev/vda\\n'
        n=0; for label in BIOS-BOOT EFI-SYSTEM boot root agentboot agentdata; do
          n=$((n + 1)); echo "/dev/vda$n $label"; done ;;
    esac`,
  ],
  ['findmnt', 'echo /dev/vda5'],
  [
    'blockdev',
    `case "$2" in
      /dev/vda1) echo 2048 ;; /dev/vda2) echo 260096 ;; /dev/vda3) echo 786432 ;;
      /dev/vda4) echo "$ROOT_BLOCKS" ;;
    esac`,
  ],
  ['losetup', 'echo /dev/loop7'],
  [
    'cat',
    `case "$1" in
      */vda1/start) echo 2048 ;; */vda2/start) echo 4096 ;; */vda3/start) echo 264192 ;;
      *) exec /usr/bin/cat "$@" ;;
    esac`,
  ],
  ['dmsetup', '[[ "$1" == info ]] && exit 1; echo "$*" >/tmp/made; /usr/bin/cat >>/tmp/made'],
].map(([name, body]) =>
  textFile(`/usr/local/bin/${name ?? ''}`, `#!/usr/bin/env bash\n${body ?? ''}\n`, 0o755),
);

describe.skipIf(!hasThrowAwayRoot())('the device that the installer sees', () => {
  const script = (renderBootstrapIgnition(onPartition).storage?.files ?? []).filter(({ path }) =>
    path.endsWith('/create-virtual-device.sh'),
  );

  it('has the boot partitions at their places, 8 GiB of root, and tables of its own', async () => {
    const { stdout, stderr, exitCode } = await runInThrowAwayRoot(
      [...script, ...DISK],
      `export ROOT_BLOCKS=20000000 SCRATCH=/tmp/scratch
      create-virtual-device.sh; /usr/bin/cat /tmp/made; stat -c %s /tmp/scratch`,
    );
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(stdout.split('\n').slice(1)).toEqual([
      'create agent',
      '0 2048 linear /dev/loop7 0',
      '2048 2048 linear /dev/vda1 0',
      '4096 260096 linear /dev/vda2 0',
      '264192 786432 linear /dev/vda3 0',
      '1050624 16777216 linear /dev/vda4 0',
      '1048576',
      '',
    ]);
  });

  it('is not made of a compact disk, whose root partition is too small', async () => {
    const { stderr, exitCode } = await runInThrowAwayRoot(
      [...script, ...DISK],
      'ROOT_BLOCKS=128 create-virtual-device.sh',
    );
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining('less than 8 GiB')]);
  });
});

describe('hosts that are installed from a disk image', () => {
  const config = renderInstallIgnition(onPartition);

  it('get the recovery entry with the kernel arguments of the medium', () => {
    const entry = textOf(config, '/etc/assisted/user.cfg');
    expect(entry).toBe(renderDiskMenu({ stage: 'installed', kargs: ['fips=1', 'nosmt'] }));
    const units = (config.systemd?.units ?? []).filter(({ enabled }) => enabled);
    expect(units.map(({ name }) => name)).toContain('add-grub-menuitem.service');
  });

  it('take the registry from the partition, in the live system and afterwards', () => {
    const script = '/usr/local/bin/mount-agent-data.sh';
    for (const one of [config, renderBootstrapIgnition(onPartition)]) {
      expect(textOf(one, script)).toContain("readonly carrier='partition'");
    }
    expect(textOf(renderBootstrapIgnition(bootstrapInput), script)).toContain(
      "readonly carrier='iso'",
    );
  });

  it('differ from hosts that are installed from an ISO, which get no entry', () => {
    const install = renderInstallIgnition(bootstrapInput);
    expect(textOf(install, '/etc/assisted/user.cfg')).toBe('');
    const names = (install.systemd?.units ?? []).map(({ name }) => name);
    expect(names).not.toContain('add-grub-menuitem.service');
  });

  it.skipIf(!hasThrowAwayRoot())('append the entry to their menu once', async () => {
    const { stdout, exitCode } = await runInThrowAwayRoot(
      (config.storage?.files ?? []).filter(({ path }) => /add-grub|user\.cfg/.test(path)),
      `mkdir -p /boot; mount -t tmpfs tmpfs /boot; mkdir -p /boot/grub2
      echo '# of CoreOS' >/boot/grub2/grub.cfg; mount -o remount,ro /boot
      add-grub-menuitem.sh
      head -n 1 /boot/grub2/grub.cfg; grep -c menuentry /boot/grub2/grub.cfg
      ls /boot/grub2 /etc/assisted`,
    );
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/# of CoreOS\n1\n\/boot\/grub2:\ngrub\.cfg\n\n\/etc\/assisted:\n$/);
  });
});
