#!/usr/bin/env bash
# Clients of assisted-service from PyPI: install.sh VERSION FOLDER. VERSION is that of assisted-service-client;
# the others are pinned here.
set -euo pipefail
version=$1 folder=$2
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet "assisted-service-client==$version" aicli==99.0.202609281010 \
  schemathesis==4.32.5
mkdir -p "$folder/bin"
for program in aicli schemathesis; do ln -sf "../venv/bin/$program" "$folder/bin/$program"; done
