#!/usr/bin/env bash
# The main job on real data: a model from last year's published meter data, the noise of every mechanism, a release.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p demo
run() { printf '\n$ pufferfish %s\n' "$*"; .venv/bin/pufferfish "$@"; }

table=(--state watts --time timestamp --max-gap 10min)
run fit examples/data/household_power_2008.csv.gz "${table[@]}" --bins "0,500,...,5000" --overwrite --output demo/model.json
run compare demo/model.json --table examples/data/household_power_2009.csv.gz "${table[@]}" --query histogram --epsilon 1
run release examples/data/household_power_2009.csv.gz "${table[@]}" --model demo/model.json --query histogram --epsilon 1 \
  --valid --overwrite --output demo/release.json --plot demo/release.png
