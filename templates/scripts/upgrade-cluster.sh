#!/usr/bin/env bash
# Takes the cluster to the release of an upgrade ISO. It runs on all control plane hosts; the first of them
# by name does the work. Each run looks at the cluster once and does the next step, so a reboot between
# two runs changes nothing. In the end it deletes the MachineConfig that asked for the upgrade. What it waits
# for is on the console and in the ConfigMap cluster-upgrade of namespace openshift-config. Exits with
# 0 when done, 75 to be run again, 78 when it refuses.
# Arguments: version, directory with hops and resources, architecture, label of the MachineConfig. Those of
# other builders have neither of the last two.
set -euo pipefail

export KUBECONFIG=/etc/kubernetes/static-pod-resources/kube-apiserver-certs/secrets/node-kubeconfigs/localhost.kubeconfig
export LC_ALL=C
readonly target="$1"
# Lines of a version, its image, "signed" or "unsigned", patterns of versions that may be upgraded to it, and
# perhaps an option of the request.
readonly hops="$2/hops"
# Keys of admin-gates that a person has acknowledged, one a line.
readonly acknowledged="$2/acknowledged"
readonly resources="$2/resources.yaml"
readonly arch="${3:-}"
# The MachineConfig of another upgrade has the same name, so it is deleted by its label, or by its unit.
readonly selector="${4:-}"
readonly machine_config=99-start-cluster-upgrade
readonly applied=/run/upgrade-cluster-applied
readonly chosen=/run/upgrade-cluster-host
readonly recorded=/run/upgrade-cluster-state
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

# Arguments: state, message. Only the host that does the work records them, and not the same twice.
record() {
  local state="$1: $2"
  if [[ ! -v is_chosen || "$(cat "${recorded}" 2>/dev/null)" == "${state}" ]]; then
    return
  fi
  oc create configmap cluster-upgrade --namespace openshift-config --dry-run=client --output yaml \
    --from-literal "version=${target}" --from-literal "state=$1" --from-literal "message=$2" |
    oc apply --filename - >/dev/null
  echo "${state}" >"${recorded}"
}

