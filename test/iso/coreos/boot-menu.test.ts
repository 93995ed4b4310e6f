import { describe, expect, it } from 'vitest';
import { addInitrd } from '../../../src/iso/coreos/graft.ts';
import { menuKindOf } from '../../../src/iso/coreos/menu.ts';

const INITRD = '/images/bootstrap-appliance.img';

describe('adding an initrd to a boot menu', () => {
  it('appends to every initrd line of GRUB and does not move the kernel arguments', () => {
    const text =
      "menuentry 'live' {\n\tlinux /images/pxeboot/vmlinuz coreos.liveiso=x\n### COREOS_KARG_EMBED_AREA\n" +
      '\tinitrd /images/pxeboot/initrd.img /images/ignition.img\n}\n';
    const edited = addInitrd(text, 'grub', INITRD);
    expect(edited.text).toContain(`/images/ignition.img ${INITRD}\n}`);
    const offset = text.indexOf('coreos.liveiso');
    expect(edited.moved(offset)).toBe(offset);
  });

  it('appends to the list of ISOLINUX and moves the kernel arguments after it', () => {
    const text =
      'label linux\n  kernel /images/pxeboot/vmlinuz\n  append initrd=/images/pxeboot/initrd.img,/images/ignition.img a=b\n';
    const edited = addInitrd(text, 'isolinux', INITRD);
    expect(edited.text).toContain(`/images/ignition.img,${INITRD} a=b\n`);
    const offset = text.indexOf('a=b');
    expect(edited.text.slice(edited.moved(offset))).toBe('a=b\n');
  });

  it('refuses a menu without an initrd', () => {
    expect(() => addInitrd('menuentry {}\n', 'grub', INITRD)).toThrow('no entry with an initrd');
  });

  it('recognizes menus by their paths', () => {
    expect(menuKindOf('/EFI/redhat/grub.cfg')).toBe('grub');
    expect(menuKindOf('/boot/grub/grub.cfg')).toBe('grub');
    expect(menuKindOf('/isolinux/isolinux.cfg')).toBe('isolinux');
    expect(menuKindOf('/isolinux/boot.msg')).toBeUndefined();
  });
});
