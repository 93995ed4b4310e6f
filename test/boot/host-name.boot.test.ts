import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { renderBootstrapIgnition } from '../../src/openshift/node/bootstrap.ts';
import { configImageMembers, makeConfigImage, packConfigArchive } from '../support/config-image.ts';
import { bootstrapInput } from '../support/node-configs.ts';
import { buildBaseIso, DEFAULT_KARGS } from './base-iso.ts';
import { BOOT_CACHE, hasBootHost } from './boot-host.ts';
import { fileEntry, graft } from './graft.ts';
import { boot, BOOT_FAILURES } from './qemu.ts';

/** QEMU's own for the first interface. */
const ADDRESS = '52:54:00:12:34:56';

/** The installer's part of a medium, in its order: a name is set early, the image is loaded late. */
const INSTALLER = {
  ignition: { version: '3.2.0' },
  storage: {
    files: [
      fileEntry(
        '/etc/udev/rules.d/80-agent-config-image.rules',
        0o644,
        'SUBSYSTEM=="block", ACTION=="add|change", ENV{ID_FS_LABEL}=="agent_configimage", TAG+="systemd", ENV{SYSTEMD_WANTS}+="load-config-iso@%k.service"\n',
      ),
      fileEntry(
        '/usr/local/bin/set-hostname.sh',
        0o755,
        `#!/bin/bash
names=(/etc/assisted/hostnames/*)
[[ -e "\${names[0]}" ]] && hostnamectl set-hostname "$(<"\${names[0]}")"
echo "PROOF early name $(</proc/sys/kernel/hostname)" >/dev/console
`,
      ),
      fileEntry(
        '/usr/local/bin/load-config-iso.sh',
        0o755,
        `#!/bin/bash
set -euo pipefail
mkdir -p /media/config-image
mount -o ro "/dev/$1" /media/config-image
for members in '/etc/assisted/hostnames/*' /etc/assisted/rendezvous-host.env; do
  zcat /media/config-image/config.gz | cpio --quiet -idu "$members"
done
echo "PROOF loaded $1" >/dev/console
`,
      ),
      fileEntry(
        '/usr/local/bin/start-agent.sh',
        0o755,
        '#!/bin/bash\necho "PROOF registers as $(</proc/sys/kernel/hostname) at $SERVICE_BASE_URL" >/dev/console\n',
      ),
    ],
  },
  systemd: {
    units: [
      {
        name: 'set-hostname.service',
        enabled: true,
        contents: `[Unit]
After=local-fs.target
Before=network.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/bin/set-hostname.sh
[Install]
WantedBy=multi-user.target
`,
      },
      {
        name: 'load-config-iso@.service',
        contents: `[Unit]
Wants=network-online.target
After=network-online.target set-hostname.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/bin/load-config-iso.sh %i
`,
      },
      {
        name: 'agent.service',
        enabled: true,
        contents: `[Unit]
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0
[Service]
Type=oneshot
RemainAfterExit=yes
Restart=on-failure
RestartSec=3
EnvironmentFile=/etc/assisted/rendezvous-host.env
ExecStart=/usr/local/bin/start-agent.sh
[Install]
WantedBy=multi-user.target
`,
      },
    ],
  },
};

describe.skipIf(!hasBootHost())('a live system with a configuration image on a second disk', () => {
  let work = '';
  beforeAll(async () => {
    work = await mkdtemp(join(tmpdir(), 'host-name-'));
  });
  afterAll(() => rm(work, { recursive: true, force: true }));

  it('registers with the name that the image has for its interface', async () => {
    const members = {
      '/etc/assisted/hostnames/52:54:00:bb:00:01': 'another-host',
      [`/etc/assisted/hostnames/${ADDRESS}`]: 'master-7',
      ...configImageMembers(),
    };
    const image = await makeConfigImage(work, await packConfigArchive(work, members), {
      name: 'agentconfig.noarch.iso',
    });
    const iso = join(work, 'live.iso');
    await graft({
      base: await buildBaseIso(BOOT_CACHE),
      tree: join(work, 'tree'),
      iso,
      kargs: DEFAULT_KARGS,
      user: INSTALLER,
      bootstrap: renderBootstrapIgnition(bootstrapInput),
    });
    const { lines, seconds } = await boot({
      iso,
      firmware: 'seabios',
      as: 'disk',
      timeoutMs: 900_000,
      disks: [{ path: image, readonly: true }],
      until: /PROOF registers/,
      fail: BOOT_FAILURES,
    });
    console.log(`${seconds.toFixed(0)} s`);
    expect(lines.filter((line) => line.startsWith('PROOF '))).toEqual([
      'PROOF early name live',
      'PROOF loaded vdb',
      'PROOF registers as master-7 at http://192.168.111.80:8090/',
    ]);
  });
});
