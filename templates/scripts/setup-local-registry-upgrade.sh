#!/usr/bin/env bash
# Everything that the registry of a mounted upgrade ISO needs before it starts.
set -euo pipefail

# The kubelet removes images that no container uses.
/usr/local/bin/load-local-registry-image.sh
/usr/local/bin/certify-local-registry.sh /etc/appliance-registry/certs-upgrade '{{ port }}'
