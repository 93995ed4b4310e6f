#!/usr/bin/env bash
# Copies the registry tree of the medium to this host's disk, so that the medium may be detached.
# It may be killed at any moment: the next run continues. With a complete copy it changes nothing.
set -euo pipefail
umask 022

# Bytes of all blobs and manifests, known when the medium was built.
readonly tree_size='{{ tree-size }}'
readonly source_dir=/run/media/iso/registry
readonly copy=/var/lib/appliance-registry
readonly partial="${copy}.partial"
# The cluster's own registry serves it: what mount-agent-data.sh leaves there stays there.
readonly installer_copy=/var/lib/iri-registry
readonly target=/mnt/agentdata
# Of /var, for everything else that the host writes.
readonly reserve=$((10 * 1024 ** 3))
readonly rounds=3
# Trying again at once does not help; the next start of the registry does.
readonly give_up=3

# Arguments: message, exit status
fail() {
  echo "registry data: $1" >&2
  exit "$2"
}

format_size() {
  numfmt --to=iec-i --suffix=B --format=%.1f "$1"
}

check_space() {
  local free copied=0 needed=$((tree_size + reserve))
  if [[ -d "${partial}" ]]; then
    copied="$(du --summarize --block-size=1 "${partial}" | cut --fields=1)"
  fi
  free="$(df --output=avail --block-size=1 "$(dirname "${copy}")" | tail --lines=1)"
  if ((copied + free < needed)); then
    fail "a copy needs $(format_size "${needed}") on the disk, but $(format_size "$((copied + free))") are free: this host keeps serving from the medium, so leave it attached" "${give_up}"
  fi
}

# Blobs that are there stay: their digests are checked below. The small rest is copied each time.
copy_tree() {
  local -a options=(--recursive --no-preserve=mode --preserve=timestamps)
  local blobs=docker/registry/v2/blobs
  mkdir --parents "${partial}/docker/registry/v2"
  cp "${options[@]}" --update --no-target-directory "${source_dir}/${blobs}" "${partial}/${blobs}"
  cp "${options[@]}" "${source_dir}/docker/registry/v2/repositories" "${partial}/docker/registry/v2/"
  cp "${options[@]}" "${source_dir}/images" "${partial}/"
  sync --file-system "${partial}"
}

# What sha256sum reads: blobs are named by their digest, in the registry and in the form dir: of an image.
list_sums() {
  cd "${partial}" &&
    find docker/registry/v2/blobs -type f -name data -printf '%h\n' |
    sed 's|.*/\([0-9a-f]\{64\}\)$|\1  &/data|' &&
    find images/registry -regextype posix-extended -type f -regex '.*/[0-9a-f]{64}' -printf '%f  %p\n'
}

# Removes what is damaged; fails when there was any.
verify_copy() {
  local report damaged path
  if report="$(list_sums | (cd "${partial}" && LC_ALL=C sha256sum --check --quiet) 2>&1)"; then
    return 0
  fi
  damaged="$(sed --quiet 's/: FAILED.*$//p' <<<"${report}")"
  if [[ -z "${damaged}" ]]; then
    fail "the copy cannot be verified: ${report}" 1
  fi
  while read -r path; do
    echo "registry data: ${path} is not what its digest says" >&2
    rm --force "${partial:?}/${path}"
  done <<<"${damaged}"
  return 1
}

finish_copy() {
  mv --no-target-directory "${partial}" "${copy}"
  sync "$(dirname "${copy}")"
}

# The registry shows the copy and gives the medium back when it starts again.
switch_registry() {
  rm --recursive --force "${partial}"
  if ! [[ "${copy}" -ef "${target}" ]]; then
    echo "registry data: ${copy} is complete: the appliance ISO is no longer needed and may be detached"
    systemctl --no-block try-restart start-local-registry.service
  fi
}

if [[ -d "${copy}" ]]; then
  switch_registry
  exit 0
fi
if [[ -d "${installer_copy}" ]]; then
  exit 0
fi
[[ -d "${source_dir}" ]] || fail "${source_dir} is missing: attach the appliance ISO again" 1
check_space
echo "registry data: copying $(format_size "${tree_size}") from the appliance ISO: leave it attached"
for ((round = 1; round <= rounds; round++)); do
  copy_tree
  if verify_copy; then
    finish_copy
    switch_registry
    exit 0
  fi
done
fail "damaged after ${rounds} copies: the appliance ISO cannot be read correctly; this host keeps serving from it" "${give_up}"
