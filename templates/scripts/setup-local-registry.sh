#!/usr/bin/env bash
# Everything the local registry needs before it starts: its data, its image, a certificate that this
# host trusts, and its name. Running it again keeps what is there.
set -euo pipefail

readonly domain='{{ domain }}'
readonly port='{{ port }}'

name_host() {
  local line="127.0.0.1 ${domain}"
  if ! grep --quiet --line-regexp --fixed-strings "${line}" /etc/hosts; then
    printf '\n%s\n' "${line}" >>/etc/hosts
  fi
}

/usr/local/bin/mount-agent-data.sh
/usr/local/bin/load-local-registry-image.sh
/usr/local/bin/certify-local-registry.sh /etc/iri-registry/certs "${port}"
name_host
