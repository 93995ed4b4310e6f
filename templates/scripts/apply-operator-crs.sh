#!/usr/bin/env bash
# Creates the custom resources of the appliance once the cluster is there: each as soon as every
# operator in its namespace works, and those without a namespace at once.
set -euo pipefail

export KUBECONFIG=/etc/kubernetes/static-pod-resources/kube-apiserver-certs/secrets/node-kubeconfigs/localhost.kubeconfig
readonly directory=/etc/assisted/extra-manifests/post-installation
# Lines of a namespace, or "-" for none, and a file name.
readonly index="${directory}/index"
readonly interval=60

is_cluster_available() {
  [[ -s "${KUBECONFIG}" ]] &&
    [[ "$(oc get clusterversion version --output \
      'jsonpath={.status.conditions[?(@.type=="Available")].status}')" == True ]]
}

# Arguments: namespace. None yet counts as not ready.
are_operators_ready() {
  local phases
  if [[ "$1" == - ]]; then
    return 0
  fi
  phases="$(oc get clusterserviceversions --namespace "$1" --output \
    'jsonpath={range .items[*]}{.status.phase}{"\n"}{end}')" || return 1
  [[ -n "${phases}" ]] && ! grep --quiet --invert-match --line-regexp Succeeded <<<"${phases}"
}

# Arguments: file
apply() {
  # What is there already may have been changed by its owner.
  oc get --filename "$1" >/dev/null 2>&1 || oc apply --filename "$1"
}

until is_cluster_available; do
  sleep "${interval}"
done
while read -r namespace file; do
  until are_operators_ready "${namespace}" && apply "${directory}/${file}"; do
    echo "custom resources: ${file} waits for the operators of namespace ${namespace}"
    sleep "${interval}"
  done
  echo "custom resources: ${file} is there"
done <"${index}"