look_again() {
  say "$1"
  record waiting "$1"
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

# Arguments: exit code, state, message
end() {
  say "$2: $3"
  resume_health_checks
  record "$2" "$3"
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
  local version image signed sources option pattern found=
  local -a patterns
  while read -r version image signed sources option; do
    IFS=, read -ra patterns <<<"${sources}"
    for pattern in "${patterns[@]}"; do
      # shellcheck disable=SC2053 # a pattern
      if [[ "$1" == ${pattern} ]]; then
        found="${version} ${image} ${signed} ${option}"
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

# Prints the pools whose hosts restart. A degraded pool waits for a person, so its hosts do not.
list_restarting_pools() {
  oc get machineconfigpool --output json | jq --raw-output '
    def is(type): any(.status.conditions[]?; .type == type and .status == "True");
    [.items[] | select(is("Updating") and (is("Degraded") | not)).metadata.name] | join(" ")'
}

# Arguments: version. Prints its major and minor version.
minor_of() {
  local core="${1%%[-+]*}"
  echo "${core%.*}"
}

# Arguments: minor version. Prints a line for each key that stops its clusters: the key and the reason.
list_gates() {
  local gates acks
  gates="$(oc get configmap admin-gates --namespace openshift-config-managed --ignore-not-found --output json)"
  acks="$(oc get configmap admin-acks --namespace openshift-config --ignore-not-found --output json)"
  jq --raw-output --null-input --arg minor "$1" \
    --argjson gates "${gates:-null}" --argjson acks "${acks:-null}" '
    $gates.data // {} | to_entries[] |
    select([.key | match("{{ gates }}").captures[0].string] == [$minor] and .value != "" and
      $acks.data[.key] != "true") |
    "\(.key) \(.value | gsub("\\s+"; " "))"'
}

# Arguments: lines of list_gates. Acknowledges those for which a person did so in advance.
acknowledge_gates() {
  local key reason given=()
  while read -r key reason; do
    if grep --quiet --line-regexp --fixed-strings -- "${key}" "${acknowledged}" 2>/dev/null; then
      oc patch configmap admin-acks --namespace openshift-config --type merge \
        --patch "{\"data\":{\"${key}\":\"true\"}}" </dev/null
      given+=("${key}")
    fi
  done <<<"$1"
  if ((${#given[@]} > 0)); then
    look_again "acknowledged as asked for at build time: ${given[*]}"
  fi
}

# Arguments: version. The cluster version operator looks at the same before an update to another minor version.
require_open_gates() {
  local gates key reason waits='' overrides reasons cluster
  gates="$(list_gates "$(minor_of "$1")")"
  acknowledge_gates "${gates}"
  while read -r key reason; do
    if [[ -n "${key}" ]]; then
      waits+="waiting for a person to acknowledge ${key}: ${reason} Then run: oc -n openshift-config patch cm"
      waits+=" admin-acks --type=merge --patch '{\"data\":{\"${key}\":\"true\"}}'"$'\n'
    fi
  done <<<"${gates}"
  cluster="$(oc get clusterversion version --output json)"
  overrides="$(jq --raw-output '[.spec.overrides[]? | select(.unmanaged) | "\(.kind) \(.name)"] | join(", ")' \
    <<<"${cluster}")"
  if [[ -n "${overrides}" ]]; then
    waits+="waiting until ClusterVersion has no override. It has: ${overrides}. If they are not needed, run: oc patch"
    waits+=" clusterversion version --type=json -p '[{\"op\":\"remove\",\"path\":\"/spec/overrides\"}]'"$'\n'
  fi
  if [[ -z "${waits}" ]]; then
    reasons="$(jq --raw-output '.status.conditions[]? | select(.type == "Upgradeable" and .status == "False") |
      .message | gsub("\\s+"; " ") | rtrimstr(" ")' <<<"${cluster}")"
    waits="${reasons:+waiting until the cluster is upgradeable: ${reasons}}"
  fi
  if [[ -n "${waits}" ]]; then
    look_again "${waits%$'\n'}"
  fi
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

# Arguments: version, image, "signed" or "unsigned", perhaps an option
request() {
  local output
  local -a options=("${@:4}")
  if [[ "$3" == unsigned ]]; then
    say "$1 has no signature, so the cluster checks none"
    options+=(--force)
  fi
  if ! output="$(oc adm upgrade --allow-explicit-upgrade --to-image "$2" "${options[@]}" 2>&1)"; then
    look_again "the cluster does not take the request for $1: ${output}"
  fi
  look_again "the upgrade to $1 is requested"
}

# Arguments: version of the cluster; then version, image, "signed" or "unsigned", perhaps an option
take_hop() {
  local from="$1" wanted reason
  shift
  wanted="$(oc get clusterversion version --output 'jsonpath={.spec.desiredUpdate.image}')"
  if [[ "${wanted}" != "$2" ]]; then
    require_settled_cluster
  fi
  # A gate may appear after the request, too.
  if [[ "$(minor_of "${from}")" != "$(minor_of "$1")" ]]; then
    require_open_gates "${from}"
  fi
  if [[ "${wanted}" == "$2" ]]; then
    reason="$(oc get clusterversion version --output \
      'jsonpath={.status.conditions[?(@.type=="ReleaseAccepted")].message}')"
    look_again "the cluster has not begun the upgrade to $1: ${reason}"
  fi
  require_image_on_every_node "$2"
  if [[ -e "${resources}" && ! -e "${applied}" ]]; then
    apply_resources
  fi
  request "$@"
}

# Arguments: state and version of the newest update. Hosts restart during an update of ours, and perhaps for a
# while after it: only then are the health checks paused, never while something is waited for.
settle_health_checks() {
  local restarting
  if [[ "$1" != Completed ]]; then
    if grep --quiet "^${2//./\\.} " "${hops}"; then
      pause_health_checks
    fi
    return
  fi
  restarting="$(list_restarting_pools)"
  if [[ -n "${restarting}" ]]; then
    look_again "waiting until the hosts of these pools have restarted: ${restarting}"
  fi
  resume_health_checks
}

main() {
  local history state version hop
  require_chosen_host
  is_chosen=yes
  history="$(oc get clusterversion version --output \
    'jsonpath={range .status.history[*]}{.state}{" "}{.version}{"\n"}{end}')"
  read -r state version <<<"${history}"
  if [[ -z "${version}" ]]; then
    look_again "the cluster has no version yet"
  fi
  if [[ -n "${arch}" && "$(uname --machine)" != "${arch}" ]]; then
    end 78 refused "this host is $(uname --machine), ${target} is for ${arch}"
  fi
  settle_health_checks "${state}" "${version}"
  if grep --quiet --line-regexp --fixed-strings "Completed ${target}" <<<"${history}"; then
    end 0 'done' "the cluster has been upgraded to ${target}"
  fi
  if is_later "${version}" "${target}"; then
    end 78 refused "the cluster has ${version}, which is later than ${target}"
  fi
  if [[ "${state}" != Completed ]]; then
    look_again "waiting for the end of the upgrade to ${version}"
  fi
  hop="$(find_hop "${version}")"
  if [[ -z "${hop}" ]]; then
    end 78 refused "the cluster has ${version}, from which there is no update to ${target} on the ISO"
  fi
  # shellcheck disable=SC2086 # three words, or four
  take_hop "${version}" ${hop}
}

main
