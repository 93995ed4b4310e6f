import { readFileSync } from 'node:fs';
import type { IgnitionConfig } from '../../src/ignition/index.ts';
import { CONFIG_IMAGE_FILES, formatImageSet, IMAGE_SET_PATH } from '../support/config-image.ts';
import { agentLiveIgnition } from '../support/agent-medium.ts';
import { fileEntry } from './graft.ts';

/*
 * Stand-ins for the parts of an installer that load a configuration image, in its order: a name is set early,
 * the image is loaded late. The rule of udev names the unit by the path of the device, as the real one does.
 */

/** The script of a release, with the same name: `JUDGED_LOADER=FILE`. Without it, a stand-in. */
export const JUDGED_LOADER = process.env['JUDGED_LOADER'];

const STAND_IN = `#!/bin/bash
set -euo pipefail
say() { echo "PROOF $*" >/dev/console; }
device=$1
mounted=/media/config-image
systemd-mount --no-block --automount=yes --collect "$device" "$mounted"
until [[ -f $mounted/config.gz ]]; do sleep 2; done
say "mounted $device from $(losetup --noheadings --output BACK-FILE,RO "$device" 2>/dev/null || echo a drive)"
zcat "$mounted/config.gz" >/run/config.cpio
cpio --quiet --to-stdout -i ${IMAGE_SET_PATH} </run/config.cpio | cmp - ${IMAGE_SET_PATH}
IFS=, read -r -a names <<<"$CONFIG_IMAGE_FILES"
taken=0
for name in "\${names[@]}"; do
  if [[ $name == *.* || $name == /etc/issue ]]; then
    cpio --quiet -idu "$name" </run/config.cpio
    [[ -f $name ]] || { say "FAILED $name is not in the archive"; exit 1; }
    taken=$((taken + 1))
  else
    cpio --quiet -idu "$name*" </run/config.cpio
  fi
done
say "loaded $taken files from $device"
`;

const LOADER = '/usr/local/bin/load-config-iso.sh';

/** The script of a release calls others, and `cpio -c`, by which Debian's reads another format than Red Hat's. */
const AROUND_LOADER: readonly object[] = [
  fileEntry('/usr/local/bin/issue_status.sh', 0o755, 'set_issue() { cat >/dev/console; }\n'),
  fileEntry(
    '/usr/local/bin/cpio',
    0o755,
    '#!/bin/bash\n[[ $1 == -ic* ]] && set -- "-i${1#-ic}" "${@:2}"\nexec /usr/bin/cpio "$@"\n',
  ),
];

function listLoaderFiles(): readonly object[] {
  if (JUDGED_LOADER === undefined) return [fileEntry(LOADER, 0o755, STAND_IN)];
  return [fileEntry(LOADER, 0o755, readFileSync(JUDGED_LOADER, 'utf8')), ...AROUND_LOADER];
}

const FILES: readonly object[] = [
  fileEntry(
    '/etc/udev/rules.d/80-agent-config-image.rules',
    0o644,
    'SUBSYSTEM=="block", ACTION=="add|change", ENV{ID_FS_LABEL}=="agent_configimage", ENV{SYSTEMD_WANTS}+="load-config-iso@$devnode.service"\n',
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
  ...listLoaderFiles(),
  // The last word of a boot: the loader has said all that it says.
  fileEntry(
    '/usr/local/bin/start-agent.sh',
    0o755,
    `#!/bin/bash
until systemctl list-units --state=active --plain --no-legend 'load-config-iso@*' | grep --quiet .; do sleep 1; done
echo "PROOF registers as $(</proc/sys/kernel/hostname) at $SERVICE_BASE_URL" >/dev/console
`,
  ),
];

const UNITS = [
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
ConditionPathExists=!/etc/assisted/no-config-image
[Service]
Environment=CONFIG_IMAGE_FILES=${CONFIG_IMAGE_FILES.join(',')}
Type=oneshot
RemainAfterExit=yes
StandardOutput=journal+console
ExecStart=/usr/local/bin/load-config-iso.sh %I
`,
  },
  {
    name: 'start-cluster-installation.service',
    contents: `[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'echo PROOF the installation starts >/dev/console'
[Install]
WantedBy=multi-user.target
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
];

/** The unconfigured Ignition config of a medium that waits for a configuration image. */
const waitingConfig = (releaseImage: string): IgnitionConfig => {
  const { storage, ...config } = agentLiveIgnition(undefined, formatImageSet(releaseImage));
  const files = [
    ...(storage?.files ?? []),
    ...(FILES as NonNullable<typeof storage>['files'] & object),
  ];
  return { ...config, storage: { files }, systemd: { units: UNITS } };
};

/** A stand-in for openshift-install, which writes this config. */
export const formatWaitingInstaller = (releaseImage: string): string =>
  [
    '#!/bin/bash',
    'while (($# > 0)); do [[ $1 == --dir ]] && dir=$2; shift; done',
    'cat >"$dir/unconfigured-agent.ign" <<\'END\'',
    JSON.stringify(waitingConfig(releaseImage)),
    'END',
    '',
  ].join('\n');
