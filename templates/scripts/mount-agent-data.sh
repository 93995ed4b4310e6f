#!/usr/bin/env bash
# Shows the registry tree of the medium, or of the disk it was copied to, read-only at /mnt/agentdata.
# Running it again is harmless.
set -euo pipefail

# "live" on the booted medium, "installed" on a host that runs from its disk
readonly stage='{{ stage }}'
readonly medium=/run/media/iso
readonly copy=/var/lib/iri-registry
readonly target=/mnt/agentdata
readonly wait_limit=600

fail() {
  echo "agent data: $1" >&2
  exit 1
}

wait_for_medium() {
  local waited=0
  until mountpoint --quiet "${medium}" && [[ -d "${medium}/registry" ]]; do
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

# An installer copies the tree to the disks of control plane hosts; the others keep reading the medium.
find_source() {
  if [[ "${stage}" == installed && -d "${copy}" ]]; then
    source_dir="${copy}"
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
  [[ -d "${target}/docker/registry/v2" ]] || fail "${target}/docker/registry/v2 is no directory"
  [[ -n "$(ls --almost-all "${target}/docker/registry/v2")" ]] ||
    fail "${target}/docker/registry/v2 is empty: the medium was not written to its end"
}

source_dir=
find_source
bind_source
verify_target
echo "agent data: ${source_dir} is at ${target}"
