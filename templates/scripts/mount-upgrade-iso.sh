#!/usr/bin/env bash
# Mounts an upgrade ISO, one at a time. Argument: its device
set -euo pipefail

readonly mount=/media/upgrade
readonly registry="${mount}/oc-mirror/install/docker/registry/v2"

fail() {
  echo "upgrade ISO in $1" >&2
  exit 1
}

mkdir --parents "${mount}"
if mountpoint --quiet "${mount}"; then
  fail "$1: another one is at ${mount}: detach one of the two"
fi
mount --options ro "$1" "${mount}"
if [[ ! -f "${mount}/release.env" || ! -d "${registry}/repositories" ]]; then
  umount "${mount}"
  fail "$1: it has no release.env, or no ${registry#"${mount}"/}: attach the upgrade ISO again"
fi
