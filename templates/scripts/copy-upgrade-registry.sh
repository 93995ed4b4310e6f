#!/usr/bin/env bash
# Adds what a mounted upgrade ISO has to this host's own registry, so that the ISO may be detached.
# Nothing that is there is changed. It may be killed at any moment: the next run continues.
set -euo pipefail
umask 022

readonly medium=/media/upgrade/oc-mirror/install/docker/registry/v2
readonly copy=/var/lib/appliance-registry
readonly own="${copy}/docker/registry/v2"
# Of /var, for everything else that the host writes.
readonly reserve=$((10 * 1024 ** 3))
# Trying again at once does not help; the next start of the host does.
readonly give_up=3
# In the same file system: what is complete gets its place by a link or a rename.
readonly staging="${copy}.upgrade"
# What a registry writes. Anybody can attach an ISO with other names, and longer links.
readonly repository='[a-z0-9][a-z0-9._/-]*'
readonly hex='[0-9a-f]{64}'
readonly blob="sha256/[0-9a-f]{2}/${hex}/data"
readonly layer_link="sha256/${hex}/link"
readonly manifest_link="(revisions/sha256/${hex}|tags/[A-Za-z0-9_][A-Za-z0-9_.-]*/(current|index/sha256/${hex}))/link"
readonly link_size=71

# Arguments: message, exit status
fail() {
  echo "upgrade registry: $1" >&2
  exit "$2"
}

format_size() {
  numfmt --to=iec-i --suffix=B --format=%.1f "$1"
}

# Writes the blobs that this host does not have, and sets their size.
list_missing_blobs() {
  local bytes path
  find "${medium}/blobs" -regextype posix-extended -type f -regex "${medium}/blobs/${blob}" \
    -printf '%s %P\n' >"${staging}/blobs"
  : >"${staging}/missing-blobs"
  while read -r bytes path; do
    if [[ ! -e "${own}/blobs/${path}" ]]; then
      echo "${path}" >>"${staging}/missing-blobs"
      size=$((size + bytes))
    fi
  done <"${staging}/blobs"
}

check_space() {
  local free
  free="$(df --output=avail --block-size=1 "${copy}" | tail --lines=1)"
  if ((free < size + reserve)); then
    fail "a copy needs $(format_size "$((size + reserve))") on the disk, but $(format_size "${free}") are free: leave the upgrade ISO attached" "${give_up}"
  fi
}

# Arguments: path below blobs, which ends in the digest and /data
copy_blob() {
  local digest found
  digest="$(basename "$(dirname "$1")")"
  cp --no-preserve=mode "${medium}/blobs/$1" "${staging}/blob"
  found="$(sha256sum "${staging}/blob" | cut --delimiter=' ' --fields=1)"
  if [[ "${found}" != "${digest}" ]]; then
    fail "blob sha256:${digest} of the upgrade ISO is read as sha256:${found}: attach it again" 1
  fi
  sync "${staging}/blob"
  mkdir --parents "$(dirname "${own}/blobs/$1")"
  mv --no-target-directory "${staging}/blob" "${own}/blobs/$1"
}

# Arguments: "_layers" or "_manifests", and the paths of links in it. A release keeps its only tag,
# because the cluster counts them.
copy_links() {
  local path releases=openshift/release-images/_manifests/tags
  local staged="${staging}/$1"
  find "${medium}/repositories" -regextype posix-extended -type f -size "${link_size}c" \
    -regex "${medium}/repositories/${repository}/$1/$2" -printf '%P\n' >"${staging}/links"
  : >"${staging}/missing-links"
  while read -r path; do
    if [[ ! -e "${own}/repositories/${path}" ]] &&
      [[ "${path}" != "${releases}"/* || "${path}" == "${releases}"/sha256-* ]]; then
      echo "${path}" >>"${staging}/missing-links"
    fi
  done <"${staging}/links"
  mkdir "${staged}"
  (cd "${medium}/repositories" && xargs --no-run-if-empty --delimiter='\n' \
    --arg-file="${staging}/missing-links" cp --parents --no-preserve=mode --target-directory="${staged}")
  chmod --recursive u=rwX,go=rX "${staged}"
  # A link must never stand in the tree empty.
  sync --file-system "${staging}"
  mkdir --parents "${own}/repositories"
  cp --recursive --link "${staged}/." "${own}/repositories/"
}

# What a running cluster names must not change by attaching an ISO.
name_kept_tags() {
  local path tag
  while read -r path; do
    if ! cmp --quiet "${medium}/repositories/${path}" "${own}/repositories/${path}"; then
      tag="${path%/current/link}"
      echo "upgrade registry: ${path%%/_manifests/*}:${tag##*/} stays the image of this host; the ISO has another one, by digest"
    fi
  done < <(find "${medium}/repositories" -type f -path '*/_manifests/tags/*/current/link' \
    ! -path '*/openshift/release-images/*' -printf '%P\n' | sort)
}

if [[ -d "${copy}.partial" ]]; then
  fail "waiting for the copy of the appliance ISO" 1
fi
if [[ ! -d "${own}" ]]; then
  fail "this host has no copy of its registry at ${copy}: leave the upgrade ISO attached" "${give_up}"
fi
rm --recursive --force "${staging}"
mkdir "${staging}"
size=0
list_missing_blobs
check_space
if ((size > 0)); then
  echo "upgrade registry: copying $(format_size "${size}") from the upgrade ISO: leave it attached"
fi
while read -r path; do
  copy_blob "${path}"
done <"${staging}/missing-blobs"
copy_links _layers "${layer_link}"
copy_links _manifests "${manifest_link}"
name_kept_tags
sync --file-system "${copy}"
rm --recursive --force "${staging}"
echo "upgrade registry: this host has every image of the upgrade ISO, which may be detached"
