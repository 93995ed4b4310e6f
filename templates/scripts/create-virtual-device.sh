#!/usr/bin/env bash
# Makes the device "agent" of the boot and root partitions of the booted disk. The agent reports it as the
# only disk, so CoreOS is installed into these partitions, and the tables of the real disk, agentboot and agentdata
# stay as they are. Running it again is harmless.
set -euo pipefail

# The agent knows the disk by this name.
readonly name=agent
readonly medium=/run/media/iso
# Blocks of 512 bytes that the installer takes for partition tables; they go to a scratch file.
readonly table_blocks=2048
# CoreOS's image needs less; the partition of the real disk may be larger, and the file system grows into it.
readonly root_blocks=$((8 * 1024 ** 3 / 512))
readonly scratch="${SCRATCH:-/var/tmp/agent-partition-table}"

fail() {
  echo "virtual device: $1" >&2
  exit 1
}

# Arguments: partition label. Other disks may have partitions of the same name.
find_partition() {
  local path
  path="$(lsblk --raw --noheadings --output PATH,PARTLABEL "/dev/${disk}" |
    awk -v label="$1" '$2 == label { print $1 }')"
  [[ -n "${path}" ]] || fail "/dev/${disk} has no partition $1"
  echo "${path}"
}

if dmsetup info "${name}" >/dev/null 2>&1; then
  exit 0
fi
source_device="$(findmnt --noheadings --output SOURCE "${medium}")" || fail "${medium} is not mounted"
disk="$(lsblk --noheadings --nodeps --output PKNAME "${source_device}")"
[[ -n "${disk}" ]] || fail "${source_device} is not a partition of a disk"

root="$(find_partition root)"
if (($(blockdev --getsz "${root}") < root_blocks)); then
  fail "partition root of /dev/${disk} has less than 8 GiB: build the disk image with --size, or enlarge the partition"
fi
table=
offset="${table_blocks}"
for label in BIOS-BOOT EFI-SYSTEM boot; do
  partition="$(find_partition "${label}")"
  start="$(cat "/sys/class/block/$(basename "${partition}")/start")"
  ((start == offset)) || fail "partition ${label} starts at block ${start}, not at ${offset}"
  size="$(blockdev --getsz "${partition}")"
  table+="${offset} ${size} linear ${partition} 0"$'\n'
  offset=$((offset + size))
done
table+="${offset} ${root_blocks} linear ${root} 0"

truncate --size="$((table_blocks * 512))" "${scratch}"
loop="$(losetup --find --show "${scratch}")"
if ! printf '0 %s linear %s 0\n%s\n' "${table_blocks}" "${loop}" "${table}" | dmsetup create "${name}"; then
  losetup --detach "${loop}"
  fail "the device cannot be made"
fi
echo "virtual device: /dev/mapper/${name} has the boot and root partitions of /dev/${disk}"
