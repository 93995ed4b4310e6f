#!/usr/bin/env bash
# Shows the registry tree of the medium, or of its copy on the disk, read-only at /mnt/agentdata.
# Running it again is harmless.
set -euo pipefail

# "live" on the booted medium, "installed" on a host that runs from its disk
readonly stage='{{ stage }}'
# "yes": the cluster's own registry, which an InternalReleaseImage describes, serves the installer's copy
readonly internal_release_image='{{ internal-release-image }}'
# "iso": the registry is on the booted ISO; "partition": on a partition of the disk, which stays attached
readonly carrier='{{ carrier }}'
readonly partition=/dev/disk/by-partlabel/agentdata
if [[ "${carrier}" == partition ]]; then
  readonly medium=/run/media/agentdata
else
  readonly medium=/run/media/iso
fi
readonly copy=/var/lib/appliance-registry
# Not verified yet.
readonly partial="${copy}.partial"
# An installer of 4.21 and later fills it on control plane hosts.
readonly installer_copy=/var/lib/iri-registry
readonly target=/mnt/agentdata
readonly wait_limit=600

fail() {
  echo "agent data: $1" >&2
  exit 1
}

# Where no InternalReleaseImage is, the machine config daemon empties the installer's directory as soon as
# the registry's port refuses a connection. The daemon's own image comes from this registry, so before the
# first start it does not run yet. Whether the copy is complete is for copy-registry-data.sh to see.
adopt_installer_copy() {
  if [[ "${internal_release_image}" == yes || ! -d "${installer_copy}" || -e "${copy}" ]]; then
    return 0
  fi
  rm --recursive --force "${copy}.checks" "${partial}"
  mv --no-target-directory "${installer_copy}" "${partial}"
  sync "$(dirname "${copy}")"
  echo "agent data: ${installer_copy} is now ${partial}"
}

# Arguments: directory
has_contents() {
  [[ -f "$1/images/registry/manifest.json" ]] &&
    [[ -n "$(ls --almost-all "$1/docker/registry/v2/blobs" 2>/dev/null)" ]] &&
    [[ -n "$(ls --almost-all "$1/docker/registry/v2/repositories" 2>/dev/null)" ]]
}

mount_partition() {
  if [[ "${carrier}" == partition && -b "${partition}" ]] && ! mountpoint --quiet "${medium}"; then
    mkdir --parents "${medium}"
    mount --options ro "${partition}" "${medium}"
  fi
}

has_medium() {
  mount_partition
  mountpoint --quiet "${medium}" && [[ -d "${medium}/registry" ]]
}

wait_for_medium() {
  local waited=0
  until has_medium; do
    if ((waited >= wait_limit)); then
      if mountpoint --quiet "${medium}"; then
        fail "${medium} has no directory registry: attach the appliance ISO, not another one"
      fi
      fail "no medium at ${medium} after ${wait_limit} s: attach the appliance ISO again, or restart the BMC's virtual media"
    fi
    if ((waited % 60 == 0)); then
      echo "agent data: waiting for the medium at ${medium}"
    fi
    sleep 5
    waited=$((waited + 5))
  done
}

find_source() {
  if [[ "${stage}" == live ]]; then
    wait_for_medium
    source_dir="${medium}/registry"
    return
  fi
  adopt_installer_copy
  if [[ -d "${copy}" ]]; then
    source_dir="${copy}"
  elif [[ -d "${installer_copy}" ]]; then
    source_dir="${installer_copy}"
  elif ! has_medium && has_contents "${partial}"; then
    source_dir="${partial}"
  else
    wait_for_medium
    source_dir="${medium}/registry"
  fi
}

bind_source() {
  if [[ -L "${target}" ]]; then
    rm --force "${target}"
  fi
  mkdir --parents "${target}"
  # It shows the medium from before the copy, or a medium that was detached since.
  if mountpoint --quiet "${target}" && ! [[ "${source_dir}" -ef "${target}" ]]; then
    umount --lazy "${target}"
  fi
  if ! mountpoint --quiet "${target}"; then
    mount --bind "${source_dir}" "${target}"
  fi
  mount --options remount,bind,ro "${target}"
}

verify_target() {
  local manifest="${target}/images/registry/manifest.json"
  mountpoint --quiet "${target}" || fail "${target} is not mounted"
  [[ -f "${manifest}" ]] || fail "${manifest} is missing: attach the appliance ISO again"
  # A BMC that lost the medium still lists its files, but reading them fails.
  head --bytes=4096 "${manifest}" >/dev/null ||
    fail "${manifest} cannot be read: attach the appliance ISO again, or restart the BMC's virtual media"
  [[ -d "${target}/docker/registry/v2" ]] || fail "${target}/docker/registry/v2 is not a directory"
  [[ -n "$(ls --almost-all "${target}/docker/registry/v2")" ]] ||
    fail "${target}/docker/registry/v2 is empty: the medium was not written to its end"
}

release_medium() {
  if [[ "${source_dir}" == "${copy}" ]] && mountpoint --quiet "${medium}"; then
    umount --lazy "${medium}"
  fi
}

source_dir=
find_source
bind_source
verify_target
release_medium
echo "agent data: ${source_dir} is at ${target}"
