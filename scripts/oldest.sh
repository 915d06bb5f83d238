#!/usr/bin/env bash
# The quick tests with the oldest dependencies that pyproject.toml allows, in an environment of their own;
# `oldest.sh tests/unit` runs those instead. PYTHON=/path/to/python takes another Python than 3.11.
set -euo pipefail
cd "$(dirname "$0")/.."
uv=(.venv/bin/python -m uv)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${uv[@]}" venv --quiet --python "${PYTHON:-python3.11}" "$folder/venv"
"${uv[@]}" pip install --quiet --python "$folder/venv/bin/python" --resolution lowest-direct --group dev \
  '.[plot,duckdb,pandas,postgresql]'
"${uv[@]}" pip list --python "$folder/venv/bin/python" | grep -E '^(click|msgspec|narwhals|numba|numpy|opendp|polars|rich|pandas|duckdb) '
tests=("$@")
[ $# -gt 0 ] || tests=(--quick tests/unit/_core tests/unit/theta tests/unit/queries tests/unit/mechanisms tests/unit/data tests/unit/release tests/unit/cli tests/golden)
PYTHONPATH=src "$folder/venv/bin/python" -m pytest -n "${JOBS:-auto}" --dist worksteal -W ignore::FutureWarning -W ignore::DeprecationWarning "${tests[@]}"
