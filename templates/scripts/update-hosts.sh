#!/usr/bin/env bash
# Gives every host of the cluster the configuration that it applies after its installation, and with
# the interactive flow the extra manifests to the cluster. Ends when the installation begins.
set -euo pipefail

# "yes": the web interface creates the cluster, so nobody else posts the manifests
readonly interactive='{{ interactive }}'
readonly ignition=/etc/assisted/install.ign
readonly rendezvous=/etc/assisted/rendezvous-host.env
readonly manifests=/etc/assisted/extra-manifests
readonly placeholder='{{ placeholder }}'
readonly api="${SERVICE_BASE_URL%/}/api/assisted-install/v2"

work="$(mktemp --directory)"
trap 'rm --recursive --force "${work}"' EXIT
answer="${work}/answer.json"
body="${work}/body.json"
configured="${work}/configured"
touch "${configured}"

# The token is in a file of ours, because everybody may read the list of processes.
write_curl_options() {
  local token="${USER_AUTH_TOKEN:-${AGENT_AUTH_TOKEN:-}}"
  (
    umask 0077
    printf 'silent\nshow-error\nmax-time = 60\n' >"${work}/curl"
    if [[ -n "${token}" ]]; then
      printf 'header = "Authorization: %s"\n' "${token}" >>"${work}/curl"
    fi
  )
}

# Arguments: method, path, optionally the file to send. The answer is in a file; fails unless 2xx.
call() {
  local method="$1" path="$2" status
  local -a options=(--config "${work}/curl" --request "${method}" --output "${answer}")
  if (($# > 2)); then
    options+=(--header 'Content-Type: application/json' --data-binary "@$3")
  fi
  status="$(curl "${options[@]}" --write-out '%{http_code}' "${api}${path}")" || return 1
  if [[ "${status}" != 2?? ]]; then
    echo "update hosts: ${method} ${path} was answered with ${status}" >&2
    return 1
  fi
}

# Arguments: path, jq filter. Waits until the filter finds something, and prints it.
wait_for() {
  local found
  while true; do
    if call GET "$1"; then
      found="$(jq --raw-output "$2" "${answer}")"
      if [[ -n "${found}" ]]; then
        printf '%s\n' "${found}"
        return
      fi
    fi
    sleep 2
  done
}

# Arguments: cluster id, file
post_manifest() {
  local name tries
  name="$(basename "$2")"
  base64 --wrap=0 "$2" >"${work}/content"
  jq --null-input --arg name "${name}" --rawfile content "${work}/content" \
    '{folder: "openshift", file_name: $name, content: $content}' >"${body}"
  for ((tries = 0; tries < 30; tries++)); do
    if call POST "/clusters/$1/manifests" "${body}"; then
      return
    fi
    sleep 10
  done
  echo "update hosts: manifest ${name} was refused ${tries} times: see the assisted service's log" >&2
  return 1
}

post_manifests() {
  local file
  for file in "${manifests}"/*.yaml "${manifests}"/*.yml; do
    if [[ -f "${file}" ]]; then
      post_manifest "$1" "${file}"
    fi
  done
}

write_host_config() {
  base64 --wrap=0 "${rendezvous}" >"${work}/rendezvous"
  printf '%s' "${placeholder}" | base64 --wrap=0 >"${work}/placeholder"
  jq --raw-input --slurp --rawfile from "${work}/placeholder" --rawfile to "${work}/rendezvous" \
    '{config: (split($from) | join($to))}' "${ignition}" >"${work}/host-config.json"
}

# Arguments: infra-env id
configure_hosts() {
  local host
  call GET "/infra-envs/$1/hosts" || return 0
  jq --raw-output '.[].id' "${answer}" >"${work}/hosts"
  while read -r host; do
    if grep --quiet --line-regexp --fixed-strings "${host}" "${configured}"; then
      continue
    fi
    if call PATCH "/infra-envs/$1/hosts/${host}/ignition" "${work}/host-config.json"; then
      echo "${host}" >>"${configured}"
      echo "update hosts: ${host} has its configuration"
    fi
  done <"${work}/hosts"
}

write_curl_options
write_host_config
cluster="$(wait_for /clusters '.[0].id // empty')"
infra_env="${INFRA_ENV_ID:-}"
if [[ -z "${infra_env}" ]]; then
  infra_env="$(wait_for /infra-envs '.[0].id // empty')"
fi
if [[ "${interactive}" == yes ]]; then
  post_manifests "${cluster}"
fi
while true; do
  configure_hosts "${infra_env}"
  status="$(wait_for "/clusters/${cluster}" '.status // empty')"
  case "${status}" in
    # Later states count, too: the first may pass between two looks.
    preparing-for-installation | installing | installing-pending-user-action | finalizing | \
      installed | adding-hosts)
      echo "update hosts: the cluster is ${status}"
      exit 0
      ;;
  esac
  sleep 2
done
