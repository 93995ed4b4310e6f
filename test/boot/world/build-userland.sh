#!/bin/bash
# Makes the userland of the live system as a tar: Debian with systemd and podman, laid out like CoreOS.
# Everything that changes at run time lies under /var; the rest is read-only but for the overlay.
set -euo pipefail

output=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/userland.XXXXXX")
trap 'rm -rf "$work"' EXIT
root=$work/root

packages=systemd,systemd-sysv,dbus,podman,crun,conmon,netavark,ca-certificates,curl,iproute2,jq,rsync,udev,cpio
# sfdisk, which CoreOS has.
packages+=,fdisk
# polkitd, which network-manager needs, wants a login manager, a name that debootstrap does not resolve.
packages+=,network-manager,libpam-systemd
if ! debootstrap --variant=minbase --include="$packages" bookworm "$root" \
  "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >"$work/log" 2>&1; then
  tail -n 20 "$work/log" >&2
  exit 1
fi

# Nothing starts but what a preset or Ignition enables.
rm -rf "${root:?}"/etc/systemd/system/*.wants
rm -rf "${root:?}"/boot "${root:?}"/var/cache/apt "${root:?}"/var/lib/apt/lists "${root:?}"/var/lib/dpkg/info \
  "${root:?}"/var/log "${root:?}"/usr/share/{doc,man,info,locale,zoneinfo,bash-completion,perl} \
  "${root:?}"/usr/lib/x86_64-linux-gnu/{gconv,perl-base} "${root:?}"/usr/include
# Names of devices: 20 MB that nothing asks for, and that the first boot would compile.
rm -rf "${root:?}"/usr/lib/udev/hwdb.{d,bin} "${root:?}"/usr/lib/systemd/system/*/systemd-hwdb-update.service
mkdir -p "${root:?}"/boot "${root:?}"/var/log "${root:?}"/var/lib/apt/lists

# RHCOS 10 has none: the certificate must come out of the registry's image.
rm "$root"/usr/bin/openssl

# The links of CoreOS: what a mount unit or a script finds behind /mnt is /var/mnt.
move_to_var() {
  local from=$root/$1 to=$root/var/$2
  mkdir -p "$from" "$to"
  cp -a "$from/." "$to/"
  rm -rf "$from"
  ln -s "$3" "$from"
}
move_to_var home home var/home
move_to_var mnt mnt var/mnt
move_to_var opt opt var/opt
move_to_var root roothome var/roothome
move_to_var srv srv var/srv
move_to_var usr/local usrlocal ../var/usrlocal
rm -rf "${root:?}/media"
ln -s run/media "${root:?}/media"
mkdir -p "${root:?}"/var/usrlocal/{bin,sbin} "${root:?}"/etc/pki/ca-trust/source/anchors
chmod 0700 "$root/var/roothome"

# systemd takes this for a first boot and lets the presets decide.
echo uninitialized >"$root/etc/machine-id"
echo live >"$root/etc/hostname"
printf '127.0.0.1 localhost\n::1 localhost\n' >"$root/etc/hosts"
: >"$root/etc/resolv.conf"
for group in wheel sudo adm systemd-journal; do
  chroot "$root" /usr/sbin/groupadd --force --system "$group"
done

tar -C "$root" --numeric-owner --xattrs -cf "$output.partial" .
mv "$output.partial" "$output"
