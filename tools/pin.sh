#!/usr/bin/env bash
# Renew the pinned versions: constraints.txt (to run) and constraints-dev.txt (to work on it). Needs uv.
set -euo pipefail
cd "$(dirname "$0")/.."
printf 'hatchling\neditables\n' > build-needs.txt
trap 'rm -f build-needs.txt' EXIT
common=(pyproject.toml build-needs.txt --extra all --universal --python-version 3.11.5 --generate-hashes
        --no-emit-index-url --no-header --no-annotate --quiet "$@")
uv pip compile "${common[@]}" --output-file constraints.txt
uv pip compile "${common[@]}" --group dev --constraint constraints.txt --output-file constraints-dev.txt
