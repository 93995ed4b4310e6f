#!/usr/bin/env bash
# An older nmstatectl, as live systems of earlier releases have it: install.sh VERSION FOLDER. Needs cargo.
exec bash "$(dirname "${BASH_SOURCE[0]}")/../nmstatectl/install.sh" "$@"
