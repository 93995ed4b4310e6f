#!/usr/bin/env bash
# Gives the local registry the certificate that the cluster's own registry will have.
set -euo pipefail

readonly pair=/opt/openshift/tls/internal-release-image
readonly certs=/etc/iri-registry/certs
readonly wait_limit=120

# systemd starts this when the first of the two files appears.
waited=0
until [[ -s "${pair}.crt" && -s "${pair}.key" ]]; do
  if ((waited >= wait_limit)); then
    echo "registry certificate: ${pair}.crt and .key are not both there after ${wait_limit} s" >&2
    exit 1
  fi
  sleep 2
  waited=$((waited + 2))
done

install -D --mode=0600 "${pair}.key" "${certs}/tls.key"
install -D --mode=0644 "${pair}.crt" "${certs}/tls.crt"
systemctl restart start-local-registry.service
systemctl disable --now watch-iri-tls-certs.path
