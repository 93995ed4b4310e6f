#!/usr/bin/env bash
# Gives the registry server's image the name that the units run, and loads it from the medium where the
# host does not have it. The name is ours alone: a digest of another registry can be looked up only when
# a tag of that repository exists.
set -euo pipefail

readonly image='localhost/appliance-registry:latest'
readonly source_dir="${REGISTRY_DATA:-/mnt/agentdata/}images/registry"
readonly planned="${REGISTRY_IMAGE:-}"

if podman image exists "${image}"; then
  exit 0
fi
# Media of other builders load it by its own name.
if [[ -n "${planned}" ]] && podman image exists "${planned}"; then
  podman tag "${planned}" "${image}"
  exit 0
fi

# --quiet prints the id alone, so no listing has to be searched afterwards
id="$(podman pull --quiet "dir:${source_dir}" | head --lines=1)"
if [[ -z "${id}" ]]; then
  echo "registry image: podman loaded nothing from ${source_dir}" >&2
  exit 1
fi
podman tag "${id}" "${image}"
echo "registry image: ${image} is ${id}, planned as ${planned:-unknown}"
