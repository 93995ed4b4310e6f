#!/usr/bin/env bash
# Stops the local registry when the cluster is there and has its pinned images, and on node zero takes
# the mirrors to it out of the cluster's configuration.
set -euo pipefail

export KUBECONFIG=/etc/kubernetes/static-pod-resources/kube-apiserver-certs/secrets/node-kubeconfigs/localhost.kubeconfig
# The machine config operator writes it when it has pulled every pinned image.
readonly pinned=/etc/crio/crio.conf.d/50-pinned-images
readonly interval=60
readonly control_plane_limit=7200

is_cluster_available() {
  [[ -s "${KUBECONFIG}" ]] &&
    [[ "$(oc get clusterversion version --output \
      'jsonpath={.status.conditions[?(@.type=="Available")].status}')" == True ]]
}

# Arguments: role. Pausing and resuming makes the pool look at its configuration again.
drop_mirrors() {
  local config="99-$1-generated-registries"
  if ! oc get machineconfig "${config}" >/dev/null 2>&1; then
    return
  fi
  oc label machineconfig "${config}" machineconfiguration.openshift.io/role-
  oc patch machineconfigpool "$1" --type merge --patch '{"spec":{"paused":true}}'
  oc patch machineconfigpool "$1" --type merge --patch '{"spec":{"paused":false}}'
}

waited=0
until is_cluster_available; do
  # Only control plane hosts ever get this file; a worker cannot see whether the cluster is there.
  if [[ ! -e "${KUBECONFIG}" ]] && ((waited >= control_plane_limit)); then
    echo "local registry: this is no control plane host, so its registry keeps running"
    exit 0
  fi
  sleep "${interval}"
  waited=$((waited + interval))
done
while [[ -d /etc/assisted/pinned-image-sets && ! -e "${pinned}" ]]; do
  echo "local registry: it runs until this host has every pinned image"
  sleep "${interval}"
done
if [[ -f /etc/assisted/node0 ]]; then
  drop_mirrors master
  drop_mirrors worker
fi
systemctl disable --now start-local-registry.service
