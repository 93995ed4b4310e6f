#!/usr/bin/env bash
# Writers of .xlsx workbooks from PyPI: install.sh VERSION FOLDER. VERSION is that of openpyxl; XlsxWriter is pinned here.
set -euo pipefail
version=$1 folder=$2
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet "openpyxl==$version" XlsxWriter==3.3.1
mkdir -p "$folder/bin"
# By a link of another name, Python would not find its packages.
printf '#!/bin/sh\nexec "%s" "$@"\n' "$folder/venv/bin/python" >"$folder/bin/python"
chmod +x "$folder/bin/python"
