#!/usr/bin/env bash
# Brings the foreign programs that judge our media: install-tools.sh [boot]
# In CI it installs what is missing; at a terminal it asks; otherwise it says what is missing.
set -euo pipefail

# package, and a program or file by which it is known
unit_tools='
skopeo skopeo
docker-registry docker-registry
nginx nginx
tinyproxy tinyproxy
gpgv gpgv
strace strace
xorriso xorriso
genisoimage isoinfo
xdelta3 xdelta3
libarchive-tools bsdtar
ignition ignition-validate
shellcheck shellcheck
squashfs-tools mksquashfs
syslinux-utils isohybrid
isolinux /usr/lib/ISOLINUX/isolinux.bin
syslinux-common /usr/lib/syslinux/modules/bios/vesamenu.c32
mtools mformat
cpio cpio
zstd zstd
xz-utils xz
jq jq
curl curl
openssl openssl
apache2-utils htpasswd
gdisk sgdisk
fdisk sfdisk
util-linux unshare
mount losetup
e2fsprogs mkfs.ext4
dosfstools mkfs.vfat
qemu-utils qemu-img
systemd systemd-analyze
swift-proxy swift-proxy-server
swift-account swift-account-server
swift-container swift-container-server
swift-object swift-object-server
memcached memcached
xfsprogs mkfs.xfs
postgresql /usr/lib/postgresql
chromium chromium
grub-common grub-script-check
python3 python3
network-manager nmcli
'
boot_tools='
qemu-system-x86 qemu-system-x86_64
ipxe-qemu /usr/lib/ipxe/qemu/pxe-virtio.rom
ovmf /usr/share/OVMF/OVMF_CODE_4M.fd
grub-efi-amd64-bin /usr/lib/grub/x86_64-efi/modinfo.sh
grub-pc-bin /usr/lib/grub/i386-pc/modinfo.sh
grub-common grub-mkstandalone
podman podman
crun crun
runc runc
debootstrap debootstrap
busybox-static busybox
kmod depmod
qemu-utils qemu-img
qemu-block-extra /usr/share/doc/qemu-block-extra
nbdkit nbdkit
libnbd-bin nbdcopy
'

main() {
  local tools=$unit_tools
  if [[ ${1:-} == boot ]]; then tools+=$boot_tools; fi
  local missing=()
  local package probe
  while read -r package probe; do
    if [[ -n $package ]] && ! is_there "$probe"; then missing+=("$package"); fi
  done <<<"$tools"
  if ((${#missing[@]} == 0)); then return 0; fi
  if may_install "${missing[*]}"; then install "${missing[@]}"; fi
}

is_there() {
  if [[ $1 == /* ]]; then [[ -e $1 ]]; else PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null; fi
}

may_install() {
  if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
    echo "tests of missing programs are skipped; Debian packages: $1" >&2
    return 1
  fi
  if [[ ${CI:-} == true ]]; then return 0; fi
  if [[ ! -t 0 || ! -t 2 ]]; then
    echo "tests of missing programs are skipped; to have them: apt-get install $1" >&2
    return 1
  fi
  local answer
  read -r -p "The tests use programs that are missing. Install $1? [Y/n] " answer
  [[ ! $answer =~ ^[nN] ]]
}

install() {
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "$@" </dev/null >/dev/null
}

main "$@"
