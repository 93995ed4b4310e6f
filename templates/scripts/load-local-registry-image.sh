#!/usr/bin/env bash
# Loads the registry server's image from the medium and gives it the name that the unit runs. The name
# is ours alone: a digest of another registry can be looked up only when a tag of that repository exists.
set -euo pipefail

readonly image='localhost/appliance-registry:latest'
readonly source_dir="${REGISTRY_DATA:-/mnt/agentdata/}images/registry"

if podman image exists "${image}"; then
  exit 0
fi

# --quiet prints the id alone, so no listing has to be searched afterwards
id="$(podman pull --quiet "dir:${source_dir}" | head --lines=1)"
if [[ -z "${id}" ]]; then
  echo "registry image: podman loaded nothing from ${source_dir}" >&2
  exit 1
fi
podman tag "${id}" "${image}"
echo "registry image: ${image} is ${id}, planned as ${REGISTRY_IMAGE:-unknown}"
