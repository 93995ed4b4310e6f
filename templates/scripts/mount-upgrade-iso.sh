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
mount --options ro,nosuid,nodev,noexec "$1" "${mount}"
if [[ ! -f "${mount}/release.env" || ! -d "${registry}/repositories" ]]; then
  umount "${mount}"
  fail "$1: it has no release.env, or no ${registry#"${mount}"/}: attach the upgrade ISO again"
fi
# Anybody who can attach a disk could have the registry show files of this host by them.
link="$(find "${mount}" -type l -print -quit)"
if [[ -n "${link}" ]]; then
  umount "${mount}"
  fail "$1: it has symbolic links, as $(printf %q "${link#"${mount}"/}"): it is not an upgrade ISO"
fi
