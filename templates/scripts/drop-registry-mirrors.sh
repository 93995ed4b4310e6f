#!/usr/bin/env bash
# Takes the mirrors to the local registries, which stop, out of the cluster's configuration.
set -euo pipefail

export KUBECONFIG=/etc/kubernetes/static-pod-resources/kube-apiserver-certs/secrets/node-kubeconfigs/localhost.kubeconfig
# The machine config operator writes it when it has pulled every pinned image.
readonly pinned=/etc/crio/crio.conf.d/50-pinned-images
readonly interval=60

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

until is_cluster_available; do
  sleep "${interval}"
done
while [[ -d /etc/assisted/pinned-image-sets && ! -e "${pinned}" ]]; do
  echo "registry mirrors: they stay until this host has every pinned image"
  sleep "${interval}"
done
drop_mirrors master
drop_mirrors worker
