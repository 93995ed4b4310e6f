#!/usr/bin/env bash
# Gives this host the name that the configuration image has for one of its network interfaces. The
# installer's own unit looks when the host boots, which is before the image is loaded.
set -euo pipefail

# Files with a name each, called after the address of an interface in lower case.
readonly hostnames=/etc/assisted/hostnames

if [[ ! -d "${hostnames}" ]]; then
  exit 0
fi
# An interface of a bond shows the bond's address, and its own as the permanent one.
addresses="$(ip -json link show | jq --raw-output '.[] | .address, .permaddr | strings | ascii_downcase')"
while read -r address; do
  if [[ ! -s "${hostnames}/${address}" ]]; then
    continue
  fi
  name="$(<"${hostnames}/${address}")"
  if [[ "$(hostnamectl hostname --static)" != "${name}" ]]; then
    hostnamectl set-hostname "${name}"
  fi
  echo "host name: this is ${name}, by its interface ${address}"
  exit 0
done <<<"${addresses}"
echo "host name: the configuration image has none for an interface of this host"
