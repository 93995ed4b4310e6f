import { spawn } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { gzipSync } from 'node:zlib';
import { runProcess } from '../../src/base/process.ts';

export type Guest = {
  /** A live ISO with kernel and initrd, both under images/pxeboot. */
  readonly base: string;
  /** An empty directory. */
  readonly work: string;
};

/** What the kernel of a guest sees of a medium. */
export type Seen = {
  /** The device that has the label. */
  readonly device: string;
  /** `path` of directories with a slash at the end, `path mode sha256` of files; sorted. */
  readonly tree: readonly string[];
};

const TIMEOUT_MS = 600_000;

/**
 * Stands in the place of the initrd's own first process: finds the medium by its label, mounts it and
 * tells its tree.
 */
const INIT = `#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
# The kernel's own last line would come between: stty waits until all that was written has left the port.
stop() { stty -F /dev/ttyS0 -echo; poweroff -f; }
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
while read -r module; do insmod "/modules/$module" 2>/dev/null; done </modules/order
tries=0
until device=$(findfs LABEL=cluster-config 2>/dev/null); do
  tries=$((tries + 1))
  [ "$tries" -lt 500 ] || { echo "SEEN nothing"; stop; }
  sleep 0.2
done
mkdir -p /mnt/config
mount -t iso9660 -o ro "$device" /mnt/config || { echo "SEEN no mount"; stop; }
cd /mnt/config
echo "SEEN device $device"
find . -mindepth 1 -type d | while read -r path; do echo "SEEN tree $path/"; done
find . -mindepth 1 -type f | while read -r path; do
  sum=$(sha256sum "$path")
  echo "SEEN tree $path $(stat -c %a "$path") \${sum%% *}"
done
echo "SEEN done"
stop
`;

/** Boots a kernel that has the image as a drive and nothing else, in emulation. */
export async function mountInGuest(iso: string, as: 'cdrom' | 'disk', guest: Guest): Promise<Seen> {
  const { kernel, initrd } = await prepare(guest);
  const drive = `if=none,id=medium,format=raw,readonly=on,file=${iso}`;
  const device = as === 'cdrom' ? 'ide-cd,bus=ide.1,drive=medium' : 'virtio-blk-pci,drive=medium';
  const qemu = spawn(
    'qemu-system-x86_64',
    [
      ...['-accel', 'tcg,thread=multi', '-machine', 'pc', '-cpu', 'max', '-m', '512'],
      ...['-display', 'none', '-monitor', 'none', '-serial', 'stdio', '-no-reboot', '-nodefaults'],
      ...['-kernel', kernel, '-initrd', initrd, '-append', 'console=ttyS0 quiet panic=-1'],
      ...['-drive', drive, '-device', device],
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const timer = setTimeout(() => qemu.kill('SIGKILL'), TIMEOUT_MS);
  const lines: string[] = [];
  try {
    for await (const line of createInterface({ input: qemu.stdout })) {
      lines.push(line.trim());
      if (line.startsWith('SEEN done')) break;
    }
  } finally {
    clearTimeout(timer);
    qemu.kill('SIGKILL');
  }
  return readSeen(lines);
}

function readSeen(lines: readonly string[]): Seen {
  const tell = (what: string): readonly string[] =>
    lines.flatMap((line) =>
      line.startsWith(`SEEN ${what} `) ? [line.slice(6 + what.length)] : [],
    );
  const [device] = tell('device');
  if (!lines.includes('SEEN done') || device === undefined) {
    throw new Error(`the guest did not see the medium:\n${lines.slice(-20).join('\n')}`);
  }
  return { device, tree: [...tell('tree')].sort() };
}

/** The kernel takes several archives one after the other; of a file that appears twice the last. */
async function prepare({ base, work }: Guest): Promise<{ kernel: string; initrd: string }> {
  await runProcess('bsdtar', ['-x', '-f', base, '-C', work, 'images/pxeboot']);
  const own = join(work, 'own');
  await mkdir(own, { recursive: true });
  await writeFile(join(own, 'init'), INIT, { mode: 0o755 });
  const archive = join(work, 'own.cpio');
  const pack = ['--quiet', '-o', '-H', 'newc', '-R', '0:0', '-O', archive];
  await runProcess('cpio', pack, { cwd: own, input: 'init\n' });
  const pxeboot = join(work, 'images/pxeboot');
  const initrd = join(work, 'initrd.img');
  const parts = [await readFile(join(pxeboot, 'initrd.img')), gzipSync(await readFile(archive))];
  await writeFile(initrd, Buffer.concat(parts));
  return { kernel: join(pxeboot, 'vmlinuz'), initrd };
}
