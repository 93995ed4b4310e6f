#!/usr/bin/env bash
# Upgrades the cluster for a MachineConfig of another builder, which only names the version: its release
# is that of the attached upgrade ISO. Nothing says which versions may be upgraded to it, so those of
# its own minor version and of the one before may. It is requested as a signed one: never forced.
# Argument: version
set -euo pipefail

readonly version="$1"
readonly release=/media/upgrade/release.env
# The ISO may be detached when the host has copied it.
readonly directory="/var/lib/appliance-upgrade/${version}"

look_again() {
  echo "cluster upgrade: $1"
  exit 75
}

# Arguments: key
read_release() {
  sed --quiet "s/^$1=//p" "${release}" | tail --lines=1
}

list_sources() {
  local major minor
  IFS=. read -r major minor _ <<<"${version}"
  printf '%s.%s.*' "${major}" "${minor}"
  if ((minor > 0)); then
    printf ',%s.%s.*' "${major}" "$((minor - 1))"
  fi
}

write_hops() {
  local image found
  if [[ ! -f "${release}" ]]; then
    look_again "attach the upgrade ISO of ${version} to this host"
  fi
  image="$(read_release RELEASE_IMAGE)"
  found="$(read_release RELEASE_VERSION)"
  if [[ "${found}" != "${version}" ]]; then
    look_again "the attached upgrade ISO has ${found:-no release}: attach that of ${version}"
  fi
  if [[ ! "${image}" =~ ^[^[:space:]]+@sha256:[0-9a-f]{64}$ ]]; then
    look_again "the upgrade ISO names its release \"${image}\", not by its digest: attach another one"
  fi
  mkdir --parents "${directory}"
  echo "${version} ${image} signed $(list_sources)" >"${directory}/hops.new"
  mv --force "${directory}/hops.new" "${directory}/hops"
}

if [[ ! -s "${directory}/hops" ]]; then
  write_hops
fi
exec /usr/local/bin/upgrade-cluster.sh "${version}" "${directory}"
