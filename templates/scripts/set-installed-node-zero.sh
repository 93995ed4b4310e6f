#!/usr/bin/env bash
# Marks the installed host that was the rendezvous host, so that what must happen once happens there.
# Its address may come late, from a DHCP server that is down: the search ends with the address.
set -euo pipefail

readonly environment=/etc/assisted/rendezvous-host.env
readonly marker=/etc/assisted/node0
readonly interval=10

address="$(sed --quiet 's/^NODE_ZERO_IP=//p' "${environment}" | tail --lines=1)"
if [[ -z "${address}" ]]; then
  echo "node zero: ${environment} names no address" >&2
  exit 1
fi

# Prints the hardware address of the interface that has the rendezvous host's address, or nothing.
find_interface() {
  ip -json address show | jq --raw-output --arg address "${address}" \
    'first(.[] | select(any(.addr_info[]?; .local == $address)) | .address) // empty'
}

mac="$(find_interface)"
if [[ -z "${mac}" ]]; then
  echo "node zero: ${address} is another host, or not here yet"
fi
while [[ -z "${mac}" ]]; do
  sleep "${interval}"
  mac="$(find_interface)"
done
printf '# This host was the rendezvous host of the installation.\nBOOTSTRAP_HOST_MAC=%s\n' \
  "${mac}" >"${marker}.new"
mv --force "${marker}.new" "${marker}"
