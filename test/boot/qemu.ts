import { spawn, type ChildProcess } from 'node:child_process';
import { copyFile, mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { readDriveBytes } from './qmp.ts';

/**
 * `cdrom` is an IDE drive; `disk` a virtio disk, the fastest; `usb-esp` a USB stick without the El
 * Torito boot record, which OVMF would prefer even there: as other firmware does, it must then take
 * the EFI system partition of the hybrid image.
 */
export type Drive = 'cdrom' | 'disk' | 'usb-esp';

/** What a machine starts, and from where. */
export type Source = { readonly firmware: 'seabios' | 'ovmf' } & (
  | { readonly as: Drive; readonly iso: string }
  /** An IDE drive whose medium QEMU reads from a web server by ranges, as a management controller does. */
  | { readonly as: 'url'; readonly url: string }
  /** iPXE, which is the ROM of the network card, takes `boot.ipxe` of this folder. */
  | { readonly as: 'network'; readonly tftp: string }
  /** QEMU itself is the boot loader. */
  | {
      readonly as: 'kernel';
      readonly kernel: string;
      readonly initrd: string;
      readonly kargs: string;
    }
);

export type BootOptions = Source & {
  /** Raw images of further virtio disks: /dev/vdb, /dev/vdc. */
  readonly disks?: readonly { readonly path: string; readonly readonly: boolean }[];
  /** Bytes a second that the medium delivers at most, as virtual media of a BMC do. */
  readonly mediumRate?: number;
  /** `127.0.0.1:PORT`, which the guest reaches as http://10.0.2.100. */
  readonly server?: string;
  /** Default: `PATIENCE_MS`. */
  readonly timeoutMs?: number;
  /** The boot has proved enough at the first line that matches. */
  readonly until: RegExp;
  /** Or when this resolves. */
  readonly powerCut?: Promise<void>;
  /** Is given each line of the serial line at once. */
  readonly onLine?: (line: string) => void;
  /** The boot is lost at the first line that matches. */
  readonly fail: RegExp;
};

export type Boot = {
  /** What the serial line said, without control sequences, first to last. */
  readonly lines: readonly string[];
  readonly seconds: number;
  /** With `mediumRate`: what the machine had read from the medium when it said the last line. */
  readonly mediumBytes?: number;
};

/** Nothing of a guest is worth waiting for after these. */
export const BOOT_FAILURES =
  /PROOF FAILED|INITRAMFS FAILED|Kernel panic|No bootable device|grub rescue>|^error: (?!no suitable video)|emergency mode/;

/** For a guest that hangs: on a busy machine, a good one takes a third of it. */
const PATIENCE_MS = 1_500_000;

const QEMU = 'qemu-system-x86_64';
const OVMF_CODE = '/usr/share/OVMF/OVMF_CODE_4M.fd';
const OVMF_VARS = '/usr/share/OVMF/OVMF_VARS_4M.fd';

/**
 * Boots an ISO, or from the network, in QEMU without network but for one server, and reads its serial line.
 * Always emulated (TCG): a `/dev/kvm` that opens may still not work.
 *
 * @throws Error with the last serial lines when `fail` matches, the time is over, or QEMU ends early.
 */
export async function boot(options: BootOptions): Promise<Boot> {
  const work = await mkdtemp(join(tmpdir(), 'boot-'));
  try {
    const firmware = options.firmware === 'ovmf' ? await ovmfArguments(work) : [];
    const drives = [...(await sourceArguments(options, work)), ...diskArguments(options.disks)];
    const qmp = join(work, 'qmp');
    const control = ['-qmp', `unix:${qmp},server=on,wait=off`];
    const network = networkArguments(options);
    const qemu = spawn(QEMU, [...MACHINE, ...control, ...network, ...firmware, ...drives], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    try {
      const seen = await watch(qemu, options);
      if (options.mediumRate === undefined) return seen;
      return { ...seen, mediumBytes: await readDriveBytes(qmp, 'medium') };
    } finally {
      qemu.kill('SIGKILL');
    }
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** One processor: an emulated second one costs a third more time of the machine, whose others boot too. */
const MACHINE = [
  ...['-accel', 'tcg,thread=multi,tb-size=512', '-machine', 'pc', '-cpu', 'max'],
  ...['-smp', '1', '-m', '2560'],
  ...['-display', 'none', '-monitor', 'none', '-serial', 'stdio', '-no-reboot', '-nodefaults'],
  ...['-vga', 'std'],
];

/** Each connection of the guest is one of busybox. */
function networkArguments({ server, ...source }: BootOptions): string[] {
  const forward =
    server === undefined
      ? ''
      : `,guestfwd=tcp:10.0.2.100:80-cmd:busybox nc ${server.replace(':', ' ')}`;
  const tftp =
    source.as === 'network' ? `,tftp=${escapeCommas(source.tftp)},bootfile=boot.ipxe` : '';
  return ['-nic', `user,restrict=on,model=virtio-net-pci${tftp}${forward}`];
}

const escapeCommas = (path: string): string => path.replaceAll(',', ',,');

const DEVICES: Readonly<Record<Drive, readonly string[]>> = {
  'cdrom': ['-device', 'ide-cd,bus=ide.1,drive=medium,bootindex=0'],
  'disk': ['-device', 'virtio-blk-pci,drive=medium,bootindex=0'],
  'usb-esp': ['-device', 'qemu-xhci', '-device', 'usb-storage,drive=medium,bootindex=0'],
};

async function sourceArguments(options: BootOptions, work: string): Promise<readonly string[]> {
  // SeaBIOS then has the serial line, and iPXE says there what it does.
  if (options.as === 'network') return ['-machine', 'graphics=off'];
  if (options.as === 'kernel') {
    const { kernel, initrd, kargs } = options;
    return ['-kernel', kernel, '-initrd', initrd, '-append', kargs];
  }
  if (options.as === 'url') {
    const { protocol, href } = new URL(options.url);
    const file = `file.driver=${protocol.slice(0, -1)},file.url=${escapeCommas(href)}`;
    return ['-drive', `if=none,id=medium,format=raw,readonly=on,${file}`, ...DEVICES.cdrom];
  }
  const { as, iso, mediumRate } = options;
  const path = as === 'usb-esp' ? await hideElTorito(iso, work) : iso;
  const drive = `if=none,id=medium,format=raw,readonly=on,file=${escapeCommas(path)}`;
  const rate = mediumRate === undefined ? '' : `,throttling.bps-read=${mediumRate}`;
  return ['-drive', `${drive}${rate}`, ...DEVICES[as]];
}

const diskArguments = (disks: BootOptions['disks'] = []): string[] =>
  disks.flatMap(({ path, readonly }, index) => [
    '-drive',
    `if=none,id=disk${index},format=raw,readonly=${readonly ? 'on' : 'off'},file=${escapeCommas(path)}`,
    '-device',
    `virtio-blk-pci,drive=disk${index}`,
  ]);

async function ovmfArguments(work: string): Promise<string[]> {
  const variables = join(work, 'vars.fd');
  await copyFile(OVMF_VARS, variables);
  return [
    ...['-drive', `if=pflash,unit=0,format=raw,readonly=on,file=${OVMF_CODE}`],
    ...['-drive', `if=pflash,unit=1,format=raw,file=${variables}`],
  ];
}

/**
 * A copy whose boot record volume descriptor (ECMA-119 8.2, sector 17 by El Torito 2.0) names no
 * El Torito system.
 */
async function hideElTorito(iso: string, work: string): Promise<string> {
  const copy = join(work, 'stick.iso');
  await copyFile(iso, copy);
  const file = await open(copy, 'r+');
  try {
    const offset = 17 * 2048 + 7;
    const identifier = Buffer.alloc(32);
    await file.read(identifier, 0, 32, offset);
    if (!identifier.toString('latin1').startsWith('EL TORITO SPECIFICATION')) {
      throw new Error(`sector 17 of ${iso} should be an El Torito boot record, but is none`);
    }
    await file.write(Buffer.alloc(32 + 32 + 4), 0, 68, offset);
  } finally {
    await file.close();
  }
  return copy;
}

async function watch(qemu: ChildProcess, options: BootOptions): Promise<Boot> {
  const { timeoutMs = PATIENCE_MS } = options;
  const lines: string[] = [];
  const started = performance.now();
  let failure: string | undefined;
  return await new Promise<Boot>((resolve, reject) => {
    const lose = (reason: string): void => {
      clearTimeout(timer);
      const name = `${options.firmware} ${options.as}`;
      reject(new Error(`boot with ${name} ${reason}:\n${lines.slice(-60).join('\n')}`));
    };
    const end = (): void => {
      clearTimeout(timer);
      resolve({ lines, seconds: (performance.now() - started) / 1000 });
    };
    const timer = setTimeout(() => {
      lose(`did not say ${String(options.until)} within ${timeoutMs} ms`);
    }, timeoutMs);
    const read = (raw: string): void => {
      const line = stripControl(raw);
      if (line.trim() === '') return;
      lines.push(line);
      options.onLine?.(line);
      if (failure === undefined && options.fail.test(line)) {
        failure = `said ${line}`;
        // A moment for what the guest says about it.
        setTimeout(() => {
          lose(`said ${line}`);
        }, 3000);
      } else if (options.until.test(line)) {
        end();
      }
    };
    void options.powerCut?.then(end);
    if (qemu.stdout) createInterface({ input: qemu.stdout }).on('line', read);
    if (qemu.stderr) createInterface({ input: qemu.stderr }).on('line', read);
    qemu.once('error', (error) => {
      lose(`could not start: ${error.message}`);
    });
    qemu.once('close', (code) => {
      lose(failure ?? `ended early with exit code ${code ?? 'none'}`);
    });
  });
}

/** Without escape sequences and other control characters, which firmware and menus send a lot. */
function stripControl(line: string): string {
  // eslint-disable-next-line no-control-regex
  return line.replace(/\u001b(?:\[[0-9;?=]*[A-Za-z]|[()].|.)|[\u0000-\u0008\u000b-\u001f]/g, '');
}
