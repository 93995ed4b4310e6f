#!/usr/bin/env bash
# Takes the cluster to the release of an upgrade ISO, from the host that was the rendezvous host. Each
# run looks at the cluster once and does the next step, so a reboot between two runs changes nothing.
# In the end it deletes the MachineConfig that brought it. Exits with 0 when done, 75 to be run again,
# 78 when it refuses.
set -euo pipefail

export KUBECONFIG=/etc/kubernetes/static-pod-resources/kube-apiserver-certs/secrets/node-kubeconfigs/localhost.kubeconfig
export LC_ALL=C
readonly target='{{ version }}'
readonly arch='{{ arch }}'
# The MachineConfig of another upgrade has the same name, so it is deleted by its label.
readonly selector='{{ selector }}'
# Lines of a version, its image, "signed" or "unsigned", and the versions that may be upgraded to it.
readonly hops=/etc/assisted/upgrade/hops
readonly resources=/etc/assisted/upgrade/resources.yaml
readonly applied=/run/upgrade-cluster-applied
readonly daemon_namespace=openshift-machine-config-operator
readonly pause=cluster.x-k8s.io/paused

# Runs on each node; argument: digest. Trusts what the node's container engine trusts. Registries deny
# manifests of types that are not asked for, and some take no wildcard.
# shellcheck disable=SC2016 # expanded on the node
readonly probe='
accept="Accept: application/vnd.docker.distribution.manifest.v2+json"
accept+=",application/vnd.docker.distribution.manifest.list.v2+json"
accept+=",application/vnd.oci.image.manifest.v1+json,application/vnd.oci.image.index.v1+json"
for port in 5001 22625; do
  registry="registry.appliance.openshift.com:${port}"
  if cat "/etc/containers/certs.d/${registry}"/*.crt |
    curl --silent --fail --head --noproxy "*" --max-time 20 --cacert /dev/stdin --output /dev/null \
      --header "${accept}" "https://${registry}/v2/openshift/release-images/manifests/$1"; then
    exit 0
  fi
done 2>/dev/null
exit 1'

say() {
  echo "cluster upgrade: $1"
}

look_again() {
  say "$1"
  exit 75
}

# Arguments: exit code, message
end() {
  say "$2"
  resume_health_checks
  oc delete machineconfig --selector "${selector}" --ignore-not-found
  exit "$1"
}

# Arguments: two versions. Whether the first is later; a pre-release comes before its release.
is_later() {
  local first="${1//-/\~}" second="${2//-/\~}"
  [[ "${first}" != "${second}" ]] &&
    [[ "$(printf '%s\n' "${first}" "${second}" | sort --version-sort | tail --lines=1)" == "${first}" ]]
}

# Arguments: version. Prints the last line that may follow it.
find_hop() {
  local version image signed sources found=
  while read -r version image signed sources; do
    if [[ ",${sources}," == *",$1,"* ]]; then
      found="${version} ${image} ${signed}"
    fi
  done <"${hops}"
  echo "${found}"
}

# Prints a line for each health check: its name, and why it is paused.
list_health_checks() {
  local kind=machinehealthchecks.machine.openshift.io
  if [[ -n "$(oc get customresourcedefinition "${kind}" --ignore-not-found --output name)" ]]; then
    oc get "${kind}" --namespace openshift-machine-api --output \
      'jsonpath={range .items[*]}{.metadata.name}{" "}{.metadata.annotations.cluster\.x-k8s\.io/paused}{"\n"}{end}'
  fi
}

# Arguments: a health check, an annotation or its removal
annotate_health_check() {
  oc annotate machinehealthchecks.machine.openshift.io "$1" --namespace openshift-machine-api "$2" </dev/null
}

pause_health_checks() {
  local list name reason
  list="$(list_health_checks)"
  while read -r name reason; do
    if [[ -n "${name}" && -z "${reason}" ]]; then
      annotate_health_check "${name}" "${pause}=upgrade-cluster"
    fi
  done <<<"${list}"
}

# Those that somebody else paused stay paused.
resume_health_checks() {
  local list name reason
  list="$(list_health_checks)"
  while read -r name reason; do
    if [[ "${reason}" == upgrade-cluster ]]; then
      annotate_health_check "${name}" "${pause}-"
    fi
  done <<<"${list}"
}

require_settled_cluster() {
  local available updated
  available="$(oc get clusterversion version --output \
    'jsonpath={.status.conditions[?(@.type=="Available")].status}')"
  updated="$(oc get machineconfigpool master --output \
    'jsonpath={.status.conditions[?(@.type=="Updated")].status}')"
  if [[ "${available}" != True ]]; then
    look_again "waiting until the cluster is available"
  fi
  if [[ "${updated}" != True ]]; then
    look_again "waiting until every control plane host has its configuration"
  fi
}

# Arguments: image. Every node reads the release from a registry of its own.
require_image_on_every_node() {
  local nodes pods node pod missing=()
  nodes="$(oc get nodes --output 'jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}')"
  pods="$(oc get pods --namespace "${daemon_namespace}" --selector k8s-app=machine-config-daemon --output \
    'jsonpath={range .items[*]}{.spec.nodeName}{" "}{.metadata.name}{"\n"}{end}')"
  while read -r node; do
    pod="$(sed --quiet "s/^${node//./\\.} //p" <<<"${pods}" | head --lines=1)"
    if [[ -z "${pod}" ]] || ! timeout 120 oc exec --namespace "${daemon_namespace}" "${pod}" \
      --container machine-config-daemon -- chroot /rootfs bash -c "${probe}" probe "${1#*@}" </dev/null; then
      missing+=("${node}")
    fi
  done <<<"${nodes}"
  if ((${#missing[@]} > 0)); then
    look_again "attach the upgrade ISO to these nodes, where it cannot be seen: ${missing[*]}"
  fi
}

# The signature is the first of them.
apply_resources() {
  oc apply --filename "${resources}"
  touch "${applied}"
  look_again "the signature and the resources of ${target} are applied"
}

# Arguments: version, image, "signed" or "unsigned"
request() {
  local -a force=()
  if [[ "$3" == unsigned ]]; then
    say "$1 has no signature, so the cluster checks none"
    force=(--force)
  fi
  pause_health_checks
  oc adm upgrade --allow-explicit-upgrade --to-image "$2" "${force[@]}"
  look_again "the upgrade to $1 is requested"
}

# Arguments: version, image, "signed" or "unsigned"
take_hop() {
  local wanted reason
  wanted="$(oc get clusterversion version --output 'jsonpath={.spec.desiredUpdate.image}')"
  if [[ "${wanted}" == "$2" ]]; then
    reason="$(oc get clusterversion version --output \
      'jsonpath={.status.conditions[?(@.type=="ReleaseAccepted")].message}')"
    look_again "the cluster has not begun the upgrade to $1: ${reason}"
  fi
  require_settled_cluster
  require_image_on_every_node "$2"
  if [[ ! -e "${applied}" ]]; then
    apply_resources
  fi
  request "$@"
}

main() {
  local history state version hop
  history="$(oc get clusterversion version --output \
    'jsonpath={range .status.history[*]}{.state}{" "}{.version}{"\n"}{end}')"
  read -r state version <<<"${history}"
  if [[ -z "${version}" ]]; then
    look_again "the cluster has no version yet"
  fi
  if [[ "$(uname --machine)" != "${arch}" ]]; then
    end 78 "refused: this host is $(uname --machine), ${target} is for ${arch}"
  fi
  if grep --quiet --line-regexp --fixed-strings "Completed ${target}" <<<"${history}"; then
    end 0 "done: the cluster has been upgraded to ${target}"
  fi
  if is_later "${version}" "${target}"; then
    end 78 "refused: the cluster has ${version}, which is later than ${target}"
  fi
  if [[ "${state}" != Completed ]]; then
    look_again "waiting for the end of the upgrade to ${version}"
  fi
  hop="$(find_hop "${version}")"
  if [[ -z "${hop}" ]]; then
    end 78 "refused: the cluster has ${version}, from which there is no update to ${target} on the ISO"
  fi
  # shellcheck disable=SC2086 # three words
  take_hop ${hop}
}

main
