#!/usr/bin/env bash
# Tells the assisted service of this node which release it installs and which registry is local.
# Running it again changes nothing.
set -euo pipefail

readonly registry='{{ registry }}'
readonly release_image='{{ release-image }}'
readonly release_images='{{ release-images }}'
readonly os_images='{{ os-images }}'
# "yes": the cluster accepts images of OpenShift without a signature
readonly disable_image_policy='{{ disable-image-policy }}'
readonly service=/usr/local/share/assisted-service
readonly manifests=/etc/assisted/manifests

# Arguments: file, key. Prints the value.
get_key() {
  sed --quiet "s/^$2=//p" "$1" | tail --lines=1
}

# Arguments: file, key, value. The file is replaced as a whole, so that no reader sees half of it.
set_key() {
  local file="$1" key="$2" value="$3" new
  new="$(mktemp "${file}.XXXXXX")"
  sed "/^${key}=/d" "${file}" >"${new}"
  printf '%s=%s\n' "${key}" "${value}" >>"${new}"
  chmod --reference="${file}" "${new}"
  chown --reference="${file}" "${new}"
  mv --force "${new}" "${file}"
}

registries="$(get_key "${service}/assisted-service.env" PUBLIC_CONTAINER_REGISTRIES)"
if [[ ",${registries}," != *",${registry},"* ]]; then
  registries="${registries:+${registries},}${registry}"
fi
set_key "${service}/assisted-service.env" PUBLIC_CONTAINER_REGISTRIES "${registries}"
set_key "${service}/assisted-service.env" RELEASE_IMAGES "${release_images}"
set_key "${service}/assisted-service.env" OPENSHIFT_INSTALL_RELEASE_IMAGE_MIRROR "${release_image}"
if [[ "${disable_image_policy}" == yes ]]; then
  # The installer that heeds it runs inside the service.
  set_key "${service}/assisted-service.env" OPENSHIFT_INSTALL_EXPERIMENTAL_DISABLE_IMAGE_POLICY true
fi
if [[ -f "${service}/images.env" ]]; then
  set_key "${service}/images.env" OS_IMAGES "${os_images}"
fi

# Only now: whoever loads a configuration image compares the installer's own file with the image's.
if [[ -d "${manifests}" ]]; then
  install --mode=0600 /etc/assisted/cluster-image-set.yaml "${manifests}/cluster-image-set.yaml"
fi
