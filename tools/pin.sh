#!/usr/bin/env bash
# Renew the pinned versions: constraints.txt (to run), constraints-dev.txt (to work on it) and constraints-service.txt
# (the service in a container). Needs uv.
set -euo pipefail
cd "$(dirname "$0")/.."
printf 'hatchling\neditables\n' > build-needs.txt
trap 'rm -f build-needs.txt' EXIT
common=(pyproject.toml build-needs.txt --universal --python-version 3.11.5 --generate-hashes
        --no-emit-index-url --no-header --no-annotate --quiet "$@")
uv pip compile "${common[@]}" --extra all --output-file constraints.txt
uv pip compile "${common[@]}" --extra all --group dev --constraint constraints.txt --output-file constraints-dev.txt
uv pip compile "${common[@]}" --extra fast --extra service --extra postgres --constraint constraints-dev.txt \
    --output-file constraints-service.txt
