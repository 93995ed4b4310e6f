#!/usr/bin/env bash
# Stops the local registry when the cluster is there and this host has its pinned images.
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

# A worker never sees the cluster: its registry keeps running. From a slow medium it takes hours.
until is_cluster_available; do
  sleep "${interval}"
done
while [[ -d /etc/assisted/pinned-image-sets && ! -e "${pinned}" ]]; do
  echo "local registry: it runs until this host has every pinned image"
  sleep "${interval}"
done
systemctl disable --now start-local-registry.service
