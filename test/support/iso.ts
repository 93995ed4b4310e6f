import { chmod, mkdir, mkdtemp, readFile, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { runProcess } from '../../src/base/process.ts';

/** Content of a file of a test ISO; a number of bytes is a file of zeros. */
export type TestContent = string | Uint8Array | number | { readonly symlink: string };

export type TestIsoOptions = {
  /** By path without a leading slash. */
  readonly files: Readonly<Record<string, TestContent>>;
  /** Further arguments of mkisofs; default Rock Ridge and Joliet. */
  readonly args?: readonly string[];
  readonly program?: 'genisoimage' | 'xorriso';
};

/** Time of every file of a test ISO. */
export const TEST_TIME = new Date('2026-01-02T03:04:05Z');

/** A directory that the caller removes. */
export const makeTestDirectory = (): Promise<string> => mkdtemp(join(tmpdir(), 'sealift-iso-'));

/** Makes `directory/test.iso` with a foreign program; two in one directory need two names. */
export async function makeIso(
  directory: string,
  options: TestIsoOptions,
  name = 'test.iso',
): Promise<string> {
  const tree = await mkdtemp(join(directory, 'tree-'));
  const output = join(directory, name);
  try {
    await writeTree(tree, options.files);
    const isXorriso = options.program === 'xorriso';
    await runProcess(isXorriso ? 'xorriso' : 'genisoimage', [
      ...(isXorriso ? ['-as', 'mkisofs'] : []),
      ...['-quiet', '-o', output],
      ...(options.args ?? ['-r', '-J', '-joliet-long', '-V', 'TEST']),
      tree,
    ]);
  } finally {
    await rm(tree, { recursive: true, force: true });
  }
  return output;
}

export type TestCoreosOptions = {
  readonly arch?: 'x86_64' | 'aarch64' | 'ppc64le';
  readonly volumeId?: string;
  /** Kernel arguments behind `coreos.liveiso=`. */
  readonly kargs?: string;
  /** Added to the tree, or put in the place of what is there. */
  readonly files?: Readonly<Record<string, TestContent>>;
  /** Left out of the tree. */
  readonly without?: readonly string[];
  /** Whether the x86_64 image is a disk too; default true. */
  readonly hybrid?: boolean;
};

export const TEST_VOLUME_ID = 'rhcos-9.6.20260101-0';

/**
 * A live ISO of the layout of RHCOS, too small to boot: x86_64 with BIOS and EFI El Torito and
 * `isohybrid --uefi`, aarch64 with EFI El Torito only, ppc64le without El Torito.
 */
export async function makeCoreosIso(
  directory: string,
  options: TestCoreosOptions = {},
): Promise<string> {
  if (options.arch === 'ppc64le') return makePowerIso(directory, options);
  const isX86 = (options.arch ?? 'x86_64') === 'x86_64';
  const volumeId = options.volumeId ?? TEST_VOLUME_ID;
  const files: Record<string, TestContent> = {
    ...coreosFiles(volumeId, options.kargs ?? 'ignition.firstboot ignition.platform.id=metal'),
    ...(isX86 && (await biosFiles())),
    'images/efiboot.img': await makeEspImage(directory),
    ...options.files,
  };
  for (const path of options.without ?? []) Reflect.deleteProperty(files, path);
  const args = [
    ...['-V', volumeId, '-volset', volumeId, '-r', '-J', '-joliet-long'],
    ...(isX86 ? BIOS_ARGS : []),
    ...['-efi-boot', 'images/efiboot.img', '-no-emul-boot'],
  ];
  const path = await makeIso(directory, { files, args });
  if (isX86 && options.hybrid !== false) await runProcess('isohybrid', ['--uefi', path]);
  return path;
}

/**
 * What `grub2-mkrescue` makes with the modules of powerpc-ieee1275 alone: firmware finds
 * `ppc/bootinfo.txt`, which names the boot loader. There is an HFS+ volume over the same files, and
 * neither El Torito nor Joliet. Its menu is the only place of kernel arguments.
 */
async function makePowerIso(directory: string, options: TestCoreosOptions): Promise<string> {
  const volumeId = options.volumeId ?? TEST_VOLUME_ID;
  const all = coreosFiles(
    volumeId,
    options.kargs ?? 'ignition.firstboot ignition.platform.id=metal',
  );
  const text = all['coreos/kargs.json'] as string;
  const kargs = JSON.parse(text) as { readonly files: readonly object[] };
  const [grub] = kargs.files;
  const files: Record<string, TestContent> = {
    ...Object.fromEntries(
      Object.entries(all).filter(([path]) => !/^(?:EFI|isolinux)\//.test(path)),
    ),
    'boot/grub/grub.cfg': all['EFI/redhat/grub.cfg'] ?? '',
    'coreos/kargs.json': formatJson({ ...kargs, files: [{ ...grub, path: 'boot/grub/grub.cfg' }] }),
    'boot/grub/powerpc.elf': 'a boot loader',
    'System/Library/CoreServices/BootX': '',
    'ppc/bootinfo.txt': BOOTINFO,
    'images/pxeboot/vmlinuz': Buffer.from('7f454c46020101'.padEnd(36, '0') + '1500', 'hex'),
    ...options.files,
  };
  for (const path of options.without ?? []) Reflect.deleteProperty(files, path);
  const args = ['-V', volumeId, '-r', ...POWER_ARGS];
  return makeIso(directory, { files, args, program: 'xorriso' });
}

const BOOTINFO = `<chrp-boot>
<description>grub 2.06</description>
<os-name>grub 2.06</os-name>
<boot-script>boot &device;:\\boot\\grub\\powerpc.elf</boot-script>
</chrp-boot>
`;

/** Those of GRUB 2.06, as it gives them to xorriso. */
const POWER_ARGS = [
  ...['-hfsplus', '-apm-block-size', '2048', '-hfsplus-file-creator-type', 'chrp', 'tbxi'],
  ...['/System/Library/CoreServices/BootX', '-hfs-bless-by', 'p', '/System/Library/CoreServices'],
  ...['-sysid', 'PPC', '--protective-msdos-label'],
];

const BIOS_ARGS = [
  ...['-eltorito-boot', 'isolinux/isolinux.bin', '-eltorito-catalog', 'isolinux/boot.cat'],
  ...['-no-emul-boot', '-boot-load-size', '4', '-boot-info-table', '-eltorito-alt-boot'],
];

function coreosFiles(volumeId: string, kargs: string): Record<string, TestContent> {
  const text = `coreos.liveiso=${volumeId} ${kargs}`;
  const grub = menuWith('menuentry "live" {\n\tlinux /images/pxeboot/vmlinuz ', text);
  const isolinux = menuWith(
    'label linux\n  kernel /images/pxeboot/vmlinuz\n  append initrd=/images/pxeboot/initrd.img,/images/ignition.img ',
    text,
  );
  return {
    'EFI/redhat/grub.cfg': `${grub.menu}\tinitrd /images/pxeboot/initrd.img /images/ignition.img\n}\n`,
    'isolinux/isolinux.cfg': isolinux.menu,
    'isolinux/boot.msg': 'test live system\n',
    'coreos/features.json': formatJson({
      'installer-config': true,
      'installer-config-directives': { 'append-karg': true, 'console': true },
      'live-initrd-network': true,
    }),
    'coreos/igninfo.json': formatJson({ file: 'images/ignition.img' }),
    'coreos/kargs.json': formatJson({
      default: text,
      files: [
        { end: '\n', offset: grub.offset, pad: '#', path: 'EFI/redhat/grub.cfg' },
        { end: '\n', offset: isolinux.offset, pad: '#', path: 'isolinux/isolinux.cfg' },
      ],
      size: text.length + 1024,
    }),
    'coreos/miniso.dat': 16_384,
    'images/ignition.img': 262_144,
    'images/pxeboot/vmlinuz': 'a kernel',
    'images/pxeboot/initrd.img': 'an initramfs',
    'images/pxeboot/rootfs.img': 70_000,
  };
}

async function biosFiles(): Promise<Record<string, TestContent>> {
  return {
    'isolinux/isolinux.bin': await readFile('/usr/lib/ISOLINUX/isolinux.bin'),
    'isolinux/ldlinux.c32': await readFile('/usr/lib/syslinux/modules/bios/ldlinux.c32'),
  };
}

/** `#` up to the last of 1023 and the words of CoreOS: the area ends before that last one. */
function menuWith(head: string, kargs: string): { menu: string; offset: number } {
  return {
    menu: `${head}${kargs}\n${'#'.repeat(1024)} COREOS_KARG_EMBED_AREA\n`,
    offset: head.length,
  };
}

async function makeEspImage(directory: string): Promise<Uint8Array> {
  const path = join(directory, 'efiboot.img');
  await writeFile(path, new Uint8Array(1440 * 1024));
  await runProcess('mformat', ['-i', path, '-f', '1440', '::']);
  await runProcess('mmd', ['-i', path, '::/EFI', '::/EFI/BOOT']);
  const bytes = await readFile(path);
  await rm(path);
  return bytes;
}

async function writeTree(
  tree: string,
  files: Readonly<Record<string, TestContent>>,
): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    const target = join(tree, path);
    await mkdir(dirname(target), { recursive: true });
    if (typeof content === 'object' && 'symlink' in content) {
      await symlink(content.symlink, target);
      continue;
    }
    await writeFile(target, typeof content === 'number' ? new Uint8Array(content) : content);
    await chmod(target, 0o644);
    await utimes(target, TEST_TIME, TEST_TIME);
  }
}

const formatJson = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;
