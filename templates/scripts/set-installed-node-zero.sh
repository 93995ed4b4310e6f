#!/usr/bin/env bash
# Marks the installed host that was the rendezvous host, so that what must happen once happens there.
set -euo pipefail

readonly environment=/etc/assisted/rendezvous-host.env
readonly marker=/etc/assisted/node0

address="$(sed --quiet 's/^NODE_ZERO_IP=//p' "${environment}" | tail --lines=1)"
if [[ -z "${address}" ]]; then
  echo "node zero: ${environment} names no address" >&2
  exit 1
fi

mac="$(ip -json address show | jq --raw-output --arg address "${address}" \
  'first(.[] | select(any(.addr_info[]?; .local == $address)) | .address) // empty')"
if [[ -z "${mac}" ]]; then
  echo "node zero: ${address} is another host"
  exit 0
fi
printf '# This host was the rendezvous host of the installation.\nBOOTSTRAP_HOST_MAC=%s\n' \
  "${mac}" >"${marker}.new"
mv --force "${marker}.new" "${marker}"
