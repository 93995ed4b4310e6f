#!/usr/bin/env bash
# Gives a registry of this host a certificate that the host trusts. Running it again keeps what is there.
# Arguments: directory of tls.crt and tls.key, port
set -euo pipefail

readonly domain='{{ domain }}'
readonly certs="$1"
readonly port="$2"
readonly image='localhost/appliance-registry:latest'
readonly anchors=/etc/pki/ca-trust/source/anchors

write_request() {
  cat >"$1/request.cnf" <<REQUEST
[req]
prompt = no
distinguished_name = name
x509_extensions = extensions
[name]
CN = ${domain}
[extensions]
basicConstraints = critical, CA:TRUE
keyUsage = critical, digitalSignature, keyEncipherment, keyCertSign
extendedKeyUsage = serverAuth
subjectAltName = DNS:${domain}, DNS:localhost, IP:127.0.0.1, IP:::1
REQUEST
}

# Arguments: directory as openssl sees it
request_arguments() {
  printf '%s\n' req -x509 -newkey rsa:4096 -sha256 -nodes -days 36500 \
    -config "$1/request.cnf" -keyout "$1/tls.key" -out "$1/tls.crt"
}

# RHCOS 10 has no openssl, the registry image has.
run_openssl() {
  local arguments
  if command -v openssl >/dev/null; then
    mapfile -t arguments < <(request_arguments "$1")
    openssl "${arguments[@]}"
  else
    mapfile -t arguments < <(request_arguments /work)
    podman run --rm --pull=never --network=none --user=0 --security-opt=label=disable \
      --volume="$1:/work" --entrypoint=openssl "${image}" "${arguments[@]}"
  fi
}

create_certificate() {
  local work
  work="$(mktemp --directory "${certs}.XXXXXX")"
  # shellcheck disable=SC2064 # the directory's name is known now and gone at exit
  trap "rm --recursive --force '${work}'" EXIT
  write_request "${work}"
  run_openssl "${work}"
  if [[ ! -s "${work}/tls.key" || ! -s "${work}/tls.crt" ]]; then
    echo "registry certificate: openssl wrote none" >&2
    exit 1
  fi
  chmod 0600 "${work}/tls.key"
  chmod 0644 "${work}/tls.crt"
  # Key first: a certificate without its key is made again, the other way round it would be kept.
  mv --force "${work}/tls.key" "${certs}/tls.key"
  mv --force "${work}/tls.crt" "${certs}/tls.crt"
}

trust_certificate() {
  local directory
  for directory in /etc/containers/certs.d /etc/docker/certs.d; do
    install -D --mode=0644 "${certs}/tls.crt" "${directory}/${domain}:${port}/ca.crt"
  done
  install -D --mode=0644 "${certs}/tls.crt" "${anchors}/appliance-registry-${port}.crt"
  if command -v update-ca-trust >/dev/null; then
    update-ca-trust extract
  fi
}

mkdir --parents "${certs}"
if [[ ! -s "${certs}/tls.crt" || ! -s "${certs}/tls.key" ]]; then
  create_certificate
fi
trust_certificate
