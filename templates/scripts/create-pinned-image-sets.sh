#!/usr/bin/env bash
# Creates the pinned image sets once the cluster is there, where the manifests of the installation could
# not: releases that do not serve them by themselves do so as a technology preview.
set -euo pipefail

export KUBECONFIG=/etc/kubernetes/static-pod-resources/kube-apiserver-certs/secrets/node-kubeconfigs/localhost.kubeconfig
readonly directory=/etc/assisted/pinned-image-sets
readonly resource=customresourcedefinition/pinnedimagesets.machineconfiguration.openshift.io
readonly interval=60

is_cluster_available() {
  [[ -s "${KUBECONFIG}" ]] &&
    [[ "$(oc get clusterversion version --output \
      'jsonpath={.status.conditions[?(@.type=="Available")].status}')" == True ]]
}

is_served() {
  [[ "$(oc get "${resource}" --ignore-not-found --output \
    'jsonpath={.status.conditions[?(@.type=="Established")].status}')" == True ]]
}

until is_cluster_available; do
  sleep "${interval}"
done
if ! is_served; then
  # An upgrade to another minor release is not possible from here on.
  oc patch featuregate cluster --type merge --patch '{"spec":{"featureSet":"TechPreviewNoUpgrade"}}'
fi
until is_served && oc apply --filename "${directory}"; do
  echo "pinned image sets: the cluster does not serve them yet"
  sleep "${interval}"
done
