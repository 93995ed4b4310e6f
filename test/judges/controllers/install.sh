#!/usr/bin/env bash
# Clients that stand in for management controllers: install.sh VERSION FOLDER. VERSION is that of sushy-tools, whose
# emulator comes from PyPI; QEMU's and nbdkit's drivers for HTTP are those of the machine.
set -euo pipefail
version=$1 folder=$2
mkdir -p "$folder/bin"
for program in qemu-img qemu-io nbdkit nbdcopy; do
  path=$(command -v "$program") || { echo "$program is missing" >&2 && exit 1; }
  ln -sf "$path" "$folder/bin/$program"
done
"$folder/bin/nbdkit" curl --version
"$folder/bin/qemu-img" --help | grep -q '^Supported formats:.* https '
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet "sushy-tools==$version"
ln -sf ../venv/bin/sushy-emulator "$folder/bin/sushy-emulator"
