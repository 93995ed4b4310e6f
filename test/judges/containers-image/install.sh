#!/usr/bin/env bash
# Builds a program that pulls images by this version of go.podman.io/image: install.sh VERSION FOLDER
set -euo pipefail
version=$1 folder=$2
source=$(dirname "${BASH_SOURCE[0]}")/main.go
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
cp "$source" "$build"
cd "$build"
go mod init pull
go mod edit -require="go.podman.io/image/v5@$version"
# Resolves what the program needs; "go mod tidy" would also fetch what tests of its modules need.
export GOFLAGS=-mod=mod
# Neither OpenPGP by C nor image stores: policies of the tests ask for neither.
CGO_ENABLED=0 nice go build -trimpath -tags containers_image_openpgp -o "$folder/bin/pull" .
