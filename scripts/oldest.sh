#!/usr/bin/env bash
# The quick tests with the oldest dependencies that pyproject.toml allows, in an environment of their own.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 scripts/oldest.py > "$folder/constraints.txt"
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --constraint "$folder/constraints.txt" '.[plot,duckdb,pandas,spark]' pytest pytest-xdist hypothesis scipy
PYTHONPATH=src "$folder/venv/bin/python" -m pytest -n auto --dist worksteal -W ignore::FutureWarning -W ignore::DeprecationWarning "$@"
