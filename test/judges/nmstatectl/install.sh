#!/usr/bin/env bash
# nmstatectl from crates.io: install.sh VERSION FOLDER. Needs cargo.
set -euo pipefail
cargo install nmstatectl --version "$1" --locked --root "$2"
