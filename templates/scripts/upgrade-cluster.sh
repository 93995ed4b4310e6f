#!/usr/bin/env bash
# Takes the cluster to the release of an upgrade ISO. It runs on all control plane hosts; the first of them
# by name does the work. Each run looks at the cluster once and does the next step, so a reboot between
# two runs changes nothing. In the end it deletes the MachineConfig that asked for the upgrade. Exits with
# 0 when done, 75 to be run again, 78 when it refuses.
# Arguments: version, directory with hops and resources, architecture, label of the MachineConfig. Those of
# other builders have neither of the last two.
set -euo pipefail

export KUBECONFIG=/etc/kubernetes/static-pod-resources/kube-apiserver-certs/secrets/node-kubeconfigs/localhost.kubeconfig
export LC_ALL=C
readonly target="$1"
# Lines of a version, its image, "signed" or "unsigned", and patterns of versions that may be upgraded to it.
readonly hops="$2/hops"
readonly resources="$2/resources.yaml"
readonly arch="${3:-}"
# The MachineConfig of another upgrade has the same name, so it is deleted by its label, or by its unit.
readonly selector="${4:-}"
readonly machine_config=99-start-cluster-upgrade
readonly applied=/run/upgrade-cluster-applied
readonly chosen=/run/upgrade-cluster-host
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

delete_machine_config() {
  local units
  if [[ -n "${selector}" ]]; then
    oc delete machineconfig --selector "${selector}" --ignore-not-found
    return
  fi
  units="$(oc get machineconfig "${machine_config}" --ignore-not-found --output \
    'jsonpath={.spec.config.systemd.units[*].name}')"
  if [[ " ${units} " == *" start-cluster-upgrade@${target}.service "* ]]; then
    oc delete machineconfig "${machine_config}" --ignore-not-found
  fi
}

# Arguments: exit code, message
end() {
  say "$2"
  resume_health_checks
  delete_machine_config
  exit "$1"
}

# Every host makes the same choice, and finds itself by its boot: hosts may have other names than nodes.
# Two hosts that both believe to be chosen, while one is removed, do no harm: each step may be repeated.
require_chosen_host() {
  local nodes name boot own
  own="$(</proc/sys/kernel/random/boot_id)"
  nodes="$(oc get nodes --selector node-role.kubernetes.io/master --output \
    'jsonpath={range .items[*]}{.metadata.name}{" "}{.status.nodeInfo.bootID}{"\n"}{end}')"
  if ! grep --quiet " ${own}\$" <<<"${nodes}"; then
    look_again "waiting until this host is a control plane node of the cluster"
  fi
  read -r name boot < <(sort <<<"${nodes}")
  if [[ "${boot}" == "${own}" ]]; then
    return
  fi
  if [[ "$(cat "${chosen}" 2>/dev/null)" != "${name}" ]]; then
    say "${name} upgrades the cluster"
    echo "${name}" >"${chosen}"
  fi
  exit 75
}

# Arguments: two versions. Whether the first is later; a pre-release comes before its release.
is_later() {
  local first="${1//-/\~}" second="${2//-/\~}"
  [[ "${first}" != "${second}" ]] &&
    [[ "$(printf '%s\n' "${first}" "${second}" | sort --version-sort | tail --lines=1)" == "${first}" ]]
}

# Arguments: version. Prints the last line that may follow it.
find_hop() {
  local version image signed sources pattern found=
  local -a patterns
  while read -r version image signed sources; do
    IFS=, read -ra patterns <<<"${sources}"
    for pattern in "${patterns[@]}"; do
      # shellcheck disable=SC2053 # a pattern
      if [[ "$1" == ${pattern} ]]; then
        found="${version} ${image} ${signed}"
      fi
    done
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
  if [[ -e "${resources}" && ! -e "${applied}" ]]; then
    apply_resources
  fi
  request "$@"
}

main() {
  local history state version hop
  require_chosen_host
  history="$(oc get clusterversion version --output \
    'jsonpath={range .status.history[*]}{.state}{" "}{.version}{"\n"}{end}')"
  read -r state version <<<"${history}"
  if [[ -z "${version}" ]]; then
    look_again "the cluster has no version yet"
  fi
  if [[ -n "${arch}" && "$(uname --machine)" != "${arch}" ]]; then
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
