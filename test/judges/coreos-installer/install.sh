#!/usr/bin/env bash
# coreos-installer from crates.io: install.sh VERSION FOLDER. Needs cargo, libzstd, liblzma and OpenSSL.
set -euo pipefail
if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    pkg-config libssl-dev libzstd-dev liblzma-dev nettle-dev
fi
cargo install coreos-installer --version "$1" --locked --root "$2"
