#!/bin/bash
# Stand-in for the installer's script of this name: places the profiles of the host that has one of the addresses.
# Names that are too long with their VLAN are not shortened.
set -euo pipefail
shopt -s nullglob

hosts=${PATH_PREFIX:-}/etc/assisted/network
target=${PATH_PREFIX:-}/etc/NetworkManager/system-connections
if [[ ! -d $hosts ]]; then
  echo "no $hosts"
  exit 0
fi

# upper case address -> interface of this machine
declare -A interfaces
for file in "${PATH_PREFIX:-}"/sys/class/net/*/address; do
  address=$(<"$file")
  interfaces[${address^^}]=$(basename "$(dirname "$file")")
done

produced=$(mktemp -d)
trap 'rm -rf "$produced"' EXIT
for map in "$hosts"/host*/mac_interface.ini; do
  # logical name -> interface
  declare -A names=()
  while IFS='=' read -r address name || [[ -n $address ]]; do
    interface=${interfaces[${address^^}]:-}
    if [[ -n $interface ]]; then names[$name]=$interface; fi
  done <"$map"
  ((${#names[@]} > 0)) || continue
  changes=()
  for name in "${!names[@]}"; do
    changes+=(-e "s/=$name\$/=${names[$name]}/" -e "s/=$name\\./=${names[$name]}./")
  done
  for profile in "$(dirname "$map")"/*.nmconnection; do
    base=$(basename "$profile")
    first=${base%%.*}
    copy=$produced/${names[$first]:-$first}.${base#*.}
    if [[ -z ${names[$first]:-} && -e $copy ]]; then continue; fi
    cp -p "$profile" "$copy"
    sed -i "${changes[@]}" "$copy"
  done
done

files=("$produced"/*)
((${#files[@]} > 0)) || exit 0
mkdir -p "$target"
rm -f "$target"/*
cp -p "${files[@]}" "$target"
