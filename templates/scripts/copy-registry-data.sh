#!/usr/bin/env bash
# Makes a complete registry tree on this host's disk, so that the medium may be detached: of what is there
# already, and of the medium for the rest. It may be killed at any moment: the next run continues. With a
# complete copy it changes nothing.
set -euo pipefail
umask 022

# Bytes of all blobs and manifests, known when the medium was built.
readonly tree_size='{{ tree-size }}'
# SHA-256 of the sorted lines of sha256sum for every file of the tree.
readonly tree_digest='{{ tree-digest }}'
# "copy": every host has a copy; "medium": only where the installer left one
readonly registry_data='{{ registry-data }}'
readonly medium=/run/media/iso
readonly source_dir="${medium}/registry"
readonly copy=/var/lib/appliance-registry
readonly partial="${copy}.partial"
# What has been read and found right, across runs.
readonly checks="${copy}.checks"
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
    # A disk that became full meanwhile gets it back, unless the registry shows it.
    if ! [[ "${partial}" -ef "${target}" ]]; then
      rm --recursive --force "${checks}" "${partial}"
    fi
    fail "a copy needs $(format_size "${needed}") on the disk, but $(format_size "$((copied + free))") are free: this host keeps serving from the medium, so leave it attached" "${give_up}"
  fi
}

# Arguments: root, directory, then what find(1) looks for in it. Nothing where the directory is missing.
list() {
  local root="$1"
  shift
  if [[ -d "${root}/$1" ]]; then
    (cd "${root}" && find "$@")
  fi
}

# Lines as of sha256sum: blobs are named by their digest, in the registry and in the form dir: of an image.
# Arguments: root
list_blobs() {
  {
    list "$1" docker/registry/v2/blobs -type f -name data -printf '%h\n' |
      sed --quiet 's|.*/\([0-9a-f]\{64\}\)$|\1  &/data|p'
    list "$1" images/registry -regextype posix-extended -type f -regex '.*/[0-9a-f]{64}' -printf '%f  %p\n'
  } | LC_ALL=C sort
}

# Arguments: root
sum_rest() {
  {
    list "$1" docker/registry/v2/repositories -type f -name link -print0
    list "$1" images/registry -type f '(' -name version -o -name '*manifest.json' ')' -print0
  } | (cd "$1" && xargs --null --no-run-if-empty sha256sum)
}

# Blobs that were found right are not read from the medium again.
copy_tree() {
  local -a options=(--no-preserve=mode --preserve=timestamps)
  local path
  list_blobs "${source_dir}" | LC_ALL=C comm -13 "${checks}/right" - >"${checks}/missing"
  while read -r _ path; do
    mkdir --parents "$(dirname "${partial}/${path}")"
    cp "${options[@]}" "${source_dir}/${path}" "${partial}/${path}"
  done <"${checks}/missing"
  cp "${options[@]}" --recursive "${source_dir}/docker/registry/v2/repositories" "${partial}/docker/registry/v2/"
  cp "${options[@]}" "${source_dir}"/images/registry/{version,*manifest.json} "${partial}/images/registry/"
}

# Reads the blobs that no run has found right yet, and removes what is damaged.
verify_blobs() {
  local digest path found
  touch "${checks}/right"
  list_blobs "${partial}" >"${checks}/blobs"
  LC_ALL=C sort --unique "${checks}/right" | LC_ALL=C comm -12 - "${checks}/blobs" >"${checks}/right.new"
  mv --force "${checks}/right.new" "${checks}/right"
  LC_ALL=C comm -13 "${checks}/right" "${checks}/blobs" >"${checks}/unread"
  while read -r digest path; do
    found="$(sha256sum <"${partial}/${path}" | cut --characters=-64)" || found=unreadable
    if [[ "${found}" == "${digest}" ]]; then
      echo "${digest}  ${path}" >>"${checks}/right"
    else
      echo "registry data: ${path} is not what its digest says" >&2
      rm --force "${partial:?}/${path}"
    fi
  done <"${checks}/unread"
  LC_ALL=C sort --output="${checks}/right" "${checks}/right"
}

# Whether every file of the tree is there and right.
verify_copy() {
  local found
  # What is read must be what is on the disk.
  sync --file-system "${partial}"
  verify_blobs
  found="$({ cat "${checks}/right" && sum_rest "${partial}"; } | LC_ALL=C sort | sha256sum | cut --characters=-64)"
  [[ "${found}" == "${tree_digest}" ]]
}

finish_copy() {
  mv --no-target-directory "${partial}" "${copy}"
  sync "$(dirname "${copy}")"
  switch_registry new
}

# The registry shows the copy and gives the medium back when it starts again. Argument: "new" or "known"
switch_registry() {
  local is_shown=no
  rm --recursive --force "${partial}" "${checks}"
  if [[ "${copy}" -ef "${target}" ]] && ! mountpoint --quiet "${medium}"; then
    is_shown=yes
  fi
  if [[ "$1" == new || "${is_shown}" == no ]]; then
    echo "registry data: ${copy} is complete: the appliance ISO is no longer needed and may be detached"
  fi
  if [[ "${is_shown}" == no ]]; then
    systemctl --no-block try-restart start-local-registry.service
  fi
}

if [[ -d "${copy}" ]]; then
  switch_registry known
  exit 0
fi
if [[ -d "${installer_copy}" ]] || [[ "${registry_data}" == medium && ! -d "${partial}" ]]; then
  exit 0
fi
if [[ -d "${partial}" ]]; then
  echo "registry data: verifying what this host has of it"
  mkdir --parents "${checks}"
  if verify_copy; then
    finish_copy
    exit 0
  fi
  echo "registry data: a part is missing or damaged: it is copied again"
else
  rm --recursive --force "${checks}"
fi
[[ -d "${source_dir}" ]] || fail "${source_dir} is missing: attach the appliance ISO again" 1
check_space
mkdir --parents "${checks}" "${partial}"/{docker/registry/v2,images/registry}
touch "${checks}/right"
echo "registry data: copying $(format_size "${tree_size}") from the appliance ISO: leave it attached"
for ((round = 1; round <= rounds; round++)); do
  copy_tree
  if verify_copy; then
    finish_copy
    exit 0
  fi
done
fail "damaged after ${rounds} copies: the appliance ISO cannot be read correctly; this host keeps serving from it" "${give_up}"
