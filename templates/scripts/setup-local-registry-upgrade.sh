#!/usr/bin/env bash
# Everything that the registry of a mounted upgrade ISO needs before it starts.
set -euo pipefail

readonly image='localhost/appliance-registry:latest'
# The unit reads it when it starts the registry.
readonly environment=/run/registry-upgrade.env

# OpenShift's docker-registry does not start the server by itself. Which image a host has depends on the
# medium that installed it.
describe_start() {
  local root options='' command=''
  root="$(podman image mount "${image}")"
  if [[ -e "${root}/usr/bin/distribution" && -e "${root}/etc/registry/config.yaml" ]]; then
    options='--user=0 --entrypoint=/usr/bin/distribution'
    command='serve /etc/registry/config.yaml'
  fi
  podman image unmount "${image}" >/dev/null
  printf 'REGISTRY_RUN_OPTIONS=%s\nREGISTRY_COMMAND=%s\n' "${options}" "${command}"
}

# The kubelet removes images that no container uses.
/usr/local/bin/load-local-registry-image.sh
/usr/local/bin/certify-local-registry.sh /etc/appliance-registry/certs-upgrade '{{ port }}'
describe_start >"${environment}"
