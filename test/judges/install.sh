#!/usr/bin/env bash
# Installs the judges, pinned, into a cache outside the tree: install.sh
# In CI all of them must be there. Elsewhere, those that cannot be installed are named and skipped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/sealift-judges
# For cargo: a judge answers small questions, so its build may not take longer than all of them.
export CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16

for folder in */; do
  judge=${folder%/}
  version=$(<"$judge/version")
  target=$cache/$judge-$version
  if [[ -e $target/complete ]]; then continue; fi
  if [[ ${CI:-} != true && ! -t 0 ]]; then
    echo "tests of judge $judge $version are skipped; to install it: bash test/judges/$judge/install.sh $version $target && touch $target/complete" >&2
    continue
  fi
  echo "installing judge $judge $version into $target" >&2
  mkdir -p "$target"
  log=$target/install.log
  if bash "$judge/install.sh" "$version" "$target" >"$log" 2>&1; then
    touch "$target/complete"
  else
    tail -n 20 "$log" >&2
    echo "judge $judge $version was not installed; all of its output is in $log" >&2
    if [[ ${CI:-} == true ]]; then exit 1; fi
  fi
done
