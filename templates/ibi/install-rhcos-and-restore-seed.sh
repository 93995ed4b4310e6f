#!/usr/bin/env bash
# Installs RHCOS on this host's disk and puts the seed image on it. The program that does so is in the
# seed image itself.
set -euo pipefail

readonly seed_image="${1:-${SEED_IMAGE:-}}"
readonly auth_file="${PULL_SECRET_FILE:-/var/tmp/pull-secret.json}"
readonly config="${IBI_CONFIGURATION_FILE:-/var/tmp/ibi-configuration.json}"
readonly container=lca-cli
readonly program=/usr/local/bin/lca-cli

if [[ -z "${seed_image}" ]]; then
  echo "seed image: none is named, neither as argument nor as SEED_IMAGE" >&2
  exit 1
fi

# An earlier run of this script may have been ended in between.
podman rm --force --ignore "${container}"

# The network may come up late, and registries may be away for a while.
until podman create --authfile "${auth_file}" --name "${container}" "${seed_image}" lca-cli; do
  echo "seed image: ${seed_image} cannot be pulled, trying again" >&2
  sleep 10
done
podman cp "${container}:lca-cli" "${program}"
podman rm "${container}"

"${program}" ibi -f "${config}"
