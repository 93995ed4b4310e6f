#!/usr/bin/env bash
# Adds the entry of the recovery partition to the boot menu of the installed host, once.
set -euo pipefail

readonly entry=/etc/assisted/user.cfg
readonly menu=/boot/grub2/grub.cfg

mount --options remount,rw /boot
cp "${menu}" "${menu}.new"
cat "${entry}" >>"${menu}.new"
sync "${menu}.new"
mv --force "${menu}.new" "${menu}"
sync "$(dirname "${menu}")"
rm "${entry}"
echo "recovery: the boot menu has an entry for the recovery partition"
