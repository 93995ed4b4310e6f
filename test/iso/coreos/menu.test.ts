import { describe, expect, it } from 'vitest';
import { readGrub, readIsolinux, readSearched } from '../../../src/iso/coreos/menu.ts';

describe('entries of a boot menu', () => {
  it('are read as GRUB reads them', () => {
    const text = [
      "menuentry 'Live' {",
      '\tlinux /images/pxeboot/vmlinuz rw coreos.liveiso=rhcos ignition.firstboot',
      '################## COREOS_KARG_EMBED_AREA',
      '\tinitrd /images/pxeboot/initrd.img /images/ignition.img',
      '}',
    ].join('\r\n');
    expect(readGrub(text)).toEqual([
      {
        kernel: '/images/pxeboot/vmlinuz',
        initrds: ['/images/pxeboot/initrd.img', '/images/ignition.img'],
        kargs: 'rw coreos.liveiso=rhcos ignition.firstboot',
      },
    ]);
  });

  it('are read as ISOLINUX reads them', () => {
    const text = [
      'label linux',
      '  kernel /images/pxeboot/vmlinuz',
      '  append initrd=/images/pxeboot/initrd.img,/images/ignition.img rw quiet',
    ].join('\n');
    expect(readIsolinux(text)).toEqual([
      {
        kernel: '/images/pxeboot/vmlinuz',
        initrds: ['/images/pxeboot/initrd.img', '/images/ignition.img'],
        kargs: 'rw quiet',
      },
    ]);
  });

  it('are loaded from the volume that GRUB looks for', () => {
    const text = [
      "search --no-floppy --set=root -l 'rhcos-9'",
      '  search --set --label other',
      'search --set=home --label home',
      'search --set=root --fs-uuid 2026-01-01',
      '# search --set=root -l comment',
    ].join('\n');
    expect(readSearched(text)).toEqual(['rhcos-9', 'other']);
  });

  it('are none in a menu that starts no kernel', () => {
    expect(readGrub('set default="0"\ninitrd /x\n')).toEqual([]);
    expect(readGrub('# menuentry live {\n linux /x\n initrd /y\n}\n')).toEqual([]);
    expect(readIsolinux('default vesamenu.c32\nappend x\n')).toEqual([]);
  });
});
