#!/bin/bash
# build-initramfs.sh KERNEL_DEB OUTPUT_DIRECTORY
# Makes vmlinuz and initrd.img: busybox, the real ignition, and the modules that find the ISO.
set -euo pipefail

kernel_deb=$1
output=$2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/initramfs.XXXXXX")
trap 'rm -rf "$work"' EXIT
tree=$work/tree

dpkg-deb -x "$kernel_deb" "$work/kernel"
cp "$work"/kernel/boot/vmlinuz-* "$output/vmlinuz"
version=$(basename "$work"/kernel/lib/modules/*)
depmod -b "$work/kernel" "$version"

mkdir -p "$tree"/{bin,sbin,dev,proc,sys,run,etc,tmp,sysroot,usr/bin,usr/sbin,usr/lib/ignition/base.d,modules,lib64}
cp "$here/initramfs/init" "$tree/init"
cp "$(command -v busybox)" "$tree/bin/busybox"

# ignition runs these with --root; they need their libraries on our side of the chroot.
programs=(/usr/lib/dracut/modules.d/30ignition/ignition /usr/sbin/useradd /usr/sbin/usermod /usr/sbin/groupadd)
for program in "${programs[@]}"; do
  cp "$program" "$tree/usr/bin/"
  while read -r library; do
    mkdir -p "$tree$(dirname "$library")"
    cp -L "$library" "$tree$library"
  done < <(ldd "$program" | grep -o '/[^ ]*')
done
# Ignition relabels what it wrote when the kernel knows SELinux; the guest has no policy.
printf '#!/bin/sh\nexit 0\n' >"$tree/usr/sbin/setfiles"
chmod 0755 "$tree/usr/sbin/setfiles"
cp /etc/login.defs "$tree/etc/"
echo 'root:x:0:0:root:/root:/bin/sh' >"$tree/etc/passwd"
echo 'root:x:0:' >"$tree/etc/group"

# One line a module, in the order in which they load; what is built into the kernel has no file.
modules=(virtio_pci virtio_blk virtio_net virtio_scsi ata_piix ahci sd_mod sr_mod usb_storage uas xhci_pci isofs loop squashfs overlay ext4 autofs4)
for module in "${modules[@]}"; do
  modprobe -d "$work/kernel" -S "$version" --show-depends "$module" 2>/dev/null || true
done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >"$work/modules"
while read -r file; do
  cp "$file" "$tree/modules/"
  basename "$file" >>"$tree/modules/order"
done <"$work/modules"

mkdir -p "$tree/etc/coreos"
echo '{}' >"$tree/etc/coreos/features.json"
echo sealift-test >"$tree/etc/coreos-live-initramfs"
(cd "$tree" && find . -mindepth 1 -printf '%P\0' | LC_ALL=C sort -z | cpio --quiet -0 -o -H newc -R 0:0) |
  gzip -n -6 >"$output/initrd.img"
truncate -s %4 "$output/initrd.img"
