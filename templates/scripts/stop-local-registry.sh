#!/usr/bin/env bash
# Stops the local registry when the cluster is there and this host has its pinned images.
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
systemctl disable --now start-local-registry.service
