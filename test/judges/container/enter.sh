#!/usr/bin/env bash
# Runs a command of an image as a container would, where no container can run: its own files above those of the
# image, its own processes, a user and groups: enter.sh IMAGE USER GROUP FOLDER VOLUME... -- COMMAND...
# A volume is FROM:TO. The environment is that of the caller.
set -euo pipefail
image=$1 user=$2 group=$3 folder=$4
shift 4
own=$(mktemp -d)
mount -t tmpfs tmpfs "$own"
mkdir "$own/upper" "$own/work" "$own/root"
mount -t overlay -o "lowerdir=$image,upperdir=$own/upper,workdir=$own/work" overlay "$own/root"
while [[ $1 != -- ]]; do
  mkdir -p "$own/root${1#*:}"
  mount --bind "${1%%:*}" "$own/root${1#*:}"
  shift
done
shift
mkdir -p "$own/root/proc" "$own/root/dev"
mount -t proc proc "$own/root/proc"
mount --rbind /dev "$own/root/dev"
# shellcheck disable=SC2016 # the shell inside knows its arguments
exec chroot "$own/root" setpriv --reuid "$user" --regid 0 --groups "$group" --inh-caps=-all \
  sh -c 'umask 0022; cd "$1"; shift; exec "$@"' sh "$folder" "$@"
