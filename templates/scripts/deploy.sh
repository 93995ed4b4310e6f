#!/usr/bin/env bash
# Writes the disk image of the medium to a disk. A larger disk gets its last two partitions at its end, and the
# partition root everything in front of them. The partition tables come last: a disk that is half written does not boot.
# Arguments: a disk that replaces the one named at build time; naming it ends a dry run.
set -euo pipefail

readonly named='{{ target-device }}'
# "yes": describe the disks and write nothing
dry_run='{{ dry-run }}'
# "yes": the disk has nothing but zeros, so zeros are not written
readonly sparse='{{ sparse-clone }}'
# Script that runs on the live system after the disk is written; empty: none
readonly post_script='{{ post-script }}'

readonly medium=/run/media/iso
readonly image="${medium}/deploy/appliance.raw"
# Blocks of 512 bytes: the size of the image, the end of partition boot, and the starts of the others.
readonly image_blocks='{{ image-blocks }}'
readonly boot_end='{{ boot-end }}'
readonly root_start='{{ root-start }}'
readonly recovery_start='{{ recovery-start }}'
readonly data_start='{{ data-start }}'
readonly data_end='{{ data-end }}'
# Protective MBR, header and entries.
readonly table_blocks=34
# Free blocks between the new partitions, as the image has them.
readonly gap=128
# 1 MiB: partitions of a larger disk stay aligned.
readonly alignment=2048
# 256 MiB: progress is reported after each.
readonly piece=$((512 * 1024))

say() {
  printf 'deploy: %s\n' "$1"
}

fail() {
  printf '\033[31mdeploy: %s\033[0m\n' "$1" >&2
  exit 1
}

# A controller may show a disk late, and a link to it later still.
wait_for_target() {
  local attempt
  udevadm settle --timeout=5 || true
  for ((attempt = 0; attempt < 30; attempt++)); do
    if [[ -b "${named_target}" ]]; then
      return
    fi
    udevadm settle --timeout=5 || true
    sleep 2
  done
  fail "there is no disk ${named_target}: $(lsblk --nodeps --noheadings --output PATH | xargs)"
}

# Arguments: device
disk_of() {
  local parent
  parent="$(lsblk --nodeps --noheadings --output PKNAME "$1" | head --lines=1)"
  [[ -z "${parent}" ]] && readlink --canonicalize "$1" || echo "/dev/${parent}"
}

check_target() {
  local source
  source="$(findmnt --noheadings --output SOURCE "${medium}")" || fail "${medium} is not mounted"
  [[ -f "${image}" ]] || fail "the medium has no disk image"
  if [[ "$(disk_of "${source}")" == "$(disk_of "${target}")" ]]; then
    fail "${target} is the medium that this system was booted from"
  fi
  [[ "$(lsblk --nodeps --noheadings --output TYPE "${target}" | xargs)" != part ]] ||
    fail "${target} is a partition: name a disk"
  [[ -z "$(lsblk --noheadings --output MOUNTPOINT "${target}" | xargs)" ]] ||
    fail "${target} is mounted"
  (($(blockdev --getss "${target}") == 512)) || fail "${target} does not have blocks of 512 bytes"
  disk_blocks="$(blockdev --getsz "${target}")"
  if ((disk_blocks < image_blocks)); then
    fail "${target} has $((disk_blocks * 512)) bytes, but the disk image has $((image_blocks * 512))"
  fi
}

# Arguments: source, first block in it, blocks, first block on the disk, words for the report
copy() {
  local from="$1" first="$2" blocks="$3" to="$4" what="$5" done=0 count
  while ((done < blocks)); do
    count=$((blocks - done < piece ? blocks - done : piece))
    dd if="${from}" of="${target}" bs=1M status=none conv="notrunc,fsync${conversion}" \
      iflag=fullblock,skip_bytes,count_bytes oflag=seek_bytes \
      skip=$(((first + done) * 512)) count=$((count * 512)) seek=$(((to + done) * 512)) ||
      fail "${what} cannot be copied to ${target}"
    done=$((done + count))
    say "${what}: $((done / 2048)) of $((blocks / 2048)) MiB"
  done
}

write_larger_tables() {
  local root_first=$(((boot_end + alignment - 1) / alignment * alignment))
  local root_size=$((recovery_start + shift_by - gap - root_first))
  sfdisk --dump "${image}" | sed --regexp-extended \
    --expression='/^last-lba:/d' \
    --expression="s/start= *${root_start}, size= *[0-9]+,/start=${root_first}, size=${root_size},/" \
    --expression="s/start= *${recovery_start},/start=$((recovery_start + shift_by)),/" \
    --expression="s/start= *${data_start},/start=$((data_start + shift_by)),/" |
    sfdisk --quiet --wipe never --wipe-partitions never --no-reread --no-tell-kernel "${target}" ||
    fail "the partition table of ${target} cannot be written"
  # Boot code, up to the signature of the disk.
  dd if="${image}" of="${target}" bs=440 count=1 conv=notrunc,fsync status=none
}

write_tables() {
  conversion=
  if ((disk_blocks > image_blocks)); then
    write_larger_tables
  else
    copy "${image}" "${data_end}" "$((image_blocks - data_end))" "${data_end}" 'backup partition table'
    copy "${image}" 0 "${table_blocks}" 0 'partition table'
  fi
  blockdev --rereadpt "${target}" || say "the kernel sees the partitions of ${target} after a restart"
  udevadm settle --timeout=30 || true
}

write_disk() {
  shift_by=$(((disk_blocks - image_blocks) / alignment * alignment))
  wipefs --all --quiet "${target}" || fail "${target} is in use"
  conversion=
  if [[ "${sparse}" == yes ]]; then
    conversion=,sparse
  else
    copy /dev/zero 0 "$((root_start - boot_end))" "${boot_end}" 'empty root partition'
  fi
  copy "${image}" "${table_blocks}" "$((boot_end - table_blocks))" "${table_blocks}" 'boot partitions'
  copy "${image}" "${root_start}" "$((data_end - root_start))" "$((root_start + shift_by))" \
    'recovery system and registry'
  write_tables
}

named_target="${1:-${named}}"
if (($# > 0)); then
  dry_run=no
fi
if [[ "${dry_run}" == yes ]]; then
  lsblk --output NAME,SIZE,TYPE,TRAN,MODEL,SERIAL,MOUNTPOINT
  say "dry run: nothing is written. It would be ${named}."
  say "log in as core, and write a disk with: sudo /usr/local/bin/deploy.sh /dev/DISK"
  exit 0
fi
wait_for_target
target="$(readlink --canonicalize "${named_target}")"
check_target
say "writing the disk image to ${named_target} (${target})"
write_disk
printf '\033[32mdeploy: %s has the disk image. Detach the medium and restart the machine.\033[0m\n' "${target}"
if [[ -n "${post_script}" ]]; then
  "/usr/local/bin/${post_script}" || say "${post_script} ended with exit status $?"
fi
