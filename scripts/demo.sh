#!/usr/bin/env bash
# The main job on real data: a class Θ from two earlier years' published meter data, the noise that it asks for, a release.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p demo
run() { printf '\n$ pufferfish %s\n' "$*"; .venv/bin/pufferfish "$@"; }

data=examples/data/household_power
table=(--state watts --time timestamp --max-gap 1min)
run fit "${data}_2007.csv.gz" "${data}_2008.csv.gz" "${table[@]}" --bins "0,500,...,5000" --defend --slower 1.3 \
  --overwrite --output demo/model.json
run compare demo/model.json --table "${data}_2009.csv.gz" "${table[@]}" --query histogram --epsilon 1
run release "${data}_2009.csv.gz" "${table[@]}" --model demo/model.json --query histogram --epsilon 1 \
  --valid --overwrite --output demo/release.json --plot demo/release.png
