import { copyFile, mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runProcess } from '../../src/base/process.ts';

/** The texts that boot loaders read, and where in them the kernel arguments may be rewritten. */
export type BootMenus = {
  readonly grub: string;
  readonly isolinux: string;
  /** `EFI/BOOT/grub.cfg` inside the EFI system partition. */
  readonly esp: string;
  /** `coreos/kargs.json`. */
  readonly kargs: object;
};

const MARKER = '# COREOS_KARG_EMBED_AREA';
/** Bytes of newline and filler behind the default arguments. */
const AREA_SLACK = 1024;

export type BootMenuOptions = {
  readonly volumeId: string;
  readonly kargs: string;
  /** Initrds behind the two of every CoreOS live ISO, as absolute paths of the ISO. */
  readonly initrds?: readonly string[];
};

/** Renders the menus of a CoreOS live ISO, each with a kernel argument embed area. */
export function bootMenus({ volumeId, kargs, initrds = [] }: BootMenuOptions): BootMenus {
  const initrd = ['/images/pxeboot/initrd.img', '/images/ignition.img', ...initrds];
  // The last "#" of the filler belongs to the marker, which survives every rewrite.
  const area = `${kargs}\n${'#'.repeat(AREA_SLACK - 1)}`;
  const grub = `set default=0
set timeout=1
terminal_input console
terminal_output console
menuentry 'RHEL CoreOS (Live)' --class fedora --class gnu-linux --class gnu --class os {
	linux /images/pxeboot/vmlinuz ${area}${MARKER}
	initrd ${initrd.join(' ')}
}
`;
  const isolinux = `serial 0
default vesamenu.c32
timeout 10
display boot.msg
menu title RHEL CoreOS
label linux
  menu label ^RHEL CoreOS (Live)
  menu default
  kernel /images/pxeboot/vmlinuz
  append initrd=${initrd.join(',')} ${area}${MARKER}
menu end
`;
  const esp = `search --no-floppy --set=root --label ${volumeId}
set prefix=($root)/EFI/redhat
echo "Booting via ESP..."
configfile $prefix/grub.cfg
boot
`;
  const file = (path: string, text: string): object => ({
    end: '\n',
    offset: Buffer.byteLength(text.slice(0, text.indexOf(kargs))),
    pad: '#',
    path,
  });
  return {
    grub,
    isolinux,
    esp,
    kargs: {
      default: kargs,
      files: [file('EFI/redhat/grub.cfg', grub), file('isolinux/isolinux.cfg', isolinux)],
      size: kargs.length + AREA_SLACK,
    },
  };
}

/** GRUB takes its menu from where the firmware loaded it: the ISO (El Torito) or the ESP (disk). */
const GRUB_EARLY = `regexp --set=1:device '^\\(([^)]*)\\)' "$cmdpath"
set root=$device
if [ -e ($root)/EFI/redhat/grub.cfg ]; then set prefix=($root)/EFI/redhat
else set prefix=($root)/EFI/BOOT
fi
configfile $prefix/grub.cfg
`;

const GRUB_MODULES =
  'normal configfile linux echo test regexp search search_label iso9660 fat part_gpt part_msdos boot minicmd all_video';

/** Writes isolinux and the EFI system partition image into the ISO's tree. */
export async function writeBootImages(tree: string, espMenu: string): Promise<void> {
  await copyFile('/usr/lib/ISOLINUX/isolinux.bin', join(tree, 'isolinux/isolinux.bin'));
  for (const module of ['ldlinux', 'libcom32', 'libutil', 'vesamenu']) {
    const name = `${module}.c32`;
    await copyFile(`/usr/lib/syslinux/modules/bios/${name}`, join(tree, 'isolinux', name));
  }
  const work = await mkdtemp(join(tmpdir(), 'efiboot-'));
  try {
    await writeEfiImage(join(tree, 'images/efiboot.img'), { work, espMenu });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

async function writeEfiImage(
  image: string,
  { work, espMenu }: { readonly work: string; readonly espMenu: string },
): Promise<void> {
  const early = join(work, 'early.cfg');
  const menu = join(work, 'grub.cfg');
  const loader = join(work, 'BOOTX64.EFI');
  await writeFile(early, GRUB_EARLY);
  await writeFile(menu, espMenu);
  await runProcess('grub-mkstandalone', [
    ...['-O', 'x86_64-efi', '-o', loader, `--modules=${GRUB_MODULES}`, '--install-modules='],
    ...['--fonts=', '--locales=', '--themes=', `boot/grub/grub.cfg=${early}`],
  ]);
  await writeFile(image, '');
  await truncate(image, 4 << 20);
  await runProcess('mformat', ['-i', image, '-v', 'ESP', '-N', '5ea11f70', '::']);
  await runProcess('mmd', ['-i', image, '::/EFI', '::/EFI/BOOT']);
  await runProcess('mcopy', ['-i', image, loader, menu, '::/EFI/BOOT/']);
}
