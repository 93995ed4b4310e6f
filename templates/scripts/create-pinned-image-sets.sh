#!/usr/bin/env bash
# Creates the pinned image sets once the cluster is there, where the manifests of the installation could
# not: releases that do not serve them by themselves do so as a technology preview. Ends where they are
# not served at all.
set -euo pipefail

export KUBECONFIG=/etc/kubernetes/static-pod-resources/kube-apiserver-certs/secrets/node-kubeconfigs/localhost.kubeconfig
readonly directory=/etc/assisted/pinned-image-sets
readonly group=machineconfiguration.openshift.io
readonly interval=60
# The cluster version operator adds what a feature set brings within minutes.
readonly limit=3600

is_cluster_available() {
  [[ -s "${KUBECONFIG}" ]] &&
    [[ "$(oc get clusterversion version --output \
      'jsonpath={.status.conditions[?(@.type=="Available")].status}')" == True ]]
}

# Prints the version by which the cluster serves the sets, or nothing.
find_version() {
  local served established versions version
  served="$(oc get "customresourcedefinition/pinnedimagesets.${group}" --ignore-not-found --output \
    'jsonpath={.status.conditions[?(@.type=="Established")].status}{range .spec.versions[?(@.served==true)]}{" "}{.name}{end}')"
  read -r established versions <<<"${served}"
  for version in v1 v1alpha1; do
    if [[ "${established}" == True && " ${versions} " == *" ${version} "* ]]; then
      echo "${version}"
      return
    fi
  done
}

give_up() {
  echo "pinned image sets: $1, so no image is pinned"
  exit 0
}

# An upgrade to another minor release is not possible from here on.
become_preview() {
  local features
  features="$(oc get featuregate cluster --output 'jsonpath={.spec.featureSet}')"
  case "${features}" in
    '') oc patch featuregate cluster --type merge --patch '{"spec":{"featureSet":"TechPreviewNoUpgrade"}}' ;;
    TechPreviewNoUpgrade) ;;
    *) give_up "the cluster does not serve them with its feature set ${features}" ;;
  esac
}

apply_sets() {
  local file
  for file in "${directory}"/*; do
    sed "s|^apiVersion: .*|apiVersion: ${group}/${version}|" "${file}" | oc apply --filename -
  done
}

until is_cluster_available; do
  sleep "${interval}"
done
version="$(find_version)"
if [[ -z "${version}" ]]; then
  become_preview
fi
waited=0
while [[ -z "${version}" ]]; do
  if ((waited >= limit)); then
    give_up "the cluster does not serve them as a technology preview either"
  fi
  sleep "${interval}"
  waited=$((waited + interval))
  version="$(find_version)"
done
apply_sets
